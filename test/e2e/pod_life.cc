// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/pod_life.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace resmgr::test {
namespace {

// One after the other. containerd may be busy for seconds with a start that lost its client.
constexpr int kSurprises = 200;
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

Status PodLife::Live(const std::atomic<bool>& dying) {
  int surprises = 0;
  while (!dying) {
    Status status = Step();
    if (dying) break;
    if (status.ok()) {
      ++calls_;
      surprises = 0;
      continue;
    }
    // containerd's answers where a call that lost its client is still under way or has ended the
    // container by now. A kubelet lists again and goes on from there, and so does this client.
    const bool surprise = status.code() == StatusCode::kUnknown ||
                          status.code() == StatusCode::kFailedPrecondition ||
                          status.code() == StatusCode::kNotFound;
    if (!surprise || ++surprises > kSurprises) return status;
    std::this_thread::sleep_for(kPause);
    if (dying) break;
    RESMGR_RETURN_IF_ERROR(LookWhatBecameOfIt());
  }
  return OkStatus();
}

Status PodLife::Step() {
  switch (stage_) {
    case Stage::kAbsent:
      return CreatePod();
    case Stage::kPod:
      return CreateContainer();
    case Stage::kCreated:
      return StartOrGiveUp();
    case Stage::kRunning:
      return ResizeOrStop();
    case Stage::kStopped:
      return RemoveContainer();
    case Stage::kEmptyPod:
      break;
  }
  return RemovePod();
}

Status PodLife::CreatePod() {
  const std::string name = fmt::format("{}-{}", name_, ++count_);
  Workload workload = BestEffort(name);
  if (Chance(60)) {
    workload = Guaranteed(name, 1);
  } else if (Chance(60)) {
    workload = Burstable(name, MilliCpu{200});
  }
  pod_ = {
      .workload = workload, .config = node_.PodConfig(workload), .pod_id = "", .container_id = ""};
  grown_ = false;
  RESMGR_ASSIGN_OR_RETURN(pod_.pod_id, node_.client().RunPod(pod_.config));
  stage_ = Stage::kPod;
  return OkStatus();
}

Status PodLife::CreateContainer() {
  const StatusOr<std::string> id = node_.client().CreateContainer(
      pod_.pod_id, pod_.config, Node::ContainerConfig(pod_.workload));
  const bool no_room = id.status().code() == StatusCode::kResourceExhausted;
  // A call of before that lost its client has ended the sandbox, which is listed as ready.
  const bool no_sandbox = id.status().code() == StatusCode::kNotFound;
  if (no_room || no_sandbox) {
    stage_ = Stage::kEmptyPod;
    return OkStatus();
  }
  RESMGR_RETURN_IF_ERROR(id.status());
  pod_.container_id = *id;
  stage_ = Stage::kCreated;
  Watch();
  return OkStatus();
}

Status PodLife::StartOrGiveUp() {
  if (Chance(10)) return RemoveContainer();
  RESMGR_RETURN_IF_ERROR(node_.client().StartContainer(pod_.container_id));
  stage_ = Stage::kRunning;
  return OkStatus();
}

Status PodLife::ResizeOrStop() {
  if (pod_.workload.qos == QosClass::kBestEffort || Chance(25)) {
    if (Chance(50)) return Pause();
    RESMGR_RETURN_IF_ERROR(node_.client().StopContainer(pod_.container_id));
    node_.watch().Remove(pod_.container_id);
    stage_ = Stage::kStopped;
    return OkStatus();
  }
  wanted_ = pod_.workload;
  if (wanted_.qos == QosClass::kBurstable) {
    wanted_.cpu_request = MilliCpu{wanted_.cpu_request.value == 200 ? 700 : 200};
  } else {
    wanted_.cpu_request = wanted_.cpu_limit = MilliCpu{wanted_.Exclusive() ? 500 : 1000};
  }
  return FinishResize();
}

// Just runs for a while.
Status PodLife::Pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 200));
  return OkStatus();
}

Status PodLife::FinishResize() {
  unclear_ = true;
  Status status = node_.Resize(wanted_, &pod_);
  // Other containers have the CPUs, so the container is unchanged.
  const bool refused = status.code() == StatusCode::kResourceExhausted;
  if (!status.ok() && !refused) return status;
  unclear_ = false;
  if (!refused) grown_ = pod_.workload.Exclusive();
  Watch();
  return OkStatus();
}

// One that has become exclusive has to wait for others to leave, and so has the watch.
void PodLife::Watch() {
  node_.watch().Add(pod_.container_id, pod_.workload.name,
                    pod_.workload.Exclusive() && !grown_ && !unclear_);
}

void PodLife::Settled() {
  grown_ = false;
  if (HasContainer()) Watch();
}

Status PodLife::RemoveContainer() {
  node_.watch().Remove(pod_.container_id);
  RESMGR_RETURN_IF_ERROR(node_.client().RemoveContainer(pod_.container_id));
  stage_ = Stage::kEmptyPod;
  return OkStatus();
}

Status PodLife::RemovePod() {
  RESMGR_RETURN_IF_ERROR(node_.client().StopPod(pod_.pod_id));
  RESMGR_RETURN_IF_ERROR(node_.client().RemovePod(pod_.pod_id));
  stage_ = Stage::kAbsent;
  return OkStatus();
}

Status PodLife::LookWhatBecameOfIt() {
  stage_ = Stage::kAbsent;
  cri::ListPodSandboxResponse pods;
  RESMGR_RETURN_IF_ERROR(
      FromGrpc(node_.runtime().Unary("ListPodSandbox", cri::ListPodSandboxRequest(), &pods)));
  for (const cri::PodSandbox& pod : pods.items()) {
    if (pod.metadata().name() != pod_.workload.name) continue;
    pod_.pod_id = pod.id();
    stage_ = pod.state() == cri::SANDBOX_READY ? Stage::kPod : Stage::kEmptyPod;
  }
  cri::ListContainersResponse containers;
  RESMGR_RETURN_IF_ERROR(
      FromGrpc(node_.runtime().Unary("ListContainers", cri::ListContainersRequest(), &containers)));
  for (const cri::Container& container : containers.containers()) {
    if (stage_ == Stage::kAbsent || container.pod_sandbox_id() != pod_.pod_id) continue;
    pod_.container_id = container.id();
    const bool created = container.state() == cri::CONTAINER_CREATED;
    const bool running = container.state() == cri::CONTAINER_RUNNING;
    stage_ = created ? Stage::kCreated : running ? Stage::kRunning : Stage::kStopped;
  }
  unclear_ = unclear_ && stage_ == Stage::kRunning;
  if (HasContainer()) Watch();
  if (!HasContainer()) node_.watch().Remove(pod_.container_id);
  return OkStatus();
}

Status PodLife::End() {
  Status last;
  const auto try_once = [this] {
    RESMGR_RETURN_IF_ERROR(LookWhatBecameOfIt());
    if (HasContainer()) RESMGR_RETURN_IF_ERROR(node_.client().StopContainer(pod_.container_id));
    if (HasContainer() || stage_ == Stage::kStopped) RESMGR_RETURN_IF_ERROR(RemoveContainer());
    return stage_ == Stage::kAbsent ? OkStatus() : RemovePod();
  };
  const Status gone = WaitUntil("the pod is gone", std::chrono::seconds(10), [&] {
    last = try_once();
    return last.ok();
  });
  return gone.ok() ? gone : Annotate(last, Message(gone));
}

}  // namespace resmgr::test
