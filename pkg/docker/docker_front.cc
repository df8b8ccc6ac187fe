// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/docker_front.h"

#include <utility>

#include "pkg/docker/docker_call.h"
#include "pkg/docker/request_target.h"

namespace resmgr::docker {
namespace {

// The operations that stages may see for such a request.
OperationSet OperationsOf(const RequestTarget& target) {
  switch (target.action) {
    case Action::kCreate:
      return {Operation::kRunPodSandbox, Operation::kCreateContainer};
    case Action::kStart:
    case Action::kRestart:
      return {Operation::kStartContainer};
    case Action::kUpdate:
      return {Operation::kUpdateContainerResources};
    case Action::kKill:
      if (!IsKill(target.signal)) return {};
      return {Operation::kStopPodSandbox, Operation::kStopContainer};
    case Action::kStop:
      return {Operation::kStopPodSandbox, Operation::kStopContainer};
    case Action::kRemove:
      return {Operation::kRemovePodSandbox, Operation::kRemoveContainer};
  }
  return {};
}

}  // namespace

DockerFront::DockerFront(EventLoop& loop, Pipeline& pipeline, const std::string& engine_socket,
                         Others others)
    : pipeline_(pipeline), others_(others), engine_(loop, engine_socket) {}

std::unique_ptr<Interception> DockerFront::Begin(std::string_view method, std::string_view target,
                                                 Interception::Client& client) {
  auto read = ReadTarget(method, target);
  if (!read) return nullptr;
  const OperationSet operations = OperationsOf(*read);
  bool looked_at = false;
  for (const Operation operation :
       {Operation::kRunPodSandbox, Operation::kCreateContainer, Operation::kStartContainer,
        Operation::kUpdateContainerResources, Operation::kStopPodSandbox, Operation::kStopContainer,
        Operation::kRemovePodSandbox, Operation::kRemoveContainer}) {
    looked_at = looked_at || (operations.contains(operation) && pipeline_.LooksAt(operation));
  }
  if (!looked_at) return nullptr;
  return std::make_unique<DockerCall>(*this, client, *std::move(read));
}

void DockerFront::Learn(std::string_view id, Identity::Kind kind) {
  if (known_.size() >= kMaxKnown) known_.clear();
  known_.insert_or_assign(std::string(id), kind);
}

std::optional<Identity::Kind> DockerFront::KindOf(std::string_view id) const {
  const auto found = known_.find(std::string(id));
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace resmgr::docker
