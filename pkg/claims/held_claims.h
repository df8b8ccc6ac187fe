// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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

// A claim with its CPUs. Policies see each part as a running container of a pod made for the claim.
struct HeldClaim {
  Claim claim;
  Pod pod{};
  std::vector<Container> parts{};  // the parts with a place; `placement` is what was granted

  ClaimGrant Grant() const;
  // CPUs of all parts.
  CpuSet Cpus() const;
  // The claim's CPUs that its containers see.
  CpuSet Seen() const;
  // "claim NAMESPACE/NAME", for messages and reasons.
  std::string Title() const;
};

// The claims that hold CPUs, in the order of arrival. A value type.
class HeldClaims {
 public:
  bool empty() const { return all_.empty(); }
  const std::vector<HeldClaim>& all() const { return all_; }

  const HeldClaim* Find(const std::string& uid) const;
  // The claim that has a part with this key.
  const HeldClaim* FindByPart(ContainerKey key) const;
  // nullptr: no part has this key.
  Container* FindPart(ContainerKey key);
  const Pod* FindPod(const PodSandboxId& id) const;

  // Adds the claim, without parts. The reference is valid until the next change of the claims.
  HeldClaim& Add(const Claim& claim);
  // Adds the container that stands for the next part of the claim, without a place.
  Container& AddPart(HeldClaim& held, const Machine& machine);
  void Remove(const std::string& uid);
  // Takes over pods, pools, pod_claim and driver of `claim`, which must be held with the same
  // request (Claim::AsksAs): other pods may use it now. False: nothing has changed.
  bool Renew(const Claim& claim);

  // Returns the held ones among the claims `uids`.
  std::vector<const HeldClaim*> Of(std::span<const std::string> uids) const;
  // CPUs of all claims.
  CpuSet Cpus() const;

  // Whether the part had CPUs and has none any more.
  static bool IsLost(const Container& part) {
    return part.state == ContainerState::kRunning && part.placement.exclusive.empty();
  }
  // The number of such parts.
  size_t Lost() const;
  // Whether the key is one of a part: these are above all keys of containers, real or imagined.
  static bool IsPart(ContainerKey key) {
    return static_cast<uint64_t>(key) >= kFirstKey && key != kNoPart;
  }
  // A key that no part has.
  static constexpr ContainerKey kNoPart{~uint64_t{0}};

 private:
  static constexpr uint64_t kFirstKey = uint64_t{3} << 62;

  std::vector<HeldClaim> all_;
  uint64_t made_ = 0;  // number of parts made since the start
};

// The placement of a claim's part with all CPUs that the claim holds. A policy that lets containers
// see one thread of each core returns only these threads; the claim also holds the other threads of
// the cores. `cpus` stays the CPUs that containers see.
Placement AsHeld(const HeldClaim& claim, const Container& part, Placement placement,
                 const Machine& machine);

// Where a container that carries these claims runs; without CPUs if they have none. Its memory is
// not bound, since no policy accounts for it: the kernel prefers near nodes by itself. If
// containers of a pod share a claim, its CPUs are exclusive to the pod, but to none of the
// containers.
Placement PlacementOfCarrier(std::span<const HeldClaim* const> claims);

}  // namespace resmgr
