// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/http.h"
#include "pkg/base/status.h"

namespace resmgr::agent {

// The labels, annotations, taints and extended resources of the node that the daemon may set. An
// immutable value.
struct KeyRules {
  // The DOMAIN of "DOMAIN/name"; each includes its subdomains.
  std::vector<std::string> domains{};
  // Keys that only the agent itself, or the cluster's administrators, may change.
  std::set<std::string, std::less<>> reserved{};

  // kPermissionDenied names `what` and the key.
  Status Check(std::string_view what, std::string_view key) const;
};

// One operation of a JSON patch (RFC 6902) as it came; `value` is JSON.
struct PatchOperation {
  std::string op{};
  std::string path{};
  std::string value{};
};

// The approximate size of the operations in memory, in bytes.
size_t SizeOf(const std::vector<PatchOperation>& operations);

// The merge patch (RFC 7386) that changes `node` as the operations would, valid only for this
// version of it; nullopt when they change nothing. The operations are applied to a copy and the
// changes are compared with the rules, so it does not matter by which paths and indices a change is
// made.
// kInvalidArgument   not a JSON patch, or one that does not fit the node
// kPermissionDenied  a change that the rules do not allow
StatusOr<std::optional<Json>> PlanNodePatch(const Json& node,
                                            const std::vector<PatchOperation>& operations,
                                            const KeyRules& rules);

// The merge patch for the node's status that sets the capacity of extended resources.
StatusOr<Json> PlanCapacityPatch(const std::map<std::string, std::string>& capacities,
                                 const KeyRules& rules);

// Predicts what a patch of the node would change, from the node that the watch has shown. An
// annotation that was written but is not seen yet may be present or not, so a value that differs
// from the seen or from the written one is a change. Thread-compatible.
class NodeView {
 public:
  explicit NodeView(KeyRules rules) : rules_(std::move(rules)) {}

  // Takes the node's object from the watch.
  void Seen(const Json& node);
  // Takes annotations that are sent to the API server, null for one to be removed.
  void Written(const Json& annotations);
  // The changed annotations, null for one to be removed, if `waiting` are written before the
  // operations; nullopt if the operations change anything else, or the known state does not
  // suffice.
  std::optional<Json> ChangedAnnotations(const std::vector<PatchOperation>& operations,
                                         const Json& waiting) const;

 private:
  std::optional<Json> ChangesOf(const Json& annotations,
                                const std::vector<PatchOperation>& operations) const;

  const KeyRules rules_;
  std::optional<Json> seen_;      // the annotations
  Json unseen_ = Json::object();  // annotations that were written and are not seen yet
};

}  // namespace resmgr::agent
