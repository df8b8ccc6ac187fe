// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/affinity_index.h"

#include <algorithm>
#include <utility>

namespace resmgr {
namespace {

constexpr std::string_view kPodId = "pod/id";

bool Indexable(const Affinity& affinity) {
  return (!affinity.scope || affinity.scope->Indexable()) && affinity.match.Indexable();
}

}  // namespace

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
