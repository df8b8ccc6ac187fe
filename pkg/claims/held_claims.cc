// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/held_claims.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pkg/claims/claim_options.h"
#include "pkg/claims/claim_place.h"

namespace resmgr {
namespace {

// Guaranteed pods have a memory limit; this one is so small that it does not affect the place.
constexpr Bytes kPartMemory{1 << 20};

std::string PartName(const Claim& claim, size_t part) {
  return claim.parts.size() == 1 ? "claim" : fmt::format("claim[{}]", part);
}

LocalityHint HintOf(const ClaimPart& part, const ClaimPlace& place, const Machine& machine) {
  return {.source = fmt::format("device {}", part.device),
          .cpus = place.cpus,
          .nodes = machine.NodesOf(place.cpus)};
}

}  // namespace

ClaimGrant HeldClaim::Grant() const {
  ClaimGrant grant{.uid = claim.uid, .cpus = {}};
  for (const Container& part : parts) {
    grant.cpus.push_back(part.placement.exclusive);
    if (claim.options.avoid_siblings) grant.seen.push_back(part.placement.cpus.value_or(CpuSet()));
  }
  return grant;
}

CpuSet HeldClaim::Cpus() const {
  CpuSet cpus;
  for (const Container& part : parts)
    cpus |= part.placement.exclusive;
  return cpus;
}

CpuSet HeldClaim::Seen() const {
  return Grant().Seen();
}

std::string HeldClaim::Title() const {
  return fmt::format("claim {}/{}", claim.namespace_name, claim.name);
}

const HeldClaim* HeldClaims::Find(const std::string& uid) const {
  const auto found = std::ranges::find(
      all_, uid, [](const HeldClaim& held) -> const std::string& { return held.claim.uid; });
  return found == all_.end() ? nullptr : &*found;
}

const HeldClaim* HeldClaims::FindByPart(ContainerKey key) const {
  for (const HeldClaim& held : all_) {
    for (const Container& part : held.parts)
      if (part.key == key) return &held;
  }
  return nullptr;
}

Container* HeldClaims::FindPart(ContainerKey key) {
  for (HeldClaim& held : all_) {
    for (Container& part : held.parts)
      if (part.key == key) return &part;
  }
  return nullptr;
}

const Pod* HeldClaims::FindPod(const PodSandboxId& id) const {
  for (const HeldClaim& held : all_)
    if (held.pod.id == id) return &held.pod;
  return nullptr;
}

HeldClaim& HeldClaims::Add(const Claim& claim) {
  HeldClaim& held = all_.emplace_back(HeldClaim{.claim = claim});
  held.pod.id = PodSandboxId(fmt::format("claim:{}", claim.uid));
  held.pod.uid = PodUid(claim.uid);
  held.pod.name = claim.name;
  held.pod.namespace_name = claim.namespace_name;
  held.pod.qos = QosClass::kGuaranteed;
  held.pod.annotations = AnnotationsFor(claim.options);
  return held;
}

Container& HeldClaims::AddPart(HeldClaim& held, const Machine& machine) {
  const size_t index = held.parts.size();
  const ClaimPart& part = held.claim.parts.at(index);
  Container& container = held.parts.emplace_back();
  container.key = ContainerKey{kFirstKey + made_++};
  container.pod_id = held.pod.id;
  container.name = PartName(held.claim, index);
  container.requirements = {.cpu_request = {int64_t{1000} * part.cpus},
                            .cpu_limit = {int64_t{1000} * part.cpus},
                            .memory_request = kPartMemory,
                            .memory_limit = kPartMemory};
  const StatusOr<ClaimPlace> place = PlaceOf(part, held.claim.options, machine);
  if (place.ok() && !place->name.empty() && !place->cpus.empty())
    container.hints.push_back(HintOf(part, *place, machine));
  return container;
}

size_t HeldClaims::Lost() const {
  std::ptrdiff_t lost = 0;
  for (const HeldClaim& held : all_)
    lost += std::ranges::count_if(held.parts, IsLost);
  return static_cast<size_t>(lost);
}

void HeldClaims::Remove(const std::string& uid) {
  std::erase_if(all_, [&uid](const HeldClaim& held) { return held.claim.uid == uid; });
}

bool HeldClaims::Renew(const Claim& claim) {
  for (HeldClaim& held : all_) {
    if (held.claim.uid != claim.uid) continue;
    const Claim before = held.claim;
    held.claim.pods = claim.pods;
    held.claim.pools = claim.pools;
    held.claim.pod_claim = claim.pod_claim;
    held.claim.driver = claim.driver;
    return held.claim != before;
  }
  return false;
}

std::vector<const HeldClaim*> HeldClaims::Of(std::span<const std::string> uids) const {
  std::vector<const HeldClaim*> claims;
  for (const std::string& uid : uids)
    if (const HeldClaim* const held = Find(uid)) claims.push_back(held);
  return claims;
}

CpuSet HeldClaims::Cpus() const {
  CpuSet cpus;
  for (const HeldClaim& held : all_)
    cpus |= held.Cpus();
  return cpus;
}

Placement AsHeld(const HeldClaim& claim, const Container& part, Placement placement,
                 const Machine& machine) {
  const bool hides = claim.claim.options.avoid_siblings &&
                     placement.exclusive.size() < part.requirements.cpu_request.Whole();
  if (hides) {
    // The part gets no other threads of its cores: those were offline, and may be free.
    const CpuSet& had = part.placement.exclusive;
    const CpuSet not_its_own = machine.WithSiblings(had) - had;
    placement.exclusive |= machine.WithSiblings(placement.exclusive) - not_its_own;
  }
  return placement;
}

Placement PlacementOfCarrier(std::span<const HeldClaim* const> claims) {
  Placement placement;
  CpuSet cpus;
  bool own = true;
  for (const HeldClaim* const held : claims) {
    cpus |= held->Seen();
    own = own && !held->claim.options.share_within_pod;
    placement.reason += placement.reason.empty() ? "" : ", ";
    placement.reason += held->Title();
    for (const Container& part : held->parts) {
      if (placement.pool.empty()) placement.pool = part.placement.pool;
    }
  }
  if (cpus.empty()) return {};
  if (own) placement.exclusive = cpus;
  placement.cpus = std::move(cpus);
  return placement;
}

}  // namespace resmgr
