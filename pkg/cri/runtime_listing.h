// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cri/ask_each.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

class HandlerAliases;

// One list of everything that a runtime has: both lists, then the verbose status of those entries
// that are not known. Its callbacks keep it alive.
class RuntimeListing : public std::enable_shared_from_this<RuntimeListing> {
 public:
  struct Result {
    // In the order of the lists. Without a status: what the list tells.
    std::vector<SandboxFacts> sandboxes;
    std::vector<ContainerFacts> containers;
    RuntimeInventory::Unclear unclear;
    RuntimeInventory::Brief brief;
    // Objects that disappeared after the list.
    std::set<PodSandboxId> gone_pods;
    std::set<ContainerId> gone_containers;
  };
  using Done = std::function<void(StatusOr<Result>)>;
  // Calls a method of RuntimeService.
  using Call = std::function<void(std::string_view method, std::string_view message,
                                  UnaryClient::Done done)>;

  RuntimeListing(Call call, const HandlerAliases* aliases, Known known, Done done)
      : call_(std::move(call)),
        aliases_(aliases),
        known_(std::move(known)),
        done_(std::move(done)) {}

  void Start();

 private:
  void OnPods(const StatusOr<std::string>& reply);
  void OnContainers(const StatusOr<std::string>& reply);
  void ChooseUnknown();
  void Ask(size_t number, AskEach::Answered answered);
  template <typename Facts, typename RuntimeId>
  void Ask(std::string_view method, const std::string& message, Facts& facts, const RuntimeId& id,
           std::set<RuntimeId>& unclear, std::set<RuntimeId>& gone, AskEach::Answered answered);

  const Call call_;
  const HandlerAliases* const aliases_;
  const Known known_;
  const Done done_;
  Result result_;
  // The entries whose status is asked for.
  std::vector<SandboxFacts*> pods_;
  std::vector<ContainerFacts*> containers_;
};

}  // namespace resmgr
