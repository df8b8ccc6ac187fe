// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/refused_updates.h"
#include "pkg/base/status.h"
#include "pkg/config/runtimes_config.h"
#include "pkg/metrics/metrics.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/container.h"
#include "pkg/model/cpu_numbers.h"
#include "pkg/model/create_request.h"
#include "pkg/model/pod.h"
#include "pkg/model/resource_values.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/cpuset_writer.h"
#include "pkg/resmgr/observer.h"
#include "pkg/resmgr/refusal_causes.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/resmgr/values_of_others.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// A decided but not yet executed change. Ends with exactly one of the matching Succeeded or Failed
// calls.
struct Admission {
  ContainerKey key{};
  ResourceValues adjustment{};
  uint64_t ticket = 0;  // tells updates of one container apart; the brain's own
};

// The brain: holds pods and containers, asks the policy, keeps what the runtime was told apart from
// what it should be, and closes the gap. All on the loop's thread.
//
// Life of a container: AdmitCreate (placed, others planned to shrink) -> CreateSucceeded (id known)
// -> AdmitStart (waits until no running container is on its exclusive CPUs) -> StartSucceeded ->
// ContainerStopped -> ContainerRemoved. A container that loses CPUs is updated at the runtime in
// parallel with the creation that took them.
class ResourceManager {
 public:
  struct Options {
    // How long a start waits for others to leave its CPUs.
    std::chrono::milliseconds start_timeout{10'000};
    // Whether it is refused then, or goes on all the same, with a warning.
    FailurePolicy start_failure = FailurePolicy::kFail;
    // Whether the cpuset of a container is written past the runtime where that refuses its update;
    // only with a `cpuset_writer`.
    RefusedUpdates refused_updates = RefusedUpdates::kWait;
    // Waits between tries of an update that failed: doubles from the first to the last.
    std::chrono::milliseconds first_retry{50};
    std::chrono::milliseconds last_retry{5'000};
    // How long an unanswered StartContainer may still take effect: as long as kubelets let a call
    // take.
    std::chrono::milliseconds start_limit{120'000};
    // The least time between two lists before refusals.
    std::chrono::milliseconds refresh_pause{1'000};
    // How often what the runtime holds is listed when nothing asks for it.
    std::chrono::milliseconds list_period{60'000};
    // How long an event of the runtime waits for the answer of the call that it may come from.
    std::chrono::milliseconds event_pause{100};
    // The time after a client's call until the values in force are listed, where something is
    // remembered over restarts: the runtime's own plugins may have changed the values.
    std::chrono::milliseconds report_pause{5'000};
    Metrics* metrics = nullptr;  // counts decisions, updates and held starts; may be null
    // Is told of every act, beside the log and the metrics; outlives the manager. May be null.
    Observer* observer = nullptr;
    Clock* clock = nullptr;   // for Policy::LookAgain; nullptr: the machine's
    Clock* timers = nullptr;  // for all other waits and pauses; likewise
    // Whether this daemon has warned of updates that ask for other CPUs (cpuset_overrides.h);
    // outlives the manager. nullptr: it warns once in its own life.
    bool* overrides_warned = nullptr;
    // Asked before each update of the manager's own; outlives it. nullptr: the runtime is sent what
    // is decided, and nothing else.
    ValuesOfOthers* others = nullptr;
    CpusetWriter* cpuset_writer = nullptr;  // outlives the manager
    RefusalCauses* causes = nullptr;        // likewise; nullptr: no causes are looked for
    RuntimesConfig runtimes{};              // the overhead of pods of which kubelets state none
  };

  // `state` is what is remembered over restarts; nullptr: nothing is. All references must outlive
  // it.
  ResourceManager(EventLoop& loop, const Machine& machine, std::unique_ptr<Policy> policy,
                  RuntimeClient& runtime, StateStore* state, Options options);
  ~ResourceManager();
  ResourceManager(const ResourceManager&) = delete;
  ResourceManager& operator=(const ResourceManager&) = delete;

  // A connection to the runtime stands: lists what exists, adopts it where it runs, places only
  // what has no legal placement, pushes only real differences. Tried again with back-off until it
  // succeeds or the connection is lost.
  void RuntimeConnected();
  // Behind the connection that stands another runtime came, or came back: lists everything again.
  // Nothing that is under way is held up by it.
  void RuntimeJoined();
  void RuntimeDisconnected();
  // The outcome of a call is unknown, or what it does: lists what the runtime holds, soon, without
  // holding calls up.
  void Resync();
  // The runtime told what happened. Where no call that passed here explains it, everything is
  // listed again, with a pause between two such lists.
  void OnContainerEvent(const ContainerEvent& event);
  // Lists what the runtime holds, at least Options::refresh_pause after the last list: all calls
  // meanwhile share one. Runs `done`, never from within, when that is taken over, or with the
  // reason why it is not; at once without a connection.
  void Refresh(std::function<void(Status)> done);
  // Whether that may show what is not known here.
  bool RefreshTellsNews() const;
  // Whether the container is known by this id, or by this beginning of an id.
  bool Knows(const ContainerId& id) const;
  // Runs `ready` once the first synchronization after a connect is done; at once when it is. With
  // Unavailable when the runtime is not connected, when the connection is lost meanwhile, or when
  // the synchronization fails (the next one follows by itself).
  void WhenReady(std::function<void(Status)> ready);
  // Whether that is so now.
  bool ready() const;

  // After the runtime's success. The pod is as the client asked for it; `sent`: what all stages
  // changed of that.
  void PodCreated(Pod pod, const Adjustment& sent = Adjustment());
  // The sandbox has these values now, in place of those that it had before.
  void PodResourcesChanged(const PodSandboxId& id, const LinuxResources& overhead,
                           const LinuxResources& resources);
  void PodStopped(const PodSandboxId& id);
  void PodRemoved(const PodSandboxId& id);

  // In what follows, an id may be the beginning of one, as runtimes take them: it means the only
  // container or pod sandbox whose id begins so. A call that succeeded for an id that is not known
  // makes everything be listed again.

  // What a refusal for want of room (ResourceExhausted) means.
  enum class Refusal {
    kFinal,      // it is counted and told
    kTentative,  // what the runtime holds is listed first, and then it is decided again
  };

  // Places the container of a known sandbox, or of the one that the request describes; the policy's
  // refusal names container, need and shortage, and changes nothing. With an empty adjustment:
  //   - a request without Linux resources, to which any would change more than a cpuset (containerd
  //     and CRI-O set oom_score_adj where there are some): it gets its CPUs by an update after its
  //     creation, for which its start waits;
  //   - an unknown sandbox that the request does not describe either: not kept; when the runtime
  //     creates it all the same, everything is listed again and it is adopted then.
  // A former attempt of the container in the same sandbox is dead: its CPUs pass on, and come back
  // to it if this creation fails. A tentative refusal leaves the request as it was, but for its
  // pod.
  StatusOr<Admission> AdmitCreate(CreateRequest&& request, Refusal refusal = Refusal::kFinal);
  // `sent`: what all stages, the brain's among them, changed of the request. Values that other
  // stages set never count as the client's request.
  void CreateSucceeded(ContainerKey key, ContainerId id, const Adjustment& sent = Adjustment());
  // The creation leaves now, changed by later stages: what the client asked for is kept on the
  // disk, for a daemon that finds the container and was not told how the creation ended.
  void CreationSent(ContainerKey key, const Adjustment& sent);
  // `refusal`: of another part of the daemon, which has refused what was admitted.
  void CreateFailed(ContainerKey key, const Status& refusal = OkStatus());
  // Told before CreateFailed, StartFailed and UpdateFailed: the runtime's answer. If it is about
  // cgroups, the cause is looked for, and logged.
  void RefusedByRuntime(ContainerKey key, std::string_view answer);
  void RefusedByRuntime(const ContainerId& id, std::string_view answer);
  // The container may exist all the same, which a list will show.
  void CreateUnclear(ContainerKey key);

  // Runs `go` when the container may start: at once, with nullptr returned, when no other
  // container is on its CPUs. Else a refusal is FailedPrecondition naming the container in the way
  // after Options::start_timeout, unless such failures are ignored, or Unavailable when the
  // connection is lost. Destroying the returned token withdraws the wait (the client went away).
  // For a container that is not known the runtime is asked first: it may have been created by a
  // call that did not pass here.
  class StartWait {
   public:
    virtual ~StartWait() = default;
  };
  std::unique_ptr<StartWait> AdmitStart(const ContainerId& id, std::function<void(Status)> go);
  // In place of Options::start_failure, for starts that wait already, too.
  void SetStartFailurePolicy(FailurePolicy policy);
  // Replaces Options::refused_updates. A cpuset that was written stays.
  void SetRefusedUpdates(RefusedUpdates choice);
  void StartSucceeded(const ContainerId& id);
  // The runtime says so.
  void StartFailed(const ContainerId& id);
  // No answer came: it may have taken effect, or do so later. The runtime is asked until it is
  // known.
  void StartUnclear(const ContainerId& id);

  // Merges the update into what the container requests and lets the policy decide again. The
  // adjustment carries its cpuset, whatever the request says: where that asks for other CPUs, it is
  // counted and reported once. CPUs that another container has to leave first follow in an update
  // of our own. A refusal changes nothing. An empty adjustment for a container that is not known
  // here.
  StatusOr<Admission> AdmitUpdate(const ContainerId& id, const LinuxResources& requested,
                                  Refusal refusal = Refusal::kFinal);
  // `sent`: as of CreateSucceeded.
  void UpdateSucceeded(const Admission& admission, const ResourceValues& sent = {});
  void UpdateFailed(const Admission& admission);

  // Whether the numbers that the runtime reports of the container may be others than those that the
  // client asked for, and the replacement of these in a report (asked_numbers.h). `shares_in_file`:
  // a stage may have set a file of cgroup v2 in place of the shares.
  bool SentOtherNumbers(const ContainerId& id, bool shares_in_file) const;
  void ShowAsked(const ContainerId& id, CpuNumbers& reported) const;

  // A later stage is about to have the runtime set these values, or, `accepted`, the runtime has.
  void SetByStage(const ContainerId& id, const ResourceValues& values, bool accepted);

  // The runtime did what StopContainer asks for. What that means for a container that is only
  // created, it is asked.
  void ContainerStopped(const ContainerId& id);
  // The runtime says that it has ended.
  void ContainerExited(const ContainerId& id);
  void ContainerRemoved(const ContainerId& id);

  // One container that another place is planned for.
  struct Move {
    std::string container;  // "namespace/pod/name"
    Placement from;
    Placement to;

    // It keeps fewer CPUs for itself alone than it has.
    bool LosesExclusiveCpus() const { return to.exclusive.size() < from.exclusive.size(); }
  };
  // What SetPolicy with this policy would do to CPUs and memory nodes. Has no effect, on the policy
  // neither.
  StatusOr<std::vector<Move>> PreviewPolicy(const Policy& policy) const;
  // Makes another policy the active one, or the same one with other options. It takes over all
  // containers; where its rules allow, they stay. Runs `done` with OK once every container is where
  // it should be, or at once without a connection to the runtime. When the policy refuses, or the
  // runtime refuses to move a container that still exists, all is as it was before, and `done` gets
  // the reason.
  // FailedPrecondition: another change is under way.
  void SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done);

  // CPUs of the machine went offline, or came back.
  struct Offline {
    CpuSet cpus{};      // all that are offline now
    CpuSet reserved{};  // of the policy: no container is to have these for itself
  };
  // Makes `policy` the active one, which is the same for the CPUs that are online now. It takes
  // over all containers without the others: those that lost CPUs of their own get others where some
  // are free, and keep the rest where not. Containers that lack CPUs get them where some came back.
  // What is decided stays, whatever the runtime says of it: there is no way back.
  // FailedPrecondition: a change of the policy is under way; other errors are the policy's. All is
  // as it was then.
  Status SetOffline(const Offline& offline, std::unique_ptr<Policy> policy);

  // What the runtime reports of everything that it holds, in full, or of the `wanted` containers
  // alone, all others as lists tell them; changes nothing here. As RuntimeClient::ListAll.
  void AskRuntime(std::function<void(StatusOr<RuntimeInventory>)> done,
                  std::function<bool(const ContainerId&)> wanted = {});
  // Sends the values that should be in force again, since the container was seen to have others.
  // Values that other programs have set do not stay. Does nothing for a container that is not
  // known.
  void SendAgain(ContainerKey key);
  void SendAgain(const ContainerId& id);

  // What the active policy would improve on demand, which has no effect, and doing it.
  StatusOr<std::vector<Move>> PreviewRebalance() const;
  StatusOr<std::vector<Move>> Rebalance();

  // For introspection; valid until the next call of anything else here.
  const Snapshot& snapshot() const;
  const Policy& policy() const;
  // All that should be in force is in force, and the runtime knows the values.
  bool Settled(ContainerKey key) const;
  // Its CPUs and memory nodes are in force, and were written past the runtime, which may report
  // others.
  bool WrittenPastRuntime(ContainerKey key) const;
  // What earlier decisions bound, and no longer do, the runtime has let go, as far as that can be
  // known: false without a synchronized connection, and while a container is being created.
  bool AllReleased() const;
  // Why the last update of it failed; OK when it did not.
  Status LastUpdateError(ContainerKey key) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace resmgr
