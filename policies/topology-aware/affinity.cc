// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/affinity.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using Keys = std::array<std::string_view, 2>;  // the first one that exists counts
constexpr Keys kAffinity = {"cri-resource-manager.intel.com/affinity",
                            "resource-policy.nri.io/affinity"};
constexpr Keys kAntiAffinity = {"cri-resource-manager.intel.com/anti-affinity",
                                "resource-policy.nri.io/anti-affinity"};

StatusOr<int> ReadWeight(const ConfigNode& node) {
  const std::optional<int64_t> weight = ParseInt(node.text);
  if (node.kind != ConfigNode::Kind::kScalar || !weight) {
    return ErrorAt(node, "weight", "not a whole number");
  }
  return static_cast<int>(
      std::clamp<int64_t>(*weight, -Affinity::kMaxWeight, Affinity::kMaxWeight));
}

StatusOr<Affinity> ReadFull(const ConfigNode& node, int sign) {
  Affinity affinity;
  bool has_match = false;
  for (const auto& [name, line, value] : node.entries) {
    if (name == "scope") {
      RESMGR_ASSIGN_OR_RETURN(affinity.scope, Expression::Parse(value));
    } else if (name == "match") {
      RESMGR_ASSIGN_OR_RETURN(affinity.match, Expression::Parse(value));
      has_match = true;
    } else if (name == "weight") {
      RESMGR_ASSIGN_OR_RETURN(affinity.weight, ReadWeight(value));
    } else {
      return ErrorAt(value, name, "not part of an affinity");
    }
  }
  if (!has_match) return ErrorAt(node, "match", "is missing");
  affinity.weight *= sign;
  return affinity;
}

bool IsListOfNames(const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kScalar) return true;
  return node.kind == ConfigNode::Kind::kList &&
         std::all_of(node.items.begin(), node.items.end(),
                     [](const ConfigNode& item) { return item.kind == ConfigNode::Kind::kScalar; });
}

std::vector<std::string> NamesIn(const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kScalar) return {node.text};
  std::vector<std::string> names;
  for (const ConfigNode& item : node.items)
    names.push_back(item.text);
  return names;
}

// Finds the first of the keys that the annotations have; their end if they have none.
StringMap::const_iterator FindFirst(const StringMap& annotations, const Keys& keys) {
  for (const std::string_view key : keys) {
    const auto found = annotations.find(key);
    if (found != annotations.end()) return found;
  }
  return annotations.end();
}

constexpr std::string_view kPodId = "pod/id";

bool Indexable(const Affinity& affinity) {
  return (!affinity.scope || affinity.scope->Indexable()) && affinity.match.Indexable();
}

}  // namespace

bool Affinity::Meets(const Pod& own_pod, const Pod& pod, const Container& container) const {
  const bool in_scope = scope ? scope->Holds(pod, container) : pod.id == own_pod.id;
  return in_scope && match.Holds(pod, container);
}

StatusOr<PodAffinities> PodAffinities::Read(const StringMap& pod_annotations) {
  size_t size = 0;
  for (const Keys& keys : {kAffinity, kAntiAffinity}) {
    const auto found = FindFirst(pod_annotations, keys);
    if (found != pod_annotations.end()) size += found->second.size();
  }
  if (size > kMaxText) {
    return InvalidArgument("they have {} bytes, {} at most are read", size, kMaxText);
  }
  PodAffinities affinities;
  for (const auto& [keys, sign] : {std::pair(kAffinity, 1), std::pair(kAntiAffinity, -1)}) {
    const auto found = FindFirst(pod_annotations, keys);
    if (found == pod_annotations.end()) continue;
    RESMGR_RETURN_IF_ERROR(affinities.Add(*found, sign));
  }
  return affinities;
}

Status PodAffinities::Add(const StringMap::value_type& annotation, int sign) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ParseYaml(annotation.second, annotation.first));
  if (node.kind != ConfigNode::Kind::kMap && node.kind != ConfigNode::Kind::kNull) {
    return ErrorAt(node, "", "not a map from containers to affinities");
  }
  for (const ConfigNode::Entry& entry : node.entries)
    RESMGR_RETURN_IF_ERROR(AddEntry(entry, sign));
  return OkStatus();
}

