// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/cri_request.h"

#include <utility>

#include "pkg/cri/details.h"

namespace resmgr {

bool CriRequest::Read(std::string_view message) {
  message_ = message;
  switch (request_.operation()) {
    case Operation::kCreateContainer:
      if (!ReadCreate(request_.body.emplace<CreateRequest>())) return false;
      request_.files = std::move(parts_.files);
      return true;
    case Operation::kUpdateContainerResources:
      return ReadUpdate(message);
    case Operation::kUpdatePodSandboxResources:
      return ReadPodUpdate(message);
    case Operation::kRunPodSandbox: {
      auto pod = DecodeRunPodSandbox(message);
      if (pod.ok()) request_.body = *std::move(pod);
      request_.pod_attempt = DecodeSandboxAttempt(message);
      return pod.ok();
    }
    default:
      return ReadIds(message);
  }
}

bool CriRequest::ReadIds(std::string_view message) {
  const auto id = DecodeId(message);
  if (!id.ok()) return false;
  const Operation operation = request_.operation();
  if (operation == Operation::kStopPodSandbox || operation == Operation::kRemovePodSandbox) {
    request_.pod_id = PodSandboxId(*id);
  } else {
    request_.container_id = ContainerId(*id);
  }
  return true;
}

bool CriRequest::ReadUpdate(std::string_view message) {
  auto decoded = DecodeUpdateContainerResources(message);
  if (!decoded.ok()) return false;
  request_.container_id = std::move(decoded->id);
  request_.body = std::move(decoded->update);
  request_.files = std::move(decoded->files);
  return true;
}

bool CriRequest::ReadPodUpdate(std::string_view message) {
  auto decoded = DecodeUpdatePodSandboxResources(message);
  if (!decoded.ok()) return false;
  request_.pod_id = std::move(decoded->id);
  request_.body = std::move(decoded->update);
  return true;
}

bool CriRequest::ReadCreate(CreateRequest& create) {
  parts_ = {};
  return DecodeCreateContainer(message_, create, parts_).ok();
}

std::optional<Pod> CriRequest::ReadPod() {
  if (parts_.sandbox_config.empty()) return std::nullopt;
  auto pod = DecodeSandboxConfig(parts_.sandbox_config);
  if (!pod.ok()) return std::nullopt;
  return *std::move(pod);
}

bool CriRequest::ReadDetails(DetailSet parts, ContainerDetails& details) {
  if (request_.operation() == Operation::kUpdateContainerResources) {
    return DecodeUpdateDetails(message_, parts, details);
  }
  return DecodeDetails(parts_.config, parts_.sandbox_config, parts, details);
}

bool RepliesTell(Operation operation) {
  return operation == Operation::kCreateContainer || operation == Operation::kRunPodSandbox ||
         operation == Operation::kContainerStatus;
}

Outcome ReadOutcome(Operation operation, int code, std::string_view message) {
  Outcome outcome{.code = code};
  if (code != 0 || !RepliesTell(operation)) return outcome;
  if (operation == Operation::kContainerStatus) {
    outcome.id = DecodeExited(message).value_or(std::string_view());
  } else {
    outcome.id = DecodeId(message).value_or(std::string_view());
  }
  return outcome;
}

}  // namespace resmgr
