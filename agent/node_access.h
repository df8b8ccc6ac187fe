// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/http.h"
#include "agent/node_patch.h"
#include "pkg/base/status.h"

namespace resmgr::agent {

// Reads and changes the node's object on behalf of the daemon. Each operation ends by itself: it
// is tried once, except that a patch is planned anew when the node changed meanwhile.
// Thread-compatible; no callback comes after the end of this object.
class NodeAccess {
 public:
  // The node as JSON.
  using GetDone = std::function<void(StatusOr<std::string> node)>;
  using Done = std::function<void(Status status)>;

  NodeAccess(HttpTransport& transport, std::string_view node, KeyRules rules);
  ~NodeAccess();

  void Get(GetDone done);
  // Codes as of PlanNodePatch and StatusOfReply.
  void Patch(std::vector<PatchOperation> operations, const Done& done);
  // As PlanCapacityPatch.
  void SetCapacity(const std::map<std::string, std::string>& capacities, const Done& done);

 private:
  using Reply = std::function<void(const StatusOr<HttpReply>&)>;

  void Send(HttpRequest request, Reply reply);
  void PatchOnce(std::vector<PatchOperation> operations, int tries_left, const Done& done);
  HttpRequest MergePatch(std::string_view subresource, const Json& body) const;

  HttpTransport& transport_;
  const std::string target_;
  const KeyRules rules_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::unique_ptr<HttpTransport::Call>> calls_;
};

}  // namespace resmgr::agent
