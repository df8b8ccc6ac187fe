// SPDX-License-Identifier: Apache-2.0
#include "test/bench/canned_backend.h"

#include <csignal>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace resmgr::bench {

namespace {

namespace cri = ::runtime::v1;

constexpr int kListSizes[] = {200, 1000};
constexpr char kPodId[] = "bench-pod";

// As long as a kubelet's containers are in a list: about 600 bytes each.
std::string MakeList(int containers) {
  cri::ListContainersResponse list;
  for (int i = 0; i < containers; ++i) {
    auto* container = list.add_containers();
    container->set_id(fmt::format("{:064x}", i));
    container->set_pod_sandbox_id(fmt::format("{:064x}", i / 2));
    container->mutable_metadata()->set_name(fmt::format("container-{}", i));
    container->mutable_image()->set_image(fmt::format("sha256:{:064x}", 7));
    container->set_image_ref(fmt::format("sha256:{:064x}", 7));
    container->set_state(cri::CONTAINER_RUNNING);
    container->set_created_at(1'700'000'000'000'000'000 + i);
    auto& labels = *container->mutable_labels();
    labels["io.kubernetes.container.name"] = fmt::format("container-{}", i);
    labels["io.kubernetes.pod.name"] = fmt::format("deployment-7d4f9c6b5-{:05}", i);
    labels["io.kubernetes.pod.namespace"] = "production";
    labels["io.kubernetes.pod.uid"] = fmt::format("8c2e1f7a-0000-4000-8000-{:012x}", i);
    auto& annotations = *container->mutable_annotations();
    annotations["io.kubernetes.container.hash"] = "5f3b1c2d";
    annotations["io.kubernetes.container.restartCount"] = "0";
    annotations["io.kubernetes.container.terminationMessagePath"] = "/dev/termination-log";
  }
  return list.SerializeAsString();
}

}  // namespace

std::string ListFilterId(int containers) {
  return fmt::format("bench-list-{}", containers);
}

CannedBackend::CannedBackend() {
  for (const int size : kListSizes)
    lists_[ListFilterId(size)] = test::ToBuffer(MakeList(size));
  cri::VersionResponse version;
  version.set_version("0.1.0");
  version.set_runtime_name("bench");
  version.set_runtime_version("1.0.0");
  version.set_runtime_api_version("v1");
  replies_["Version"] = test::ToBuffer(version.SerializeAsString());
  cri::RunPodSandboxResponse pod;
  pod.set_pod_sandbox_id(kPodId);
  replies_["RunPodSandbox"] = test::ToBuffer(pod.SerializeAsString());
  cri::ImageStatusResponse image;
  image.mutable_image()->set_id(kImageId);
  replies_["ImageStatus"] = test::ToBuffer(image.SerializeAsString());
}

int CannedBackend::Run(const std::string& socket_path) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto server = test::GenericServer::Start(socket_path, *this);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", Describe(server.status()).c_str());
    return 2;
  }
  int signal = 0;
  sigwait(&signals, &signal);
  return 0;
}

grpc::ByteBuffer CannedBackend::Create(const grpc::ByteBuffer& request) {
  std::string id = fmt::format("{:064x}", next_container_++);
  cri::CreateContainerResponse response;
  response.set_container_id(id);
  containers_.emplace(std::move(id), Container{.request = request});
  return test::ToBuffer(response.SerializeAsString());
}

void CannedBackend::Change(std::string_view method, const grpc::ByteBuffer& request) {
  // All three requests have the id in their first field.
  cri::RemoveContainerRequest parsed;
  if (!parsed.ParseFromString(test::ToBytes(request))) return;
  const auto found = containers_.find(parsed.container_id());
  if (found == containers_.end()) return;
  if (method == "RemoveContainer") {
    containers_.erase(found);
  } else {
    found->second.state =
        method == "StartContainer" ? cri::CONTAINER_RUNNING : cri::CONTAINER_EXITED;
  }
}

