// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_runtime/cri_store.h"

#include <utility>

#include <fmt/format.h>

#include "pkg/topology/cpu_set.h"
#include "test/support/fake_runtime/cri_store_internal.h"

namespace resmgr::test {

CriStore::CriStore(Options options) : options_(std::move(options)), next_id_(options_.first_id) {
  Clear();
}

void CriStore::Clear() {
  sandboxes_.clear();
  containers_.clear();
  images_.clear();
  AddImage("docker.io/local/pause:1");
  AddImage("docker.io/local/busybox:1");
}

void CriStore::OnEvent(std::function<void(const cri::ContainerEventResponse&)> listener) {
  on_event_ = std::move(listener);
}

std::string CriStore::NewId(std::string_view kind) {
  // Ids whose beginnings differ as early as those of real ones.
  return fmt::format("{}{:010x}{:050x}", kind, next_id_++, 0);
}

void CriStore::Emit(const Container& container, cri::ContainerEventType type) {
  if (!on_event_) return;
  cri::ContainerEventResponse event;
  event.set_container_id(container.id);
  event.set_container_event_type(type);
  event.set_created_at(WallClockNanoseconds());
  on_event_(event);
}

grpc::Status CriStore::CheckCpus(const cri::LinuxContainerResources& resources) const {
  const auto cpus = CpuSet::Parse(resources.cpuset_cpus());
  if (cpus.ok() && cpus->IsSubsetOf(CpuSet::Range(0, options_.cpus - 1))) return grpc::Status::OK;
  return Unknown(fmt::format("failed to write \"{}\" to cpuset.cpus: numerical result out of range",
                             resources.cpuset_cpus()));
}

std::string CriStore::AllowedCpus(const Container& container) const {
  if (!container.resources.cpuset_cpus().empty()) return container.resources.cpuset_cpus();
  return CpuSet::Range(0, options_.cpus - 1).ToString();
}

grpc::Status CriStore::Version(const cri::VersionRequest& /*request*/,
                               cri::VersionResponse* response) {
  response->set_version("0.1.0");
  response->set_runtime_name(options_.runtime_name);
  response->set_runtime_version(options_.runtime_version);
  response->set_runtime_api_version("v1");
  return grpc::Status::OK;
}

grpc::Status CriStore::Status(const cri::StatusRequest& request, cri::StatusResponse* response) {
  for (const char* type : {"RuntimeReady", "NetworkReady"}) {
    auto* condition = response->mutable_status()->add_conditions();
    condition->set_type(type);
    condition->set_status(true);
  }
  if (request.verbose()) (*response->mutable_info())["config"] = R"({"sandboxImage":"pause"})";
  return grpc::Status::OK;
}

grpc::Status CriStore::RuntimeConfig(const cri::RuntimeConfigRequest& /*request*/,
                                     cri::RuntimeConfigResponse* response) {
  response->mutable_linux()->set_cgroup_driver(cri::CGROUPFS);
  return grpc::Status::OK;
}

grpc::Status CriStore::UpdateRuntimeConfig(const cri::UpdateRuntimeConfigRequest& /*request*/,
                                           cri::UpdateRuntimeConfigResponse* /*response*/) {
  return grpc::Status::OK;
}

}  // namespace resmgr::test