Status PodAffinities::AddEntry(const ConfigNode::Entry& entry, int sign) {
  if (IsListOfNames(entry.value)) {
    std::vector<std::string> names = NamesIn(entry.value);
    for (const std::string& other : std::set<std::string>(names.begin(), names.end())) {
      if (other == entry.key) continue;
      RESMGR_RETURN_IF_ERROR(Add(other, {sign, std::nullopt, Expression::In("name", {entry.key})}));
    }
    return Add(entry.key, {sign, std::nullopt, Expression::In("name", std::move(names))});
  }
  if (entry.value.kind != ConfigNode::Kind::kList) {
    return ErrorAt(entry.value, entry.key, "neither a list of names nor of affinities");
  }
  for (const ConfigNode& item : entry.value.items) {
    RESMGR_ASSIGN_OR_RETURN(Affinity affinity, ReadFull(item, sign));
    RESMGR_RETURN_IF_ERROR(Add(entry.key, std::move(affinity)));
  }
  return OkStatus();
}

Status PodAffinities::Add(const std::string& container, Affinity affinity) {
  if (size_ == kMaxOfPod) {
    return InvalidArgument("the pod has more than {} affinities", kMaxOfPod);
  }
  by_container_[container].push_back(std::move(affinity));
  ++size_;
  return OkStatus();
}

StatusOr<std::span<const Affinity>> PodAffinities::Of(std::string_view container) const {
  const auto found = by_container_.find(container);
  if (found == by_container_.end()) return std::span<const Affinity>();
  if (found->second.size() > kMaxOfOne) {
    return InvalidArgument("container {} has {} affinities, {} at most are possible", container,
                           found->second.size(), kMaxOfOne);
  }
  return std::span<const Affinity>(found->second);
}

void AffinityReader::Prepare(const StringMap& pod_annotations) {
  Find(pod_annotations);
}

StatusOr<std::span<const Affinity>> AffinityReader::Read(const StringMap& pod_annotations,
                                                         std::string_view container) {
  const StatusOr<PodAffinities>* const affinities = Find(pod_annotations);
  if (affinities == nullptr) return std::span<const Affinity>();
  if (!affinities->ok()) return affinities->status();
  return (*affinities)->Of(container);
}

const StatusOr<PodAffinities>* AffinityReader::Find(const StringMap& pod_annotations) {
  // The key contains all inputs of the result with their lengths, so that different inputs never
  // have equal keys.
  std::string key;
  for (const Keys& keys : {kAffinity, kAntiAffinity}) {
    const auto found = FindFirst(pod_annotations, keys);
    if (found == pod_annotations.end()) continue;
    key += fmt::format("{}:{}:{}", found->first, found->second.size(), found->second);
  }
  if (key.empty()) return nullptr;
  const auto known = known_.find(key);
  if (known != known_.end()) {
    known->second.asked = ++clock_;
    return &known->second.affinities;
  }
  StatusOr<PodAffinities> read = PodAffinities::Read(pod_annotations);
  if (key.size() > kMaxRememberedSize || (read.ok() && read->size() > kMaxRememberedAffinities)) {
    not_remembered_ = std::move(read);
    return &not_remembered_;
  }
  if (known_.size() == kRemembered) {
    known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
      return a.second.asked < b.second.asked;
    }));
  }
  return &known_.emplace(std::move(key), Known{std::move(read), ++clock_}).first->second.affinities;
}

void AffinityIndex::Column::Set(size_t slot, std::optional<std::string_view> value) {
  if (of_slot.size() <= slot) of_slot.resize(slot + 1, kNone);
  Number number = kNone;
  if (value) {
    const auto known = numbers.find(*value);
    if (known != numbers.end()) {
      number = known->second;
    } else if (!unused.empty()) {
      number = unused.back();
      unused.pop_back();
      values[number] = *value;
      numbers.emplace(*value, number);
    } else {
      number = static_cast<Number>(values.size());
      values.emplace_back(*value);
      users.push_back(0);
      numbers.emplace(*value, number);
    }
  }
  of_slot[slot] = number;
  ++users[number];
}

void AffinityIndex::Column::Unset(size_t slot) {
  const Number number = std::exchange(of_slot[slot], kNone);
  if (--users[number] > 0 || number == kNone) return;
  numbers.erase(values[number]);
  values[number] = std::string();
  unused.push_back(number);
}

void AffinityIndex::Clear() {
  *this = AffinityIndex();
}

void AffinityIndex::Put(const Pod& pod, const Container& container, int pool) {
  if (!built_) return;
  const auto [found, is_new] = slot_of_.try_emplace(container.key, 0);
  if (is_new) {
    if (free_slots_.empty()) {
      found->second = slots_.size();
      slots_.emplace_back();
    } else {
      found->second = free_slots_.back();
      free_slots_.pop_back();
    }
    for (Column& column : columns_)
      column.Set(found->second, ResolveKey(column.key, pod, container, scratch_));
  }
  slots_[found->second] = {container.key, pool};
}

void AffinityIndex::Move(ContainerKey key, int pool) {
  const auto found = slot_of_.find(key);
  if (found != slot_of_.end()) slots_[found->second].pool = pool;
}

