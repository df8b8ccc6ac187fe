// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/over_reserve_cache.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include <xxhash.h>

#include "test/support/scheduler_model/json_member.h"

namespace resmgr::test {
namespace {

using nlohmann::json;

// The value of a top-level attribute; "" without it.
std::string AttributeOf(const json& object, std::string_view name) {
  for (const json& attribute : MemberOf(object, "attributes"))
    if (attribute.at("name") == name) return attribute.at("value");
  return "";
}

bool Lists(const json& object, const std::string& resource) {
  for (const json& zone : MemberOf(object, "zones")) {
    for (const json& listed : MemberOf(zone, "resources"))
      if (listed.at("name") == resource) return true;
  }
  return false;
}

// Whether a pod with this request counts among those with exclusive resources.
bool IsExclusive(const std::string& resource, const ExactQuantity& quantity, PodQos qos,
                 const json& object) {
  if (quantity.IsZero()) return false;
  if (IsExtended(resource)) return Lists(object, resource);
  if (qos != PodQos::kGuaranteed || !IsAlignedByKubelet(resource)) return false;
  return resource != "cpu" || quantity.IsWhole();
}

}  // namespace

std::string SchedulerFingerprint(const std::vector<PodKey>& pods) {
  std::vector<uint64_t> sorted;
  for (const auto& [space, name] : pods) {
    const uint64_t seed = XXH64(space.data(), space.size(), 0);
    sorted.push_back(XXH64(name.data(), name.size(), seed));
  }
  std::sort(sorted.begin(), sorted.end());
  XXH64_state_t* const state = XXH64_createState();
  XXH64_reset(state, 0);
  for (const uint64_t hash : sorted) {
    std::array<unsigned char, 8> little{};
    for (size_t byte = 0; byte < little.size(); ++byte)
      little[byte] = static_cast<unsigned char>(hash >> (8 * byte));
    XXH64_update(state, little.data(), little.size());
  }
  const unsigned long long all = XXH64_digest(state);
  XXH64_freeState(state);
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", all);
  return "pfp0v001" + std::string(text.data());
}

OverReserveCache::OverReserveCache(json object, ResourceList allocatable)
    : allocatable_(std::move(allocatable)), taken_(std::move(object)), seen_(taken_) {}

void OverReserveCache::PodSeen(const PodKey& key, const PodView& pod, PodPhase phase) {
  if (!pods_.contains(key) && !own_.contains(key)) foreign_ = true;
  pods_[key] = {.view = pod, .phase = phase};
}

TopologyView OverReserveCache::Topology() const {
  TopologyView view = TopologyViewOf(taken_);
  for (const auto& [key, request] : reserved_)
    OverReserve(view, request);
  return view;
}

FilterAnswer OverReserveCache::Filter(const PodView& pod) {
  const TopologyView view = Topology();
  FilterAnswer answer =
      FilterByTopology({.allocatable = allocatable_, .topology = &view, .fresh = fresh()}, pod);
  if (fresh() && answer.verdict == FilterVerdict::kUnschedulable) dirty_ = true;
  return answer;
}

void OverReserveCache::Reserve(const PodKey& key, const PodView& pod) {
  own_[key] = true;
  reserved_[key] = pod.effective;
}

bool OverReserveCache::Counts(const Pod& pod, bool exclusive_only) const {
  if (pod.phase == PodPhase::kPending) return false;
  if (!exclusive_only) return true;
  return std::any_of(
      pod.view.containers.begin(), pod.view.containers.end(), [&](const auto& container) {
        return container.kind != SchedulerContainerKind::kInit &&
               std::any_of(container.requests.begin(), container.requests.end(),
                           [&](const auto& request) {
                             return IsExclusive(request.first, request.second, pod.view.qos, seen_);
                           });
      });
}

std::string OverReserveCache::FingerprintOfObject() const {
  return AttributeOf(seen_, "nodeTopologyPodsFingerprint");
}

std::string OverReserveCache::Fingerprint() const {
  const bool exclusive_only =
      AttributeOf(seen_, "nodeTopologyPodsFingerprintMethod") == "with-exclusive-resources";
  std::vector<PodKey> counted;
  for (const auto& [key, pod] : pods_)
    if (Counts(pod, exclusive_only)) counted.push_back(key);
  return SchedulerFingerprint(counted);
}

void OverReserveCache::Resync() {
  if (!dirty_ && !foreign_) return;
  if (FingerprintOfObject() != Fingerprint()) return;
  taken_ = seen_;
  reserved_.clear();
  dirty_ = false;
  foreign_ = false;
}

}  // namespace resmgr::test
