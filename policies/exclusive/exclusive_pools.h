// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "pkg/allocator/exclusive_picker.h"
#include "pkg/base/status.h"
#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// What a container is entitled to.
struct CpuClaim {
  int exclusive = 0;      // whole CPUs that no other container uses
  bool shared = true;     // runs on the shared CPUs as well; always where `exclusive` is 0
  bool reserved = false;  // runs on the reserved CPUs instead, and the above does not count
  std::optional<bool> prefer_isolated;
  bool require_isolated = false;
  Alignment alignment = Alignment::kPrefer;  // of the exclusive CPUs
  // Bound to no CPUs at all, and the above does not count: its request weighs on the shared CPUs.
  bool unbound = false;
  std::string why;  // the rule that says so: "Burstable pod"
};

// In a placement: without exclusive CPUs.
inline constexpr std::string_view kSharedPool = "shared";

// The exclusive and shared CPUs of a node, and which containers have them: the rule says what a
// container is entitled to, this finds the CPUs, keeps track of them and makes the plans. The calls
// are those of Policy (pkg/policy/policy.h), with the same promises. Loop's thread only; a copy is
// independent of its original.
//
// Everything can be found again from the placements of the snapshot. Where those come from a
// runtime, which knows nothing of exclusive CPUs, a container's exclusive CPUs are those of its
// CPUs that no other container uses.
//
// A container with exclusive CPUs only runs without CFS quota if the options say so and its CPU
// shares tell how many these are (SharesTell of pkg/kube/cpu_arithmetic.h); one that runs on shared
// CPUs, too, keeps its quota, which alone bounds what it takes there. CPU shares and memory nodes
// stay as requested.
class ExclusivePools {
 public:
  struct Cpus {
    CpuSet shared;    // the shared set while nothing is granted
    CpuSet isolated;  // may be granted, no part of the shared set
    CpuSet reserved;  // never granted; may be part of the shared set
    // The reserved CPUs are shared while all others are granted.
    bool lend_reserved = false;
    // The part of the reserved CPUs that pods may ask for (PolicyContext::unreserved).
    MilliCpu unreserved{};
  };
  // What a container may have; pure.
  using ClaimRule = std::function<CpuClaim(const Pod&, const Container&)>;

  // The machine must outlive this.
  ExclusivePools(const Machine& machine, const ExclusiveOptions& options, const Cpus& cpus,
                 ClaimRule rule);

