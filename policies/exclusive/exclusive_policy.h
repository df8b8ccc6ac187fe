// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "pkg/allocator/exclusive_picker.h"
#include "pkg/base/status.h"
#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/pinning.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/cpu_users.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The CPUs that a container is entitled to.
struct CpuClaim {
  int exclusive = 0;      // whole CPUs that no other container uses
  bool shared = true;     // runs on the shared CPUs as well; always true if `exclusive` is 0
  bool reserved = false;  // runs on the reserved CPUs instead; the fields above are ignored
  std::optional<bool> prefer_isolated;
  bool require_isolated = false;
  Alignment alignment = Alignment::kPrefer;  // for the exclusive CPUs
  // The container is not bound to CPUs: the fields above are ignored, and its request counts
  // against the shared CPUs.
  bool unbound = false;
  std::string why;  // the rule that applies: "Burstable pod"
};

// The pool of a placement without exclusive CPUs.
inline constexpr std::string_view kSharedPool = "shared";

// A policy that gives some containers whole CPUs exclusively and lets all others share the rest: a
// rule decides a container's entitlement, this class finds the CPUs, keeps track of them and makes
// the plans. Loop's thread only; a copy is independent of its original.
//
// All state can be derived from the placements of the snapshot. If these come from a runtime, which
// does not distinguish exclusive CPUs, a container's exclusive CPUs are those of its CPUs that no
// other container uses.
//
// A container with exclusive CPUs only runs without CFS quota if the options say so and its CPU
// shares tell the number of these CPUs (SharesTell of pkg/kube/cpu_arithmetic.h); one that runs on
// shared CPUs, too, keeps its quota, which alone limits its use of these. CPU shares and memory
// nodes stay as requested.
class ExclusivePolicy final : public Policy {
 public:
  struct Cpus {
    CpuSet shared;    // the shared set while nothing is granted
    CpuSet isolated;  // may be granted; never part of the shared set
    CpuSet reserved;  // never granted; may be part of the shared set
    // Whether containers share the reserved CPUs while all other CPUs are granted.
    bool lend_reserved = false;
    // The part of the reserved CPUs that pods may ask for (PolicyContext::unreserved).
    MilliCpu unreserved{};
    CpuSet offline{};  // PolicyContext::offline
  };
  // Pure functions; they are only called for containers that may be bound.
  struct Rules {
    // A container's entitlement.
    std::function<CpuClaim(const Pod&, const Container&)> claim;
    // Why some of its annotations have no effect; empty if all have one.
    std::function<std::string(const Pod&, const Container&)> unheeded{};
  };

  // `name` is the policy's name in the configuration, a constant. The machine must outlive this
  // object.
  ExclusivePolicy(std::string_view name, const Machine& machine, const ExclusiveOptions& options,
                  const Cpus& cpus, PinningRule pinning, Rules rules);

