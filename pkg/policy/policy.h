// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/container_use.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Names of classes by their kinds: "rdt" to "gold" (docs/classes.md).
using ClassNames = std::map<std::string, std::string, std::less<>>;

// A set of CPUs and memory that a policy manages as one, for introspection.
struct Zone {
  std::string name{};
  std::string parent{};  // empty for a root
  std::string kind{};    // "package", "die", "numa", "l3"; empty: not a part of the machine
  CpuSet cpus{};         // all that belong to it
  CpuSet exclusive{};    // granted to single containers
  CpuSet shared{};       // where its shared containers run
  NodeSet mems{};
  MilliCpu shared_request{};  // sum of its shared containers' requests
  // Milli-CPUs that can still be requested of its shared CPUs; below 0 if requests exceed them.
  // nullopt: the number of shared CPUs less `shared_request`.
  std::optional<MilliCpu> free{};
  Bytes memory_capacity{};  // 0 when the policy does not account for memory
  Bytes memory_used{};      // granted to the containers of this zone and of those below it
  int containers = 0;       // containers whose placement names this zone as its pool
  Overhead overhead{};      // overhead of all pods that is debited from this zone; counts in `free`
  ClassNames classes{};     // classes of its CPUs, also without containers
};

// A place that was considered for a container, for introspection. Properties that the policy does
// not consider are nullopt.
struct ConsideredPlace {
  std::string name{};
  std::optional<MilliCpu> free{};      // free milli-CPUs of its CPUs, now
  std::optional<Bytes> free_memory{};  // memory that is free there, now
  std::optional<int> near_devices{};   // nearness to the container's devices and volumes, percent
  std::optional<double> affinity{};    // to the containers there; more is better
  std::string verdict{};               // why it was taken or not, in plain words
};

// Decides where containers run. Pure computation in microseconds on the event loop's thread: no
// file, no call to other modules, no waiting, no randomness; the same calls in the same order give
// the same placements. A call that fails changes nothing. Every returned plan lists all containers
// whose placement differs from before. Snapshots show the containers to be placed: those that are
// being created, created or running, and none that exited.
class Policy {
 public:
  virtual ~Policy() = default;

  virtual std::string_view name() const = 0;

  // An independent copy with the same state: a preview asks the copy and drops it.
  virtual std::unique_ptr<Policy> Clone() const = 0;

  // Takes over all containers of the snapshot and forgets its former state, except what explains
  // placements that stay, and times and orders that no placement tells: called on start, for each
  // list of what the runtime holds, and when the policy becomes the active one. Containers with a
  // placement that is legal here keep exactly that; only the others get a new one.
  virtual StatusOr<Plan> Reconcile(const Snapshot& snapshot) = 0;

  // Called when a pod was created whose containers will soon be placed, so that slow work, such as
  // reading its annotations, can be done now. Decisions must not depend on whether this was called.
  virtual void Prepare(const Pod& pod);

  // Places a new container (in the snapshot already, state kCreating). `predecessor` is the former
  // attempt of the same container, or nullptr; it is no longer in the snapshot, and has its last
  // placement. The policy prefers its CPUs; CPUs that it still holds count as free for the new
  // container, and a success releases them. ResourceExhausted names the need, what is free and
  // which containers have the rest; InvalidArgument says that such a need can never be met. The
  // caller adds the container's name.
  virtual StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod,
                                  const Container& container, const Container* predecessor) = 0;

  // The container's requirements changed (in the snapshot already). Keeps as many of its CPUs as
  // possible.
  virtual StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                                const Container& container) = 0;

  // Called when the container has run for Placement::look_again_after. Returns the changes for it,
  // which may be an empty plan. A new time in its placement also counts from the container's start,
  // so it must be later than the former one.
  virtual StatusOr<Plan> LookAgain(const Snapshot& snapshot, ContainerKey key);

  // Whether pools keep other pools' containers off their CPUs, which then belong to containers
  // without exclusive CPUs, too.
  virtual bool KeepsPoolsApart() const { return false; }
  // Whether the container may have this place again, by an earlier decision of this policy, as far
  // as pools that are kept apart are concerned. `key`: the container, or the one that has its
  // place.
  virtual bool MayReturn(ContainerKey /*key*/, const Placement& /*former*/) const { return true; }

  // The container is gone (from the snapshot already). Unknown keys are fine and change nothing.
  virtual StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) = 0;

  // Improves placements of containers that exist, on demand only; an empty plan when nothing would
  // be gained. Exclusive CPUs of a running container, which must not move by themselves unless its
  // annotations allow it, stay.
  virtual StatusOr<Plan> Rebalance(const Snapshot& snapshot);

  // The pools whose containers share CPUs, with all these containers. Empty if there is only one
  // such pool, or if containers cannot be moved between them.
  virtual policy::SharedPools Shared(const Snapshot& snapshot) const;
  // The names of the shared pools to which this container may move now, best first. Empty if it
  // must stay, for example because of its annotations.
  virtual std::vector<std::string> TargetsOf(const Snapshot& snapshot, ContainerKey key) const;
  // Moves containers to other pools, each to one of its targets. FailedPrecondition if one cannot
  // move there; then nothing changes.
  virtual StatusOr<Plan> MoveShared(const Snapshot& snapshot,
                                    std::span<const policy::PoolMove> moves);

  // Explains the present placement of a container beyond Placement::reason: one line for each
  // candidate that was considered, best first, with the reason against it. Empty if no more is
  // known, as after a restart.
  virtual std::vector<std::string> Explain(ContainerKey key) const;

  // The considered places of Explain as a table, best first.
  virtual std::vector<ConsideredPlace> Considered(ContainerKey key) const;

  // Single changes of options or annotations ("Alignment: prefer") that would let a container in
  // that Allocate or Update has just refused. Empty if only more room or a smaller request helps.
  virtual std::vector<std::string> WaysIn(const Snapshot& snapshot, const Pod& pod,
                                          const Container& container) const;

  // One sentence for each annotation of the pod that has no effect because only pods of other
  // namespaces may use it (PrivilegedNamespaces); it names annotation and key. The reason of the
  // placement contains these sentences, too.
  virtual std::vector<std::string> Unheeded(const Pod& /*pod*/,
                                            const Container& /*container*/) const {
    return {};
  }

  // The classes that the container gets from its pool, of kinds for which its pod chooses none.
  virtual ClassNames ClassesOf(ContainerKey key) const;

  // Whether containers need locality hints (Container::hints): finding them reads files.
  virtual bool WantsHints() const { return false; }
  // Whether containers also need hints from the kubelet's pod-resources; if so, the kubelet is
  // asked.
  virtual bool WantsPodResources() const { return false; }

  // Whether placements follow the containers' use; if so, FollowUse is called periodically.
  virtual bool FollowsUse() const { return false; }
  // Plans changes by the containers' use until now; the plan may be empty. A use that was not
  // measured is not guessed, and no other decision waits for this.
  virtual StatusOr<Plan> FollowUse(const Snapshot& snapshot, const policy::MeasuredUse& use);

  // The zones that `cri-resmgr-ctl pools` shows.
  virtual std::vector<Zone> Zones(const Snapshot& snapshot) const = 0;
};

}  // namespace resmgr