void AffinityIndex::Erase(ContainerKey key) {
  const auto found = slot_of_.find(key);
  if (found == slot_of_.end()) return;
  const size_t slot = found->second;
  for (Column& column : columns_)
    column.Unset(slot);
  slots_[slot] = {};
  free_slots_.push_back(slot);
  slot_of_.erase(found);
}

void AffinityIndex::Build(const Snapshot& snapshot, const PoolOf& pool_of) {
  built_ = true;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (const std::optional<int> pool = pool_of(container.key)) Put(pod, container, *pool);
  });
}

AffinityIndex::Column& AffinityIndex::ColumnOf(std::string_view key, const Snapshot& snapshot) {
  const auto has_key = [key](const Column& column) { return column.key == key; };
  auto column = std::find_if(columns_.begin(), columns_.end(), has_key);
  if (column == columns_.end()) {
    if (columns_.size() == kMaxColumns) {
      columns_.erase(
          std::min_element(columns_.begin(), columns_.end(),
                           [](const Column& a, const Column& b) { return a.asked < b.asked; }));
    }
    column = columns_.emplace(columns_.end());
    column->key = key;
    column->of_slot.resize(slots_.size(), kNone);
    snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
      const auto slot = slot_of_.find(container.key);
      if (slot == slot_of_.end()) return;
      column->Set(slot->second, ResolveKey(column->key, pod, container, scratch_));
    });
  }
  column->asked = ++clock_;
  return *column;
}

void AffinityIndex::Keep(const Expression& expression, const Snapshot& snapshot, Marks& marks) {
  if (expression.IsAlwaysTrue()) return;
  const Column& column = ColumnOf(expression.key(), snapshot);
  Marks holds(column.values.size());
  for (Number number = 0; number < holds.size(); ++number) {
    if (column.users[number] == 0) continue;
    const bool has_value = number != kNone;
    holds[number] =
        expression.HoldsFor(has_value ? std::optional<std::string_view>(column.values[number])
                                      : std::nullopt)
            ? 1
            : 0;
  }
  for (size_t slot = 0; slot < marks.size(); ++slot)
    marks[slot] &= holds[column.of_slot[slot]];
}

void AffinityIndex::KeepPod(const PodSandboxId& pod, const Snapshot& snapshot, Marks& marks) {
  const Column& column = ColumnOf(kPodId, snapshot);
  const auto found = column.numbers.find(pod.value());
  const Number wanted = found == column.numbers.end() ? kNone : found->second;
  for (size_t slot = 0; slot < marks.size(); ++slot) {
    if (wanted == kNone || column.of_slot[slot] != wanted) marks[slot] = 0;
  }
}

template <typename Visit>
void AffinityIndex::ForEachMeant(std::span<const Affinity> affinities, const Pod& own_pod,
                                 const Snapshot& snapshot, const PoolOf& pool_of,
                                 const Visit& visit) {
  if (!built_) Build(snapshot, pool_of);
  Marks marks;
  for (const Affinity& affinity : affinities) {
    if (!Indexable(affinity)) {
      snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
        const std::optional<int> pool = pool_of(container.key);
        if (!pool || !affinity.Meets(own_pod, pod, container)) return;
        visit(Slot{container.key, *pool}, affinity.weight);
      });
      continue;
    }
    marks.assign(slots_.size(), 1);
    if (affinity.scope) {
      Keep(*affinity.scope, snapshot, marks);
    } else {
      KeepPod(own_pod.id, snapshot, marks);
    }
    Keep(affinity.match, snapshot, marks);
    for (size_t i = 0; i < marks.size(); ++i) {
      if (marks[i] != 0 && slots_[i].pool != kFree) visit(slots_[i], affinity.weight);
    }
  }
}

std::vector<int64_t> AffinityIndex::Weights(std::span<const Affinity> affinities,
                                            const Pod& own_pod, size_t pools,
                                            const Snapshot& snapshot, const PoolOf& pool_of) {
  std::vector<int64_t> weights(pools);
  ForEachMeant(affinities, own_pod, snapshot, pool_of, [&weights](const Slot& slot, int weight) {
    weights[static_cast<size_t>(slot.pool)] += weight;
  });
  return weights;
}

std::map<ContainerKey, int64_t> AffinityIndex::Meant(std::span<const Affinity> affinities,
                                                     const Pod& own_pod, const Snapshot& snapshot,
                                                     const PoolOf& pool_of) {
  std::map<ContainerKey, int64_t> weights;
  if (affinities.empty()) return weights;
  ForEachMeant(affinities, own_pod, snapshot, pool_of,
               [&weights](const Slot& slot, int weight) { weights[slot.key] += weight; });
  return weights;
}

}  // namespace resmgr
