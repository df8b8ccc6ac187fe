// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/support/status.h>

#include "pkg/api/runtime_v1.pb.h"

namespace resmgr::test {

namespace cri = ::runtime::v1;

// The objects of a CRI runtime, in memory: sandboxes, containers and images, with the rules of
// containerd for states, unknown and abbreviated ids and names taken. Statuses are the ones
// containerd would give. Thread-compatible.
class CriStore {
 public:
  struct Sandbox {
    std::string id;
    cri::PodSandboxConfig config;
    std::string runtime_handler;
    cri::PodSandboxState state = cri::SANDBOX_READY;
    int64_t created_at = 0;
    cri::UpdatePodSandboxResourcesRequest last_update;
  };
  struct Container {
    std::string id;
    std::string sandbox_id;
    cri::ContainerConfig config;
    cri::LinuxContainerResources resources;  // in force
    cri::ContainerState state = cri::CONTAINER_CREATED;
    int64_t created_at = 0;
    int64_t started_at = 0;
    int64_t finished_at = 0;
  };
  struct Options {
    // CPUs 0 to cpus-1 exist; starting or updating a container with others fails as runc does.
    int cpus = 8;
    std::string runtime_name = "fake";
    std::string runtime_version = "1.0.0";
    // ContainerStatus.resources is filled, as runtimes do since 2022.
    bool status_resources = true;
    // Ids are counted from here: two stores whose ranges do not meet give no id twice.
    uint64_t first_id = 1;
    // Ids of images are digits alone, as CRI-O's, which finds none by "sha256:" and digits. Else
    // they are as containerd's, which finds them in both forms.
    bool bare_image_ids = false;
    std::string pinned_image{};  // by name
  };

  explicit CriStore(Options options);

  const std::map<std::string, Sandbox>& sandboxes() const { return sandboxes_; }
  const std::map<std::string, Container>& containers() const { return containers_; }
  const Options& options() const { return options_; }
  // Called for every event of a container.
  void OnEvent(std::function<void(const cri::ContainerEventResponse&)> listener);
  // Forgets everything but the built-in images.
  void Clear();
  // The container's process ends by itself.
  void Exit(const std::string& container_id);

#define RESMGR_CRI_METHOD(Name) \
  grpc::Status Name(const cri::Name##Request& request, cri::Name##Response* response)
  RESMGR_CRI_METHOD(Version);
  RESMGR_CRI_METHOD(Status);
  RESMGR_CRI_METHOD(RuntimeConfig);
  RESMGR_CRI_METHOD(UpdateRuntimeConfig);

  RESMGR_CRI_METHOD(RunPodSandbox);
  RESMGR_CRI_METHOD(StopPodSandbox);
  RESMGR_CRI_METHOD(RemovePodSandbox);
  RESMGR_CRI_METHOD(PodSandboxStatus);
  RESMGR_CRI_METHOD(ListPodSandbox);
  RESMGR_CRI_METHOD(UpdatePodSandboxResources);
  RESMGR_CRI_METHOD(PortForward);

  RESMGR_CRI_METHOD(CreateContainer);
  RESMGR_CRI_METHOD(StartContainer);
  RESMGR_CRI_METHOD(StopContainer);
  RESMGR_CRI_METHOD(RemoveContainer);
  RESMGR_CRI_METHOD(ListContainers);
  RESMGR_CRI_METHOD(ContainerStatus);
  RESMGR_CRI_METHOD(UpdateContainerResources);
  RESMGR_CRI_METHOD(ReopenContainerLog);
  RESMGR_CRI_METHOD(ExecSync);
  RESMGR_CRI_METHOD(Exec);
  RESMGR_CRI_METHOD(Attach);

  RESMGR_CRI_METHOD(ContainerStats);
  RESMGR_CRI_METHOD(ListContainerStats);
  RESMGR_CRI_METHOD(PodSandboxStats);
  RESMGR_CRI_METHOD(ListPodSandboxStats);
  RESMGR_CRI_METHOD(ListMetricDescriptors);
  RESMGR_CRI_METHOD(ListPodSandboxMetrics);

  RESMGR_CRI_METHOD(ListImages);
  RESMGR_CRI_METHOD(ImageStatus);
  RESMGR_CRI_METHOD(PullImage);
  RESMGR_CRI_METHOD(RemoveImage);
  RESMGR_CRI_METHOD(ImageFsInfo);
#undef RESMGR_CRI_METHOD

  // The same lists in pieces of kStreamChunk elements; at least one piece.
  static constexpr int kStreamChunk = 50;
#define RESMGR_CRI_STREAM(Name) \
  grpc::Status Name(const cri::Name##Request& request, std::vector<cri::Name##Response>* replies)
  RESMGR_CRI_STREAM(StreamPodSandboxes);
  RESMGR_CRI_STREAM(StreamContainers);
  RESMGR_CRI_STREAM(StreamContainerStats);
  RESMGR_CRI_STREAM(StreamPodSandboxStats);
  RESMGR_CRI_STREAM(StreamPodSandboxMetrics);
  RESMGR_CRI_STREAM(StreamImages);
#undef RESMGR_CRI_STREAM

 private:
  std::string NewId(std::string_view kind);
  void Stop(Container* container);
  void Remove(const std::string& container_id);
  void Emit(const Container& container, cri::ContainerEventType type);
  grpc::Status CheckCpus(const cri::LinuxContainerResources& resources) const;
  std::string AllowedCpus(const Container& container) const;
  void AddImage(const std::string& name);
  std::string FindImage(const std::string& name) const;  // its id, or ""
  void AddImageId(const Container& container, cri::Container* item) const;

  Options options_;
  std::map<std::string, Sandbox> sandboxes_;
  std::map<std::string, Container> containers_;
  std::map<std::string, cri::Image> images_;  // by id
  std::function<void(const cri::ContainerEventResponse&)> on_event_;
  uint64_t next_id_;
};

}  // namespace resmgr::test
