// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/resource_manager.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/resmgr/reported_values.h"

namespace resmgr {

ResourceManager::ResourceManager(EventLoop& loop, const Machine& machine,
                                 std::unique_ptr<Policy> policy, RuntimeClient& runtime,
                                 StateStore* state, const Options& options)
    : brain_(loop, machine, std::move(policy), runtime, state, options, *this, lists_,
             [this] {
               starts_.ExamineWaits();
               policy_changes_.Examine();
               claims_.Examine();
             }),
      set_later_(brain_),
      pod_limits_(brain_),
      exited_(brain_),
      endings_(brain_, pod_limits_, exited_),
      creations_(brain_, pod_limits_, endings_, set_later_),
      updates_(brain_, pod_limits_, set_later_),
      policy_changes_(brain_, exited_),
      claims_(brain_, policy_changes_, loop, state),
      failures_(brain_, policy_changes_),
      starts_(brain_, creations_),
      lists_(brain_, set_later_, pod_limits_, exited_, endings_, creations_, claims_, starts_),
      events_(brain_.timers, brain_.store,
              {.look = [this] { brain_.synchronizer.Refresh([](const Status&) {}); },
               .rename =
                   [this](ContainerRecord& record, const std::string& name) {
                     brain_.store.Rename(record, name);
                     brain_.observers.OnRenamed(brain_.ActAt(record), record.CreatedName());
                   }},
              options.event_pause) {}

void ResourceManager::RuntimeConnected() {
  RuntimeDisconnected();
  brain_.synchronizer.Connected();
}

void ResourceManager::RuntimeJoined() {
  // As after a connect, a second list shows the effects of calls that were under way during the
  // first one.
  brain_.synchronizer.ListNow([this](const Status& status) {
    if (status.ok()) brain_.synchronizer.ResyncSoon();
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
  if (known == nullptr) return brain_.synchronizer.ResyncSoon();
  Pod pod = known->pod;
  pod.overhead = Merged(std::move(pod.overhead), overhead);
  pod.resources = Merged(std::move(pod.resources), resources);
  brain_.state_writer.SaveStated(pod);
  PodCreated(std::move(pod));
  // If there are several runtimes, the pod's overhead is also saved with its containers.
  for (const ContainerKey key : known->containers)
    brain_.state_writer.MarkChanged(*brain_.store.Find(key));
  // Saved before the reply: after a restart the resources of few pods are divided
  // (PodLimits::ApplyToAdopted).
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
    // If the last error is set, the numbers of the same update were refused and follow in another
    // one.
    if (brain_.pusher.LastError(key).ok()) brain_.observers.OnPushed(brain_.ActAt(*record));
  } else {
    OnMoot();
  }
  starts_.ExamineWaits(key);
  policy_changes_.Examine();
  claims_.Examine();
}

void ResourceManager::OnFailed(ContainerKey key, const Status& status) {
  failures_.OnFailed(key, status);
}

void ResourceManager::OnRecovered(const ContainerRecord& record) {
  brain_.observers.OnRecovered(brain_.ActAt(record));
}

void ResourceManager::OnWritten(const ContainerRecord& record, const Status& why) {
  brain_.observers.OnWritten(brain_.ActAt(record), why);
}

void ResourceManager::OnGone(ContainerKey key) {
  if (ContainerRecord* const record = brain_.store.Find(key)) {
    // A list that is under way may still show the container.
    brain_.synchronizer.RecordRemoval(record->container.id);
    endings_.Remove(*record, "it is gone from the runtime");
  }
  OnMoot();
}

void ResourceManager::OnInForce(const ContainerRecord& record, const AppliedResources& applied) {
  // `applied` may count CPUs as exclusive only because no other container runs there; only
  // exclusive CPUs by decision are reported.
  const CpuSet exclusive = applied.exclusive & record.container.placement.exclusive;
  brain_.observers.OnInForce(brain_.ActAt(record), {applied.cpus, applied.mems, exclusive});
}

}  // namespace resmgr