  Plan Reconcile(const Snapshot& snapshot);
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor);
  StatusOr<Plan> Update(const Snapshot& snapshot, const Pod& pod, const Container& container);
  Plan Release(const Snapshot& snapshot, ContainerKey key);
  Plan Rebalance(const Snapshot& snapshot);

  // The pools kSharedPool, "exclusive", and "isolated" and "reserved" where there are such CPUs.
  std::vector<Zone> Zones(const Snapshot& snapshot) const;
  std::vector<std::string> Explain(ContainerKey key) const;

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

  Plan Join(const CpuClaim& claim, ContainerKey key);

  CpuSet Shared() const;
  // Never empty for good: see CheckShared.
  CpuSet SharedBeside(const CpuSet& granted) const;
  // CPUs that may ever be granted.
  CpuSet Grantable() const { return ordinary_ | cpus_.isolated; }
  // Those of them that count as exclusive CPUs of a container which is found together with others
  // on them: one that requires isolated CPUs is on ordinary ones only because it got none.
  CpuSet Ownable(const CpuClaim& claim) const {
    return claim.require_isolated ? cpus_.isolated : Grantable();
  }
  bool Legal(const CpuSet& cpus) const;

  Members MembersOf(const Snapshot& snapshot);
  void Adopt(const Members& members);
  void AdoptExact(const Members& members, const CpuSet& undisputed, bool alone);
  void AdoptMixed(const Members& members, const CpuSet& single_user);
  void AdoptUnclear(const Members& members, const CpuSet& undisputed);
  // Has exclusive and shared CPUs, and which are which is not known.
  static bool IsUnknownMix(const Member& member);
  void AdoptSome(const Member& member, const CpuSet& from, const CpuSet& preferred);
  void FinishGrowing(const Members& members);
  std::map<ContainerKey, std::string> GrantTheRest(const Members& members);

  StatusOr<Grant> Find(const CpuClaim& claim, const Pod& pod, const CpuSet& former,
                       const CpuSet& granted) const;
  StatusOr<Grant> Resize(const Grant& grant, const CpuClaim& claim) const;
  // Where they have to lie in one place (CpuClaim::alignment), as pools of their own.
  StatusOr<ExclusivePicker::Pick> TakeAligned(const CpuClaim& claim,
                                              const ExclusivePicker::Need& need,
                                              const CpuSet& granted) const;
  StatusOr<ExclusivePicker::Pick> GrowAligned(const CpuSet& current, const CpuClaim& claim) const;
  // The CPUs of the smallest place with so many of `current`, `needed` among them; empty when there
  // is none.
  CpuSet PlaceToKeep(const CpuSet& current, const CpuClaim& claim, const CpuSet& needed = {}) const;
  // What such a container may have of `free`.
  CpuSet Usable(const CpuClaim& claim, const CpuSet& free) const;
  Status WantOfPlace(const CpuClaim& claim, const CpuSet& current, const CpuSet& granted) const;
  // Gives it what it claims; where that is not free, but it asks for no more than before, it keeps
  // the exclusive CPUs that it has, or shares, and the claim says so.
  Status GiveOrSettle(const Snapshot& snapshot, const Pod& pod, ContainerKey key, CpuClaim& claim);
  int AskedFor(ContainerKey key) const;
  // It runs on the shared CPUs, as a container that had no room when it was placed, and no decision
  // about it is known.
  bool WasFoundSharing(const Placement& present, const CpuSet& shared) const;
  Status Refusal(const Status& shortage, const Snapshot& snapshot, const CpuClaim& claim,
                 ContainerKey key) const;
  // Whether it would be granted its CPUs if no other container had any.
  bool EverFits(const CpuClaim& claim) const;
  // How many CPUs one container with such a claim can have at most.
  int Most(const CpuClaim& claim) const;
  // With `more` exclusive CPUs than are granted: what kubelets promised pods as overhead stays
  // free.
  Status CheckOverhead(const Snapshot& snapshot, int more) const;
  Status CheckShared(const CpuSet& cpus, const CpuSet& granted) const;
  void Give(ContainerKey key, Grant grant);
  void Take(ContainerKey key);
  // Remembers for later containers of its pod what one had that ends.
  void Remember(const Grant& grant);

  // Whether some of its CPUs are shared ones, or all are.
  bool Shares(const CpuClaim& claim, ContainerKey key) const;
  Placement PlacementOf(const CpuClaim& claim, ContainerKey key) const;
  // The same where it is to stay: a placement is long to move.
  void Place(const CpuClaim& claim, ContainerKey key, Placement& empty) const;
  void PlaceShared(std::string_view reason, Placement& empty) const;
  void AddSharer(ContainerKey key);
  void RemoveSharer(ContainerKey key);
  // Adds the sharing containers to the plan where the shared CPUs are others than before.
  void TellSharers(const CpuSet& before, ContainerKey except, Plan& plan) const;

  const Machine& machine_;
  const ExclusivePicker picker_;
  const AlignedPlaces places_;
  const bool lift_quota_;
  const Cpus cpus_;
  const CpuSet ordinary_;  // shared ones that may be granted
  const ClaimRule rule_;
  std::map<ContainerKey, Grant> grants_;
  CpuSet granted_;  // the union of them
  // How many exclusive CPUs a container asked for that has fewer, or none.
  std::map<ContainerKey, int> wanting_;
  std::map<PodSandboxId, CpuSet> left_by_pods_;
  std::deque<PodSandboxId> remembered_pods_;  // oldest first
  std::vector<ContainerKey> sharers_;         // all with shared CPUs, ascending
};

}  // namespace resmgr
