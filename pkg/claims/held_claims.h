// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "pkg/claims/claim.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The claims that containers carry, by uid. Containers without claims are not in it.
using ClaimCarriers = std::map<ContainerKey, std::vector<std::string>>;

// A claim with its CPUs. For policies each part is a running container of a pod of its own.
struct HeldClaim {
  Claim claim;
  Pod pod{};
  std::vector<Container> parts{};  // those that have a place; `placement` is what was granted

  ClaimGrant Grant() const;
  // CPUs of all parts.
  CpuSet Cpus() const;
  // The claim's CPUs that its containers see.
  CpuSet Seen() const;
  // "claim NAMESPACE/NAME", for messages and reasons.
  std::string Title() const;
};

// The claims that hold CPUs, in the order in which they came. A value.
class HeldClaims {
 public:
  bool empty() const { return all_.empty(); }
  const std::vector<HeldClaim>& all() const { return all_; }

  const HeldClaim* Find(const std::string& uid) const;
  // By the key of one of its parts.
  const HeldClaim* FindByPart(ContainerKey key) const;
  // nullptr: no part has this key.
  Container* FindPart(ContainerKey key);
  const Pod* FindPod(const PodSandboxId& id) const;

  // A claim without parts as yet. The reference is valid until the next change of the claims.
  HeldClaim& Add(const Claim& claim);
  // The container that stands for the next part of the claim, without a place.
  Container& AddPart(HeldClaim& held, const Machine& machine);
  void Remove(const std::string& uid);
  // Takes pods, pools, pod_claim and driver of `claim`, which is held and asks for the same: other
  // pods may use it now. False: nothing has changed.
  bool Renew(const Claim& claim);

  // The claims of `uids` that are held.
  std::vector<const HeldClaim*> Of(std::span<const std::string> uids) const;
  // CPUs of all claims.
  CpuSet Cpus() const;

  // Whether the part had CPUs and has none any more.
  static bool IsLost(const Container& part) {
    return part.state == ContainerState::kRunning && part.placement.exclusive.empty();
  }
  bool HasLost() const;
  // Keys of parts: above those of all containers, those that exist and those that are imagined.
  static bool IsPart(ContainerKey key) {
    return static_cast<uint64_t>(key) >= kFirstKey && key != kNoPart;
  }
  // A key that no part has.
  static constexpr ContainerKey kNoPart{~uint64_t{0}};

 private:
  static constexpr uint64_t kFirstKey = uint64_t{3} << 62;

  std::vector<HeldClaim> all_;
  uint64_t made_ = 0;  // parts, ever
};

// The placement of a claim's part with all CPUs that the claim holds. A policy that lets containers
// see one thread of each core names only these threads, and the claim holds their siblings, too.
// `cpus` stays the CPUs that containers see.
Placement AsHeld(const HeldClaim& claim, const Container& part, Placement placement,
                 const Machine& machine);

// Where a container that carries these claims runs; no CPUs when there is none. Its memory is not
// bound, since no policy counts it: near nodes are used first. CPUs of a claim that containers of a
// pod share are exclusive to the pod, and to none of its containers.
Placement PlacementOfCarrier(std::span<const HeldClaim* const> claims);

}  // namespace resmgr
