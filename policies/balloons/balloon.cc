// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon.h"

#include <algorithm>
#include <set>

#include "pkg/base/ids.h"

namespace resmgr {
namespace {

uint64_t KeyBit(ContainerKey key) {
  return uint64_t{1} << (static_cast<uint64_t>(key) % 64);
}

}  // namespace

uint64_t PodBit(const PodSandboxId& pod) {
  return uint64_t{1} << (TextHash()(pod) % 64);
}

CpuSet BalloonPart::All() const {
  CpuSet all = cpus;
  for (const BalloonPart& below : parts)
    all |= below.All();
  return all;
}

std::vector<CpuSet> BalloonPart::Leaves() const {
  if (parts.empty()) return {cpus};
  std::vector<CpuSet> leaves;
  for (const BalloonPart& below : parts)
    for (const CpuSet& leaf : below.Leaves())
      leaves.push_back(leaf);
  return leaves;
}

void Balloon::Recount() {
  if (!part.parts.empty()) all = part.All();
  size = cpus().size();
  request = demand = guest_demand = 0;
  key_bits = pod_bits = 0;
  for (const BalloonMemberPtr& member : members) {
    request += member->request;
    demand += member->demand;
    if (member->type != type) guest_demand += member->demand;
    key_bits |= KeyBit(member->key);
    pod_bits |= member->pod_bit;
  }
}

BalloonMemberPtr Balloon::MemberOf(ContainerKey key) const {
  if ((key_bits & KeyBit(key)) == 0) return nullptr;
  for (const BalloonMemberPtr& member : members) {
    if (member->key == key) return member;
  }
  return nullptr;
}

int Balloon::Pods(const BalloonMember& with) const {
  std::set<PodSandboxId> pods = {with.pod};
  for (const BalloonMemberPtr& member : members)
    if (member->type == type || with.type != type) pods.insert(member->pod);
  return static_cast<int>(pods.size());
}

bool Balloon::HoldsPodOf(const BalloonMember& other) const {
  if ((pod_bits & other.pod_bit) == 0) return false;
  return std::ranges::any_of(
      members, [&](const BalloonMemberPtr& member) { return member->pod == other.pod; });
}

bool Balloon::PodsFit(const Balloon& other, int64_t most) const {
  if (most == 0) return true;
  const bool with_guests =
      std::ranges::any_of(members, [this](const auto& member) { return member->type != type; });
  std::set<PodSandboxId> pods;
  for (const Balloon* const balloon : {this, &other}) {
    for (const BalloonMemberPtr& member : balloon->members)
      if (with_guests || member->type == type) pods.insert(member->pod);
  }
  return static_cast<int64_t>(pods.size()) <= most;
}

}  // namespace resmgr
