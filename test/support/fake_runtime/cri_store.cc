// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_runtime/cri_store.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pkg/topology/cpu_set.h"
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

// Exit status of a shell for a command that it does not find.
constexpr int kNoSuchCommand = 127;

constexpr uint64_t kImageBytes = 1'000'000;

bool IsNamed(const cri::Image& image, const std::string& name) {
  return image.id() == name || image.id() == "sha256:" + name ||
         std::find(image.repo_tags().begin(), image.repo_tags().end(), name) !=
             image.repo_tags().end();
}

}  // namespace

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

grpc::Status CriStore::ExecSync(const cri::ExecSyncRequest& request,
                                cri::ExecSyncResponse* response) {
  const auto found = FindById(containers_, request.container_id());
  if (found == containers_.end()) return NoSuch("container", request.container_id());
  const Container& container = found->second;
  if (container.state != cri::CONTAINER_RUNNING) return Unknown("container is not running");

  std::string command;
  for (const std::string& word : request.cmd())
    command += (command.empty() ? "" : " ") + word;
  if (command.find("/proc/self/status") != std::string::npos) {
    const std::string& mems = container.resources.cpuset_mems();
    response->set_stdout(fmt::format("Name:\tcat\nCpus_allowed_list:\t{}\nMems_allowed_list:\t{}\n",
                                     AllowedCpus(container), mems.empty() ? "0" : mems));
  } else if (request.cmd_size() > 0 && request.cmd(0) == "echo") {
    response->set_stdout(command.substr(std::min(command.size(), std::string("echo ").size())) +
                         "\n");
  } else if (command != "true") {
    response->set_stderr(command + ": not found\n");
    response->set_exit_code(kNoSuchCommand);
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::Exec(const cri::ExecRequest& request, cri::ExecResponse* response) {
  if (FindById(containers_, request.container_id()) == containers_.end()) {
    return NoSuch("container", request.container_id());
  }
  response->set_url("http://127.0.0.1:1/exec/" + request.container_id());
  return grpc::Status::OK;
}

grpc::Status CriStore::Attach(const cri::AttachRequest& request, cri::AttachResponse* response) {
  if (FindById(containers_, request.container_id()) == containers_.end()) {
    return NoSuch("container", request.container_id());
  }
  response->set_url("http://127.0.0.1:1/attach/" + request.container_id());
  return grpc::Status::OK;
}

void CriStore::AddImage(const std::string& name) {
  cri::Image image;
  image.set_id(fmt::format(
      "{}{:064x}", options_.bare_image_ids ? "" : "sha256:", std::hash<std::string>()(name)));
  image.set_pinned(name == options_.pinned_image);
  image.add_repo_tags(name);
  image.set_size(kImageBytes);
  images_[image.id()] = image;
}

std::string CriStore::FindImage(const std::string& name) const {
  for (const auto& [id, image] : images_) {
    if (IsNamed(image, name)) return id;
  }
  return "";
}

grpc::Status CriStore::ListImages(const cri::ListImagesRequest& request,
                                  cri::ListImagesResponse* response) {
  const std::string& wanted = request.filter().image().image();
  for (const auto& [id, image] : images_) {
    if (wanted.empty() || IsNamed(image, wanted)) *response->add_images() = image;
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::StreamImages(const cri::StreamImagesRequest& request,
                                    std::vector<cri::StreamImagesResponse>* replies) {
  const std::string& wanted = request.filter().image().image();
  replies->emplace_back();
  for (const auto& [id, image] : images_) {
    if (!wanted.empty() && !IsNamed(image, wanted)) continue;
    if (replies->back().images_size() == kStreamChunk) replies->emplace_back();
    *replies->back().add_images() = image;
  }
  return grpc::Status::OK;
}

grpc::Status CriStore::ImageStatus(const cri::ImageStatusRequest& request,
                                   cri::ImageStatusResponse* response) {
  // An unknown image is an empty answer, not an error.
  const auto found = images_.find(FindImage(request.image().image()));
  if (found != images_.end()) *response->mutable_image() = found->second;
  return grpc::Status::OK;
}

grpc::Status CriStore::PullImage(const cri::PullImageRequest& request,
                                 cri::PullImageResponse* response) {
  const std::string& name = request.image().image();
  if (name.empty()) return Unknown("failed to parse image reference \"\": invalid reference");
  if (FindImage(name).empty()) AddImage(name);
  response->set_image_ref(FindImage(name));
  return grpc::Status::OK;
}

grpc::Status CriStore::RemoveImage(const cri::RemoveImageRequest& request,
                                   cri::RemoveImageResponse* /*response*/) {
  images_.erase(FindImage(request.image().image()));
  return grpc::Status::OK;
}

grpc::Status CriStore::ImageFsInfo(const cri::ImageFsInfoRequest& /*request*/,
                                   cri::ImageFsInfoResponse* response) {
  auto* usage = response->add_image_filesystems();
  usage->set_timestamp(WallClockNanoseconds());
  usage->mutable_fs_id()->set_mountpoint("/var/lib/fake");
  usage->mutable_used_bytes()->set_value(kImageBytes * images_.size());
  return grpc::Status::OK;
}

}  // namespace resmgr::test
