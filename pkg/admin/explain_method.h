// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/audit/batched_look.h"
#include "pkg/audit/memory_places.h"
#include "pkg/base/json.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// Answers Explain (admin_service.h) with all that the parts of the node know of a container.
// Cgroups are read away from the loop; what they do not tell in time is left out. Loop's thread
// only.
class ExplainMethod {
 public:
  // `node` must outlive this.
  explicit ExplainMethod(const NodeView& node);

  // NotFound for a container that is not known, with names that are near.
  void Answer(const nlohmann::json& request, const UnaryServer::Reply& reply);

 private:
  const NodeView& node_;
  BatchedLook<MemorySubject, std::string> memory_;
};

}  // namespace resmgr