  std::string_view name() const override { return name_; }
  std::unique_ptr<Policy> Clone() const override {
    return std::make_unique<ExclusivePolicy>(*this);
  }
  StatusOr<Plan> Reconcile(const Snapshot& snapshot) override;
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override;
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod,
                        const Container& container) override;
  StatusOr<Plan> Release(const Snapshot& snapshot, ContainerKey key) override;
  StatusOr<Plan> Rebalance(const Snapshot& snapshot) override;

  // The pools kSharedPool, "exclusive", and "isolated" and "reserved" if there are such CPUs.
  std::vector<Zone> Zones(const Snapshot& snapshot) const override;
  std::vector<std::string> Explain(ContainerKey key) const override;
  // The considered places, with the CPUs that were free when the container was placed.
  std::vector<ConsideredPlace> Considered(ContainerKey key) const override;
  std::vector<std::string> WaysIn(const Snapshot& snapshot, const Pod& pod,
                                  const Container& container) const override;
  std::vector<std::string> Unheeded(const Pod& pod, const Container& container) const override;

 private:
  struct Grant {
    CpuSet cpus;
    std::string reason;
    PodSandboxId pod;
    std::vector<ExclusivePicker::Candidate> considered;
  };
  struct Member {
    const Pod* pod = nullptr;
    const Container* container = nullptr;
    CpuClaim claim;
  };
  using Members = std::vector<Member>;

  CpuClaim ClaimOf(const Pod& pod, const Container& container) const;
  Plan Join(const CpuClaim& claim, ContainerKey key);

  CpuSet SharedNow() const;
  // The shared CPUs if `granted` are exclusive. May only be empty within a decision: see
  // CheckShared.
  CpuSet SharedBeside(const CpuSet& granted) const;
  // CPUs that can be granted at all.
  CpuSet Grantable() const { return ordinary_ | cpus_.isolated; }
  // The grantable CPUs that may be a container's exclusive ones if other containers were found on
  // them, too: a container that requires isolated CPUs is on ordinary ones only if it got none
  // exclusively.
  CpuSet Ownable(const CpuClaim& claim) const {
    return claim.require_isolated ? cpus_.isolated : Grantable();
  }
  bool Legal(const CpuSet& cpus) const;

  Members MembersOf(const Snapshot& snapshot);
  void TakeExplanations(std::map<ContainerKey, Grant>& former);
  void AdoptExact(const Members& members, const CpuUsers& users, bool alone);
  void AdoptMixed(const Members& members, const CpuUsers& users);
  void AdoptUnclear(const Members& members, const CpuUsers& running);
  // Whether the container has exclusive and shared CPUs, and it is not known which are which.
  static bool IsUnknownMix(const Member& member);
  void AdoptSome(const Member& member, const CpuSet& from, const CpuSet& preferred);
  void FinishGrowing(const Members& members);
  std::map<ContainerKey, std::string> GrantTheRest(const Members& members);

  // CPUs that are preferred for a grant.
  struct Former {
    CpuSet cpus{};
    bool is_place = false;  // ExclusivePicker::Need::former_is_place
  };
  StatusOr<Grant> Find(const CpuClaim& claim, const Pod& pod, const Former& former,
                       const CpuSet& granted) const;
  StatusOr<Grant> Resize(const Grant& grant, const CpuClaim& claim) const;
  // Chooses among the free CPUs in `ordinary` and `isolated`.
  using Choice = std::function<StatusOr<ExclusivePicker::Pick>(const CpuSet& ordinary,
                                                               const CpuSet& isolated)>;
  // Lets `choose` pick CPUs that are not in `granted`. Shared containers, future ones included,
  // need a CPU to run on: if the choice would take the last one, it is repeated without that CPU,
  // since isolated CPUs may be chosen in its place.
  StatusOr<ExclusivePicker::Pick> Pick(const Choice& choose, const CpuSet& granted) const;
  // Picks CPUs that must be in one place (CpuClaim::alignment).
  StatusOr<ExclusivePicker::Pick> TakeAligned(const CpuClaim& claim,
                                              const ExclusivePicker::Need& need,
                                              const CpuSet& ordinary, const CpuSet& isolated) const;
  // Picks CPUs of `free` in addition to `current`.
  StatusOr<ExclusivePicker::Pick> Grow(const CpuSet& current, const CpuClaim& claim,
                                       const CpuSet& free) const;
  StatusOr<ExclusivePicker::Pick> GrowAligned(const CpuSet& current, const CpuClaim& claim,
                                              const CpuSet& free) const;
  // The CPUs of the smallest place that has enough of `current`, with all of `needed`; empty if
  // there is none.
  CpuSet PlaceToKeep(const CpuSet& current, const CpuClaim& claim, const CpuSet& needed = {}) const;
  // The part of `free` that a container with this claim may get; Usable: as far as the options
  // allow.
  CpuSet Allowed(const CpuClaim& claim, const CpuSet& free) const;
  CpuSet Usable(const CpuClaim& claim, const CpuSet& free) const;
  Status WantOfPlace(const CpuClaim& claim, const CpuSet& current, const CpuSet& now) const;
  // Grants the claim. If that is not possible, but the claim is not larger than before, the
  // container keeps its exclusive CPUs, or shares, and the claim is changed to that.
  Status GiveOrSettle(const Snapshot& snapshot, const Pod& pod, ContainerKey key, CpuClaim& claim);
  int AskedFor(ContainerKey key) const;
  // Whether the container was found on the shared CPUs, and no decision about it is known: it is
  // taken for one that had no room when it was placed.
  bool WasFoundSharing(const Placement& present, const CpuSet& shared) const;
  Status Refusal(const Status& shortage, const Snapshot& snapshot, const CpuClaim& claim,
                 ContainerKey key) const;
  // Whether the claim could be granted if no other container had any exclusive CPUs.
  bool EverFits(const CpuClaim& claim) const;
  // The highest number of CPUs that one container with such a claim can have.
  int Most(const CpuClaim& claim) const;
  // Checks that the overhead that kubelets promised to pods stays free with `more` further
  // exclusive CPUs.
  Status CheckOverhead(const Snapshot& snapshot, int more) const;
  // Refuses `cpus` if they are the last shared ones beside `granted`.
  Status CheckShared(const CpuSet& cpus, const CpuSet& granted) const;
  void Give(ContainerKey key, Grant grant);
  void Take(ContainerKey key);
  // Remembers the CPUs of an ending container for later containers of its pod.
  void Remember(const Grant& grant);

  // Whether some or all of the container's CPUs are shared ones.
  bool Shares(const CpuClaim& claim, ContainerKey key) const;
  // Writes into `empty`, since a placement is expensive to move.
  void Place(const CpuClaim& claim, ContainerKey key, Placement& empty) const;
  void PlaceShared(std::string_view reason, Placement& empty) const;
  void AddSharer(ContainerKey key);
  void RemoveSharer(ContainerKey key);
  // Adds the sharing containers to the plan if the shared CPUs have changed.
  void TellSharers(const CpuSet& before, ContainerKey except, Plan& plan) const;

  const std::string_view name_;
  const Machine& machine_;
  const ExclusivePicker picker_;
  const AlignedPlaces places_;
  const ExclusiveOptions options_;
  const Cpus cpus_;
  const CpuSet ordinary_;  // shared CPUs that may be granted
  const PinningRule pinning_;
  const Rules rules_;
  std::map<ContainerKey, Grant> grants_;
  CpuSet granted_;  // all CPUs in grants_
  // Containers with fewer exclusive CPUs than requested, or none, and the requested number.
  std::map<ContainerKey, int> wanting_;
  std::map<PodSandboxId, CpuSet> left_by_pods_;
  std::deque<PodSandboxId> remembered_pods_;  // oldest first
  std::vector<ContainerKey> sharers_;         // containers with shared CPUs, ascending
};

}  // namespace resmgr
