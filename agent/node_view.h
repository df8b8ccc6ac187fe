// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "agent/json_path.h"
#include "agent/node_patch.h"

namespace resmgr::agent {

// Tells what a patch of the node would change, as far as the watch has shown the node. An
// annotation that was written but is not seen yet may be present or not, so a value that differs
// from the seen or from the written one is a change. Thread-compatible.
class NodeView {
 public:
  explicit NodeView(KeyRules rules) : rules_(std::move(rules)) {}

  // Takes the node's object from the watch.
  void Seen(const Json& node);
  // Takes annotations that are sent to the API server, null for one to be removed.
  void Written(const Json& annotations);
  // The annotations that the operations change if `waiting` are written before, null for one to be
  // removed; nullopt if the operations change anything else, or cannot be judged by the known
  // state.
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