grpc::ByteBuffer CannedBackend::ListContainers(const grpc::ByteBuffer& request) const {
  cri::ListContainersRequest parsed;
  if (!parsed.ParseFromString(test::ToBytes(request))) return {};
  const std::string& only = parsed.filter().id();
  const auto prepared = lists_.find(only);
  if (prepared != lists_.end()) return prepared->second;
  cri::ListContainersResponse list;
  for (const auto& [id, container] : containers_) {
    cri::CreateContainerRequest made;
    if ((!only.empty() && only != id) || !made.ParseFromString(test::ToBytes(container.request))) {
      continue;
    }
    cri::Container& listed = *list.add_containers();
    listed.set_id(id);
    listed.set_pod_sandbox_id(made.pod_sandbox_id());
    *listed.mutable_metadata() = made.config().metadata();
    *listed.mutable_image() = made.config().image();
    *listed.mutable_labels() = made.config().labels();
    *listed.mutable_annotations() = made.config().annotations();
    listed.set_state(container.state);
  }
  return test::ToBuffer(list.SerializeAsString());
}

grpc::ByteBuffer CannedBackend::ListPods() const {
  cri::ListPodSandboxResponse list;
  cri::RunPodSandboxRequest run;
  if (pod_ && run.ParseFromString(test::ToBytes(*pod_))) {
    cri::PodSandbox& pod = *list.add_items();
    pod.set_id(kPodId);
    *pod.mutable_metadata() = run.config().metadata();
    *pod.mutable_labels() = run.config().labels();
    *pod.mutable_annotations() = run.config().annotations();
    pod.set_state(cri::SANDBOX_READY);
  }
  return test::ToBuffer(list.SerializeAsString());
}

// Without it the pod would be asked for again with each of its containers.
grpc::ByteBuffer CannedBackend::PodStatus() const {
  cri::PodSandboxStatusResponse response;
  cri::RunPodSandboxRequest run;
  if (pod_ && run.ParseFromString(test::ToBytes(*pod_))) {
    cri::PodSandboxStatus& status = *response.mutable_status();
    status.set_id(kPodId);
    *status.mutable_metadata() = run.config().metadata();
    *status.mutable_labels() = run.config().labels();
    *status.mutable_annotations() = run.config().annotations();
    status.set_state(cri::SANDBOX_READY);
  }
  return test::ToBuffer(response.SerializeAsString());
}

grpc::ByteBuffer CannedBackend::ContainerStatus(const grpc::ByteBuffer& request) const {
  cri::ContainerStatusRequest parsed;
  cri::ContainerStatusResponse response;
  cri::CreateContainerRequest made;
  if (!parsed.ParseFromString(test::ToBytes(request))) return {};
  const auto found = containers_.find(parsed.container_id());
  if (found != containers_.end() && made.ParseFromString(test::ToBytes(found->second.request))) {
    cri::ContainerStatus& status = *response.mutable_status();
    status.set_id(found->first);
    *status.mutable_metadata() = made.config().metadata();
    *status.mutable_image() = made.config().image();
    *status.mutable_labels() = made.config().labels();
    *status.mutable_annotations() = made.config().annotations();
    status.set_state(found->second.state);
  }
  return test::ToBuffer(response.SerializeAsString());
}

void CannedBackend::OnCall(const test::ServerCallPtr& /*call*/) {}

// Every method served here has one request, so there is no need to wait for the stream's end.
void CannedBackend::OnMessage(const test::ServerCallPtr& call, const grpc::ByteBuffer& message) {
  const std::string_view path = call->path();
  const std::string_view method = path.substr(path.rfind('/') + 1);
  if (method == "GetContainerEvents") return;
  if (method == "CreateContainer") return call->WriteLast(Create(message), grpc::Status::OK);
  if (method == "ListContainers") return call->WriteLast(ListContainers(message), grpc::Status::OK);
  if (method == "ListPodSandbox") return call->WriteLast(ListPods(), grpc::Status::OK);
  if (method == "PodSandboxStatus") return call->WriteLast(PodStatus(), grpc::Status::OK);
  if (method == "ContainerStatus")
    return call->WriteLast(ContainerStatus(message), grpc::Status::OK);
  if (method == "RunPodSandbox") pod_ = message;
  if (method == "StartContainer" || method == "StopContainer" || method == "RemoveContainer") {
    Change(method, message);
  }
  const auto reply = replies_.find(method);
  call->WriteLast(reply == replies_.end() ? test::ToBuffer("") : reply->second, grpc::Status::OK);
}

void CannedBackend::OnHalfClosed(const test::ServerCallPtr& /*call*/) {}

void CannedBackend::OnEnd(const test::ServerCallPtr& /*call*/, bool /*cancelled*/) {}

}  // namespace resmgr::bench
