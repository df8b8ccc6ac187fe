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
  std::string kind{};  // "package", "die", "numa", "l3"; empty where pools are no part of a machine
  CpuSet cpus{};       // all that belong to it
  CpuSet exclusive{};  // granted to single containers
  CpuSet shared{};     // where its shared containers run
  NodeSet mems{};
  MilliCpu shared_request{};  // sum of its shared containers' requests
  // Milli-CPUs that can still be requested of its shared CPUs; below 0 where requests exceed them.
  // nullopt: their number less `shared_request`.
  std::optional<MilliCpu> free{};
  Bytes memory_capacity{};  // 0 when the policy does not account for memory
  Bytes memory_used{};      // granted to the containers of this zone and of those below it
  int containers = 0;       // containers whose placement names this zone as its pool
  Overhead overhead{};      // overhead of all pods that is debited from this zone; counts in `free`
  ClassNames classes{};     // classes of its CPUs, also without containers
};

// A place that was considered for a container, for introspection. Fields that a policy does not
// consider are absent.
struct ConsideredPlace {
  std::string name{};
  std::optional<MilliCpu> free{};      // free milli-CPUs of its CPUs, now
  std::optional<Bytes> free_memory{};  // likewise
  std::optional<int> near_devices{};   // how near to the devices and volumes, in percent
  std::optional<double> affinity{};    // to the containers there; more is better
  std::string verdict{};               // why it was taken or not, in plain words
};

// Decides where containers run. Pure computation of microseconds on the event loop's thread: no
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

  // Takes over all containers of the snapshot, forgetting what it held: on start, after a reconnect
  // and when it becomes the active policy. Containers with a placement that is legal here keep it
  // exactly; only the others get a new one.
  virtual StatusOr<Plan> Reconcile(const Snapshot& snapshot) = 0;

  // A pod was created whose containers are about to be placed: slow work, as reading its
  // annotations, can be done now. Decisions must not depend on whether this was called.
  virtual void Prepare(const Pod& pod);

  // Places a new container (in the snapshot already, state kCreating). `predecessor` is the former
  // incarnation of the same container, or nullptr; it is not in the snapshot any more, and its
  // placement is the last one that it had. Its CPUs are preferred; those that it still holds count
  // as free for the new container and are released by a success. ResourceExhausted names the need,
  // what is free and which containers have the rest; InvalidArgument says that such a need can
  // never be met. The caller adds the container's name.
  virtual StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod,
                                  const Container& container, const Container* predecessor) = 0;

  // The container's requirements changed (in the snapshot already). Keeps as many of its CPUs as
  // possible.
  virtual StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                                const Container& container) = 0;

  // Called when the container has run for Placement::look_again_after. Returns the changes for it,
  // an empty plan if there are none. A new time in its placement, which counts from its start too,
  // has to be later than the former one.
  virtual StatusOr<Plan> LookAgain(const Snapshot& snapshot, ContainerKey key);

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
  // must stay, as its annotations may demand.
  virtual std::vector<std::string> TargetsOf(const Snapshot& snapshot, ContainerKey key) const;
  // Moves containers to other pools, each to one of its targets. FailedPrecondition when one cannot
  // move there, which changes nothing.
  virtual StatusOr<Plan> MoveShared(const Snapshot& snapshot,
                                    std::span<const policy::PoolMove> moves);

  // Explains the present placement of a container beyond Placement::reason: one line for each
  // candidate that was considered, best first, with the reason against it. Empty if no more is
  // known, as after a restart.
  virtual std::vector<std::string> Explain(ContainerKey key) const;

  // The same as a table: the considered places, best first.
  virtual std::vector<ConsideredPlace> Considered(ContainerKey key) const;

  // Single changes of options or annotations ("Alignment: prefer") that would let a container in
  // that Allocate or Update has just refused. Empty where only room or a smaller request helps.
  virtual std::vector<std::string> WaysIn(const Snapshot& snapshot, const Pod& pod,
                                          const Container& container) const;

  // Says which annotations of the pod have no effect, since only pods of other namespaces may use
  // them (PrivilegedNamespaces): one sentence each, which names annotation and key. The reason of
  // the placement contains it, too.
  virtual std::vector<std::string> Unheeded(const Pod& /*pod*/,
                                            const Container& /*container*/) const {
    return {};
  }

  // The classes that the container has from its pool, for kinds that its pod does not choose.
  virtual ClassNames ClassesOf(ContainerKey key) const;

  // Whether containers need locality hints (Container::hints): finding them reads files.
  virtual bool WantsHints() const { return false; }
  // Whether containers also need hints from the kubelet's pod-resources; if so, the kubelet is
  // asked.
  virtual bool WantsPodResources() const { return false; }

  // Whether placements follow the containers' use; if so, FollowUse is called periodically.
  virtual bool FollowsUse() const { return false; }
  // Plans changes by the containers' use until now; the plan may be empty. Other decisions do not
  // wait for it, and a use that was not measured is not guessed.
  virtual StatusOr<Plan> FollowUse(const Snapshot& snapshot, const policy::MeasuredUse& use);

  // The zones that `cri-resmgr-ctl pools` shows.
  virtual std::vector<Zone> Zones(const Snapshot& snapshot) const = 0;
};

}  // namespace resmgr
