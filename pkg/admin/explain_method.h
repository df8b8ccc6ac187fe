// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pkg/admin/node_json.h"
#include "pkg/audit/batched_work.h"
#include "pkg/audit/cgroup_reader.h"
#include "pkg/base/json.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// Answers Explain (admin_service.h) with all that the parts of the node know of a container or
// claim. Cgroups and files of claims are looked at away from the loop; an answer that comes too
// late is left out. Loop's thread only.
class ExplainMethod {
 public:
  // `node` must outlive this.
  explicit ExplainMethod(const NodeView& node);

  // NotFound for an unknown container; suggests similar names.
  void Answer(const nlohmann::json& request, const UnaryServer::Reply& reply);

 private:
  // The file by which runtimes know a claim.
  struct ClaimFile {
    std::string text{};   // its path, or that there is none; "": not known
    std::string since{};  // when it was written; "": there is none
  };
  using List = std::shared_ptr<OrderedJson>;

  // Both call `then` when they have added what they found.
  void AddMemory(const List& list, std::function<void()> then);
  void AddClaimFiles(const List& list, const std::function<void()>& then);

  const NodeView& node_;
  BatchedWork<MemorySubject, std::string> memory_;
  BatchedWork<std::string, ClaimFile> claim_files_;  // by uid
};

}  // namespace resmgr
