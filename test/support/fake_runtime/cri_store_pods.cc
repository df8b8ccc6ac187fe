// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "test/support/fake_runtime/cri_store.h"
#include "test/support/fake_runtime/cri_store_internal.h"

namespace resmgr::test {

namespace {

// Shaped like containerd's: proxies read the cgroup parent from it.
std::string SandboxInfo(const CriStore::Sandbox& sandbox) {
  const cri::PodSandboxMetadata& metadata = sandbox.config.metadata();
  nlohmann::json config = {{"metadata",
                            {{"name", metadata.name()},
                             {"uid", metadata.uid()},
                             {"namespace", metadata.namespace_()},
                             {"attempt", metadata.attempt()}}},
                           {"linux", {{"cgroup_parent", sandbox.config.linux().cgroup_parent()}}}};
  for (const auto& [key, value] : sandbox.config.labels())
    config["labels"][key] = value;
  for (const auto& [key, value] : sandbox.config.annotations())
    config["annotations"][key] = value;
  if (sandbox.config.linux().has_overhead()) {
    const cri::LinuxContainerResources& overhead = sandbox.config.linux().overhead();
    config["linux"]["overhead"] = {{"cpu_period", overhead.cpu_period()},
                                   {"cpu_quota", overhead.cpu_quota()},
                                   {"cpu_shares", overhead.cpu_shares()},
                                   {"memory_limit_in_bytes", overhead.memory_limit_in_bytes()}};
  }
  const nlohmann::json info = {{"pid", 1},
                               {"processStatus", "running"},
                               {"netNamespaceClosed", false},
                               {"image", "docker.io/local/pause:1"},
                               {"runtimeHandler", sandbox.runtime_handler},
                               {"runtimeType", "io.containerd.runc.v2"},
                               {"config", config}};
  return info.dump();
}

void Describe(const CriStore::Sandbox& sandbox, cri::PodSandbox* item) {
  item->set_id(sandbox.id);
  *item->mutable_metadata() = sandbox.config.metadata();
  item->set_state(sandbox.state);
  item->set_created_at(sandbox.created_at);
  *item->mutable_labels() = sandbox.config.labels();
  *item->mutable_annotations() = sandbox.config.annotations();
  item->set_runtime_handler(sandbox.runtime_handler);
}

bool Matches(const CriStore::Sandbox& sandbox, const cri::PodSandboxFilter& filter) {
  if (!filter.id().empty() && filter.id() != sandbox.id) return false;
  if (filter.has_state() && filter.state().state() != sandbox.state) return false;
  return MatchesSelector(sandbox.config.labels(), filter.label_selector());
}

}  // namespace

grpc::Status CriStore::RunPodSandbox(const cri::RunPodSandboxRequest& request,
                                     cri::RunPodSandboxResponse* response) {
  if (!request.config().has_metadata()) return Unknown("sandbox config must include metadata");
  const std::string wanted = request.config().metadata().SerializeAsString();
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox.config.metadata().SerializeAsString() == wanted) {
      return Unknown(fmt::format("failed to reserve sandbox name: it is reserved for \"{}\"", id));
    }
  }
  Sandbox sandbox;
  sandbox.id = NewId("5a");
  sandbox.config = request.config();
  sandbox.runtime_handler = request.runtime_handler();
  sandbox.created_at = WallClockNanoseconds();
  response->set_pod_sandbox_id(sandbox.id);
  sandboxes_.emplace(sandbox.id, std::move(sandbox));
  return grpc::Status::OK;
}

grpc::Status CriStore::StopPodSandbox(const cri::StopPodSandboxRequest& request,
                                      cri::StopPodSandboxResponse* /*response*/) {
  const auto sandbox = FindById(sandboxes_, request.pod_sandbox_id());
  if (sandbox == sandboxes_.end()) return grpc::Status::OK;
  sandbox->second.state = cri::SANDBOX_NOTREADY;
  for (auto& [id, container] : containers_) {
    if (container.sandbox_id == sandbox->first) Stop(&container);
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::RemovePodSandbox(const cri::RemovePodSandboxRequest& request,
                                        cri::RemovePodSandboxResponse* /*response*/) {
  const auto sandbox = FindById(sandboxes_, request.pod_sandbox_id());
  if (sandbox == sandboxes_.end()) return grpc::Status::OK;
  std::vector<std::string> ids;
  for (const auto& [id, container] : containers_) {
    if (container.sandbox_id == sandbox->first) ids.push_back(id);
  }
  for (const std::string& id : ids)
    Remove(id);
  sandboxes_.erase(sandbox);
  return grpc::Status::OK;
}

grpc::Status CriStore::PodSandboxStatus(const cri::PodSandboxStatusRequest& request,
                                        cri::PodSandboxStatusResponse* response) {
  const auto found = FindById(sandboxes_, request.pod_sandbox_id());
  if (found == sandboxes_.end()) return NoSuch("sandbox", request.pod_sandbox_id());
  const Sandbox& sandbox = found->second;
  auto* status = response->mutable_status();
  status->set_id(sandbox.id);
  *status->mutable_metadata() = sandbox.config.metadata();
  status->set_state(sandbox.state);
  status->set_created_at(sandbox.created_at);
  *status->mutable_labels() = sandbox.config.labels();
  *status->mutable_annotations() = sandbox.config.annotations();
  status->set_runtime_handler(sandbox.runtime_handler);
  if (request.verbose()) (*response->mutable_info())["info"] = SandboxInfo(sandbox);
  return grpc::Status::OK;
}

grpc::Status CriStore::ListPodSandbox(const cri::ListPodSandboxRequest& request,
                                      cri::ListPodSandboxResponse* response) {
  for (const auto& [id, sandbox] : sandboxes_) {
    if (Matches(sandbox, request.filter())) Describe(sandbox, response->add_items());
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::UpdatePodSandboxResources(
    const cri::UpdatePodSandboxResourcesRequest& request,
    cri::UpdatePodSandboxResourcesResponse* /*response*/) {
  const auto sandbox = FindById(sandboxes_, request.pod_sandbox_id());
  if (sandbox == sandboxes_.end()) return NoSuch("sandbox", request.pod_sandbox_id());
  sandbox->second.last_update = request;
  return grpc::Status::OK;
}

grpc::Status CriStore::PortForward(const cri::PortForwardRequest& request,
                                   cri::PortForwardResponse* response) {
  if (FindById(sandboxes_, request.pod_sandbox_id()) == sandboxes_.end()) {
    return NoSuch("sandbox", request.pod_sandbox_id());
  }
  response->set_url("http://127.0.0.1:1/portforward/" + request.pod_sandbox_id());
  return grpc::Status::OK;
}

grpc::Status CriStore::StreamPodSandboxes(const cri::StreamPodSandboxesRequest& request,
                                          std::vector<cri::StreamPodSandboxesResponse>* replies) {
  replies->emplace_back();
  for (const auto& [id, sandbox] : sandboxes_) {
    if (!Matches(sandbox, request.filter())) continue;
    if (replies->back().pod_sandboxes_size() == kStreamChunk) replies->emplace_back();
    Describe(sandbox, replies->back().add_pod_sandboxes());
  }
  return grpc::Status::OK;
}

}  // namespace resmgr::test
