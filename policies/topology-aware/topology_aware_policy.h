// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/policy/pinning.h"
#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "policies/topology-aware/affinity.h"
#include "policies/topology-aware/grant_book.h"
#include "policies/topology-aware/options.h"
#include "policies/topology-aware/placer.h"

namespace resmgr {

// Places containers by the machine's tree of packages, dies, NUMA nodes and L3 caches: each in the
// pool that suits it best, on exclusive CPUs, on the pool's shared set, or both. Rules, options,
// annotations and differences from cri-resource-manager and nri-plugins: README.md beside this
// file.
//
// Placements carry all state that it needs after a restart: the pool's name, the exclusive CPUs,
// the memory nodes.
class TopologyAwarePolicy : public Policy {
 public:
  // InvalidArgument if the section is invalid or no CPUs are left to share.
  static StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context);

  std::string_view name() const override { return "topology-aware"; }
  std::unique_ptr<Policy> Clone() const override;
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  void Prepare(const Pod& pod) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> LookAgain(const Snapshot& snapshot, ContainerKey key) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  StatusOr<Plan> Rebalance(const Snapshot& snapshot) override;
  policy::SharedPools Shared(const Snapshot& snapshot) const override;
  std::vector<std::string> TargetsOf(const Snapshot& snapshot, ContainerKey key) const override;
  StatusOr<Plan> MoveShared(const Snapshot& snapshot,
                            std::span<const policy::PoolMove> moves) override;
  std::vector<std::string> Explain(ContainerKey key) const override;
  std::vector<ConsideredPlace> Considered(ContainerKey key) const override;
  std::vector<std::string> WaysIn(const Snapshot& snapshot, const Pod& pod,
                                  const Container& container) const override;
  std::vector<std::string> Unheeded(const Pod& pod, const Container& container) const override;
  ClassNames ClassesOf(ContainerKey key) const override;
  bool WantsHints() const override { return true; }
  bool WantsPodResources() const override { return options_.pod_resource_api; }
  std::vector<Zone> Zones(const Snapshot& snapshot) const override;

 private:
  TopologyAwarePolicy(const PolicyContext& context, const TopologyAwareOptions& options,
                      PinningRule pinning);

  // The affinities of a container: those in its pod's annotation or, without one, those that the
  // options imply. Valid until the next call of AffinitiesOf.
  struct OwnAffinities {
    std::span<const Affinity> read{};
    std::vector<Affinity> implied{};
    std::string note{};  // about unreadable annotations

    std::span<const Affinity> list() const { return read.empty() ? implied : read; }
  };

  // The demand without affinities: these need all containers and only matter for a choice among all
  // pools.
  Demand MakeDemand(const Pod& pod, const Container& container) const;
  void AddAffinities(const Snapshot& snapshot, const Pod& pod, const Container& container,
                     Demand& demand);
  OwnAffinities AffinitiesOf(const Pod& pod, const Container& container);
  std::vector<Affinity> ImpliedAffinities(const Pod& pod) const;
  // Begins a cold start of a new container, whose grant is not in the book yet; the reason names
  // the result.
  void BeginColdStart(Grant& grant) const;
  // Give and Take change the book and the index of affinities together.
  void Give(const Pod& pod, const Container& container, Grant grant);
  std::optional<Grant> Take(ContainerKey key);
  // Enters the book's data of a container into the index.
  void Index(const Pod& pod, const Container& container);
  // The pool in which the container counts as a neighbour; nullopt if it is in none.
  std::optional<int> PoolOf(ContainerKey key) const;
  // `inherited`: the grant that the predecessor still had, taken out of the book; nullopt if it had
  // none.
  std::optional<Grant> PlaceLikeFormer(Demand& demand, const Container& container,
                                       const Container& predecessor,
                                       const std::optional<Grant>& inherited) const;
  std::optional<Grant> Resize(Demand& demand, const Grant& held) const;
  // For a container whose request did not grow and cannot be granted fully: a grant of its own
  // CPUs, or a share in its present place.
  std::optional<Grant> KeepFewer(const Demand& demand, const Grant& held) const;
  std::optional<Grant> ShareLess(const Demand& demand, const Grant& held, const Status& why) const;
  // Checks that a grant which is not in the book yet, and has more than `former` exclusive CPUs,
  // leaves free the CPUs that kubelets promised as overhead of pods.
  Status CheckOverhead(const Snapshot& snapshot, const Grant& grant, int former) const;
  Status Refusal(const Status& shortage, const Snapshot& snapshot, const Demand& demand,
                 ContainerKey key) const;
  std::string MemoryHolders(const Snapshot& snapshot, ContainerKey key) const;
  Zone ZoneOf(const Pool& pool) const;
  // Why a container with this grant must stay in its shared pool; empty if it may move.
  std::string WhyItStays(const Pod& pod, const Container& container, const Grant& grant) const;
  // Makes one move of MoveShared. FailedPrecondition, with nothing changed: it is impossible.
  Status MoveOne(const Snapshot& snapshot, const policy::PoolMove& move);
  // The plan with everything that changed since `before`, and with these containers.
  Plan MakePlan(const CpuSet& before, std::set<ContainerKey> keys);
  void IndexAgain(ContainerKey key);

  const TopologyAwareOptions options_;
  const PinningRule pinning_;
  GrantBook book_;
  const Placer placer_;
  AffinityReader affinities_;
  AffinityIndex index_;
};

PolicyFactory TopologyAwarePolicyFactory();

}  // namespace resmgr
