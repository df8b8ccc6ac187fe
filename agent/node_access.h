// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/http.h"
#include "agent/node_patch.h"
#include "pkg/base/status.h"

namespace resmgr::agent {

// Reads and changes the node's object on behalf of the daemon. Each operation ends by itself: it is
// tried once, except that a patch is planned anew when the node changed meanwhile. Patches are
// carried out one after the other, so the node shows the last one. Thread-compatible; no callback
// comes after the end of this object.
class NodeAccess {
 public:
  // Gets the node as JSON.
  using GetDone = std::function<void(StatusOr<std::string> node)>;
  using Done = std::function<void(Status status)>;

  // Gets the annotations that are sent to the API server, null for one to be removed.
  using Written = std::function<void(const Json& annotations)>;

  NodeAccess(HttpTransport& transport, std::string_view node, KeyRules rules, Written written);

  void Get(GetDone done);
  // Status codes as from PlanNodePatch and StatusOfReply; kResourceExhausted if too many patches
  // wait.
  void Patch(std::vector<PatchOperation> operations, Done done);
  // Whether a patch is under way.
  bool patching() const { return !patches_.empty(); }
  // See PlanCapacityPatch.
  void SetCapacity(const std::map<std::string, std::string>& capacities, const Done& done);

 private:
  struct Patching {
    std::vector<PatchOperation> operations{};
    Done done{};
    size_t bytes = 0;
  };

  void Send(HttpRequest request, OpenCalls::Done done);
  // Carries out the first patch of the queue.
  void PatchOnce(int tries_left);
  void WritePatch(const StatusOr<std::string>& text, int tries_left);
  void EndPatch(const Status& status);

  OpenCalls calls_;
  const std::string target_;
  const KeyRules rules_;
  const Written written_;
  std::deque<Patching> patches_;  // the first one is under way
  size_t patches_bytes_ = 0;
};

// Reads ResourceClaims on behalf of the daemon, with one try each: the kubelet repeats its call.
// Thread-compatible; no callback comes after the end of this object.
class ClaimReader {
 public:
  // Gets the object as JSON. kInvalidArgument: the name is invalid; kResourceExhausted if too many
  // are being read; kNotFound: the server has no such claim; kFailedPrecondition: it has no such
  // API; else as from StatusOfReply.
  using Done = std::function<void(StatusOr<std::string> claim)>;

  static constexpr size_t kMostAtOnce = 64;

  explicit ClaimReader(HttpTransport& transport) : calls_(transport) {}

  void Get(const std::string& namespace_name, const std::string& name, Done done);

 private:
  OpenCalls calls_;
};

}  // namespace resmgr::agent
