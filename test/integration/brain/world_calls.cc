// SPDX-License-Identifier: Apache-2.0
// The calls of a World's kubelet, and the runtime's answers.
#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/resmgr/testing/fake_runtime_client.h"
#include "test/integration/brain/world.h"

namespace resmgr::test {
namespace {

void ExpectRefusal(const Status& status) {
  EXPECT_TRUE(status.code() == StatusCode::kResourceExhausted ||
              status.code() == StatusCode::kInvalidArgument)
      << status;
}

}  // namespace

void World::AddSandbox() {
  const QosClass qos = Chance(60)   ? QosClass::kGuaranteed
                       : Chance(50) ? QosClass::kBurstable
                                    : QosClass::kBestEffort;
  sandboxes_.push_back({node_.AddPod(fmt::format("pod{}", ++names_), qos), qos});
  Pod& pod = node_.runtime.held.pods.back();
  if (Chance(5)) pod.namespace_name = "kube-system";
  for (const std::string_view key : {"prefer-shared-cpus", "prefer-isolated-cpus",
                                     "prefer-reserved-cpus", "require-isolated-cpus"}) {
    if (!Chance(4)) continue;
    pod.annotations.Set(fmt::format("{}.resource-policy.nri.io", key),
                        Chance(50) ? "true" : "false");
  }
  if (Chance(15)) pod.annotations.Set("cold-start.resource-policy.nri.io", "duration: 60s");
  node_.manager().PodCreated(pod);
}

void World::BeginCreation() {
  if (sandboxes_.empty()) return;
  const Sandbox& sandbox = sandboxes_[static_cast<size_t>(Number(0, std::ssize(sandboxes_) - 1))];
  const int64_t request = sandbox.qos == QosClass::kBestEffort ? 0 : SomeRequest();
  CreateRequest create = TestNode::Request(sandbox.id, fmt::format("c{}", ++names_), request);
  create.has_resources = Chance(97);
  if (!create.has_resources) create.resources = {};
  Admit(create);
}

// The next attempt of a container that is dead.
void World::BeginAttempt() {
  const RuntimeContainer* const dead = SomeContainer(ContainerState::kExited);
  if (dead == nullptr) return;
  const std::string name = dead->name;
  uint32_t attempt = 0;
  for (const RuntimeContainer& container : node_.runtime.held.containers) {
    if (container.name != name) continue;
    if (container.state != ContainerState::kExited) return;
    attempt = std::max(attempt, container.attempt + 1);
  }
  for (const auto* const creations : {&creations_, &abandoned_creations_}) {
    for (const Creation& creation : *creations) {
      if (creation.request.name == name) return;
    }
  }
  // The same request again: shares and quota may both have been the policy's, but never at once.
  const LinuxResources& last = dead->resources;
  const MilliCpu same = std::max(MilliCpuFromShares(last.cpu_shares.value_or(0)),
                                 MilliCpuFromQuota(last.cpu_quota.value_or(0), kDefaultCpuPeriod));
  const int64_t request = Chance(80) ? same.value : SomeRequest();
  Admit(TestNode::Request(dead->pod_id, name, request, attempt));
}

void World::Admit(const CreateRequest& request) {
  const StatusOr<Admission> admission = node_.manager().AdmitCreate(CreateRequest(request));
  Note(fmt::format(
      "create {} attempt {} shares {}: {}", request.name, request.attempt,
      request.resources.cpu_shares.value_or(0),
      admission.ok() ? CpuList(admission->adjustment) : std::string(Message(admission.status()))));
  if (admission.ok()) {
    creations_.push_back({request, *admission});
  } else {
    ExpectRefusal(admission.status());
  }
}

void World::EndCreation(size_t index, bool success) {
  const Creation creation = TakeAt(creations_, index);
  const bool created = success && SandboxLives(creation);
  Note(fmt::format("created {}: {}", creation.request.name, created));
  if (created) {
    node_.Created(creation.request, creation.admission);
    return;
  }
  // The outcome is unclear because the client went away, or the runtime has refused the call.
  const bool unclear = Chance(30);
  if (unclear) AbandonCreation(creation);
  node_.manager().CreateFailed(creation.admission.key);
  if (unclear) node_.manager().synchronizer().ResyncSoon();
}

bool World::SandboxLives(const Creation& creation) const {
  return std::any_of(sandboxes_.begin(), sandboxes_.end(), [&creation](const Sandbox& sandbox) {
    return sandbox.id == creation.request.pod_id;
  });
}

void World::BeginStart() {
  const RuntimeContainer* const created = SomeContainer(ContainerState::kCreated);
  if (created == nullptr) return;
  for (const auto& start : starts_) {
    if (start->id == created->id) return;
  }
  starts_.push_back(std::make_unique<Start>());
  Start& start = *starts_.back();
  start.id = created->id;
  Note(fmt::format("start {}", start.id.value()));
  start.wait = node_.manager().AdmitStart(AsCalled(start.id), [this, &start](const Status& status) {
    start.decided = status;
    if (status.ok()) node_.runtime.BeginStart(start.id);
    if (const RuntimeContainer* held = node_.runtime.Find(start.id))
      start.begun_on = InForce(*held);
    const Container* const container = node_.Known(start.id);
    if (container != nullptr) start.exclusive = container->placement.exclusive;
  });
}

// The runtime's answer to a start that was let through.
void World::EndStart(size_t index) {
  if (!starts_[index]->decided.has_value()) return;
  const std::unique_ptr<Start> start = TakeAt(starts_, index);
  RuntimeContainer* const container = node_.runtime.Find(start->id);
  Note(fmt::format("start of {} was decided: {}", start->id.value(),
                   resmgr::Describe(*start->decided)));
  if (!start->decided->ok()) return;
  // One of before is still being worked on.
  const bool busy = std::find(abandoned_starts_.begin(), abandoned_starts_.end(), start->id) !=
                    abandoned_starts_.end();
  if (container != nullptr && container->state == ContainerState::kCreated && !busy && Chance(95)) {
    ++started_;
    Note("  and started");
    node_.Started(start->id);
    const Container* const known = node_.Known(start->id);
    if (known == nullptr) return;
    const CpuSet own = InForce(*container) & start->exclusive & known->placement.exclusive;
    if (!own.empty()) owned_[start->id] = {own, node_.runtime.Applied(start->id)};
  } else {
    node_.manager().StartFailed(start->id);
  }
}

void World::WithdrawStart() {
  std::erase_if(starts_, [](const auto& start) { return !start->decided.has_value(); });
}

void World::BeginResize() {
  const RuntimeContainer* const container =
      SomeContainer(Chance(80) ? ContainerState::kRunning : ContainerState::kCreated);
  if (container == nullptr) return;
  // Several at once only for one container: when one for another container fails, two containers
  // may have to swap CPUs, and then neither can leave before the other arrives.
  if (!resizes_.empty() && resizes_.front().id != container->id) return;
  const LinuxResources changes = TestNode::Resources(SomeRequest());
  const StatusOr<Admission> admission =
      node_.manager().AdmitUpdate(AsCalled(container->id), changes);
  Note(fmt::format(
      "resize {} to shares {}: {}", container->id.value(), *changes.cpu_shares,
      admission.ok() ? CpuList(admission->adjustment) : std::string(Message(admission.status()))));
  if (admission.ok()) {
    resizes_.push_back({container->id, changes, *admission, false});
  } else {
    ExpectRefusal(admission.status());
  }
}

// First it takes effect, then the answer comes; a failure may have taken effect or not.
void World::EndResize(size_t index) {
  Resize& resize = resizes_[index];
  const bool success = Chance(80);
  if (!resize.applied && (success || Chance(30)) && node_.runtime.Find(resize.id) != nullptr) {
    ApplyResize(resize);
    if (Chance(50)) return;
  }
  const Resize ended = TakeAt(resizes_, index);
  Note(fmt::format("resize of {} ended: {}", ended.id.value(), success && ended.applied));
  if (success && ended.applied) {
    node_.manager().UpdateSucceeded(ended.admission);
  } else {
    node_.manager().UpdateFailed(ended.admission);
  }
}

void World::ApplyResize(Resize& resize) {
  if (std::exchange(resize.applied, true)) return;
  Note(fmt::format("resize of {} takes effect", resize.id.value()));
  node_.runtime.Apply(resize.id, resize.Carried());
}

// The policy's appended values override the kubelet's.
ResourceValues World::Resize::Carried() const {
  ResourceValues carried = admission.adjustment;
  if (!carried.cpu_shares) carried.cpu_shares = changes.cpu_shares;
  if (!carried.cpu_quota) carried.cpu_quota = changes.cpu_quota;
  return carried;
}

void World::StopSome() {
  if (const RuntimeContainer* const running = SomeContainer(ContainerState::kRunning)) {
    Note(fmt::format("stop {}", running->id.value()));
    const ContainerId id = running->id;
    node_.runtime.Find(id)->state = ContainerState::kExited;
    node_.manager().ContainerStopped(AsCalled(id));
  }
}

void World::RemoveSome() {
  const RuntimeContainer* const exited =
      SomeContainer(Chance(80) ? ContainerState::kExited : ContainerState::kCreated);
  if (exited == nullptr) return;
  Note(fmt::format("remove {}", exited->id.value()));
  const ContainerId id = exited->id;
  node_.runtime.Remove(id);
  node_.manager().ContainerRemoved(AsCalled(id));
}

// Sometimes the shortest beginning that is unique, as a person would type it.
ContainerId World::AsCalled(const ContainerId& id) {
  // An unknown id is searched later, when more ids may have this beginning.
  if (!Chance(20) || node_.Known(id) == nullptr) return id;
  std::string text(id.value());
  const auto only_one = [this, &id](std::string_view beginning) {
    bool only = true;
    node_.manager().snapshot().ForEachContainer([&](const Pod&, const Container& other) {
      if (other.id != id && other.id.value().starts_with(beginning)) only = false;
    });
    for (const RuntimeContainer& other : node_.runtime.held.containers) {
      if (other.id != id && other.id.value().starts_with(beginning)) only = false;
    }
    return only;
  };
  while (only_one(std::string_view(text).substr(0, text.size() - 1)) && text.size() > 1)
    text.pop_back();
  return ContainerId(text);
}

void World::RemoveSandbox(size_t index) {
  const PodSandboxId id = TakeAt(sandboxes_, index).id;
  Note(fmt::format("remove {}", id.value()));
  FakeRuntimeClient& runtime = node_.runtime;
  for (RuntimeContainer& container : runtime.held.containers) {
    if (container.pod_id == id) container.state = ContainerState::kExited;
  }
  node_.manager().PodStopped(id);
  std::erase_if(runtime.held.containers,
                [&id](const RuntimeContainer& container) { return container.pod_id == id; });
  std::erase_if(runtime.held.pods, [&id](const Pod& pod) { return pod.id == id; });
  node_.manager().PodRemoved(id);
}

}  // namespace resmgr::test
