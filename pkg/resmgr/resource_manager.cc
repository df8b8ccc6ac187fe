// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/resource_manager.h"

#include <algorithm>
#include <chrono>

#include "pkg/resmgr/reported_numbers.h"

namespace resmgr {
namespace {

// The longest pause between two lists for an unresolved start.
constexpr std::chrono::milliseconds kLongestStartPause{1'000};

}  // namespace

ResourceManager::ResourceManager(EventLoop& loop, const Machine& machine,
                                 std::unique_ptr<Policy> policy, RuntimeClient& runtime,
                                 StateStore* state, const Options& options)
    : brain_(loop, machine, std::move(policy), runtime, state, options, *this, *this,
             [this] {
               starts_.ExamineWaits();
               policy_changes_.Examine();
               claims_.Examine();
             }),
      set_later_(brain_, options.report_pause),
      pod_limits_(brain_),
      exited_(brain_, options.last_retry),
      endings_(brain_, exited_),
      creations_(brain_, pod_limits_, endings_, set_later_),
      updates_(brain_, set_later_, options),
      policy_changes_(brain_, exited_),
      claims_(brain_, policy_changes_, loop, state, options.start_timeout),
      failures_(brain_, policy_changes_, options.causes),
      starts_(brain_, creations_,
              {options.start_timeout,
               options.start_failure,
               {options.first_retry, std::min(options.last_retry, kLongestStartPause),
                options.start_limit}}),
      events_(brain_.timers, brain_.store,
              {.look = [this] { Refresh([](const Status&) {}); },
               .rename =
                   [this](ContainerRecord& record, const std::string& name) {
                     brain_.store.Rename(record, name);
                     brain_.observers.OnRenamed(brain_.ActAt(record), record.CreatedName());
                   }},
              {.pause = options.event_pause}) {}

void ResourceManager::RuntimeConnected() {
  RuntimeDisconnected();
  brain_.synchronizer.Connected();
}

void ResourceManager::RuntimeJoined() {
  // A second list shows what earlier calls did meanwhile, as after a connect.
  brain_.synchronizer.ListNow([this](const Status& status) {
    if (status.ok()) Resync();
  });
}

void ResourceManager::RuntimeDisconnected() {
  brain_.pusher.Disconnected();
  starts_.RefuseAll(Unavailable("the connection to the runtime was lost"));
  brain_.synchronizer.Disconnected();
  events_.Clear();
  policy_changes_.OnDisconnected();
  claims_.OnDisconnected();
}

void ResourceManager::PodCreated(Pod pod, const Adjustment& sent) {
  const WideAdjustment* const wide = sent.wide();
  if (wide != nullptr) {
    const AskedTexts texts = TextsBefore(sent, pod.labels, pod.annotations);
    if (wide->cgroup_parent || !texts.empty()) brain_.state_writer.SaveAsked(pod, texts);
  }
  PodRecord& record = brain_.store.PutPod(std::move(pod));
  record.provisional = false;
  brain_.decider.Prepare(record.pod);
  if (ContainerKeys moved = pod_limits_.Apply(record); !moved.empty())
    brain_.Push(std::move(moved));
}

void ResourceManager::PodResourcesChanged(const PodSandboxId& id, const LinuxResources& overhead,
                                          const LinuxResources& resources) {
  const PodRecord* const known = brain_.store.Resolve(id);
  if (known == nullptr) return Resync();
  Pod pod = known->pod;
  pod.overhead = Merged(std::move(pod.overhead), overhead);
  pod.resources = Merged(std::move(pod.resources), resources);
  brain_.state_writer.SaveStated(pod);
  PodCreated(std::move(pod));
  // Where there are several runtimes, its overhead is kept with its containers, too.
  for (const ContainerKey key : known->containers)
    brain_.state_writer.MarkChanged(*brain_.store.Find(key));
  // The reply follows: a restart divides the pod's resources only among containers without notes.
  brain_.state_writer.SaveMarked();
}

void ResourceManager::AskRuntime(std::function<void(StatusOr<RuntimeInventory>)> done,
                                 std::function<bool(const ContainerId&)> wanted) {
  Known known;
  if (wanted) {
    known.pod = [](const Pod&) { return true; };
    known.container = [wanted = std::move(wanted)](const RuntimeContainer& listed) {
      return !wanted(listed.id);
    };
  }
  brain_.runtime.ListAll(std::move(known), std::move(done));
}

void ResourceManager::SendAgain(const ContainerId& id) {
  if (const ContainerRecord* const record = brain_.store.Resolve(id))
    SendAgain(record->container.key);
}

void ResourceManager::OnApplied(ContainerKey key) {
  if (ContainerRecord* const record = brain_.store.Find(key)) {
    brain_.NoteTold(*record);
    // An error means that the numbers of the same update were refused; they follow.
    if (brain_.pusher.LastError(key).ok()) brain_.observers.OnPushed(brain_.ActAt(*record));
  } else {
    OnMoot();
  }
  starts_.ExamineWaits(key);
  policy_changes_.Examine();
  claims_.Examine();
}

void ResourceManager::OnGone(ContainerKey key) {
  if (ContainerRecord* const record = brain_.store.Find(key)) {
    // A list that is under way may still show it.
    brain_.synchronizer.RecordRemoval(record->container.id);
    endings_.Remove(*record, "it is gone from the runtime");
  }
  OnMoot();
}

void ResourceManager::OnInForce(const ContainerRecord& record, const AppliedResources& applied) {
  // A list may show exclusive use by coincidence; report only CPUs that were granted exclusively.
  const CpuSet exclusive = applied.exclusive & record.container.placement.exclusive;
  brain_.observers.OnInForce(brain_.ActAt(record), {applied.cpus, applied.mems, exclusive});
}

}  // namespace resmgr
