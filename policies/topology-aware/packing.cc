// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/packing.h"

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>

namespace resmgr {
namespace {

// Added to the request of each sharing container, since containers without a request run, too.
constexpr int64_t kAskedForAtLeast = 500;  // milli-CPUs

// In the score of a pool, each sharing container that would lose its near memory counts as much as
// this number of CPUs left over. With a smaller number, more exclusive containers are in one NUMA
// node, and less memory is near to its CPUs; with a larger number, the opposite.
constexpr int64_t kLeftForMove = 3;

struct Part {
  int free;
  int pool;
};

// The children of the pool with their free CPUs, those with the most first.
std::vector<Part> PartsOf(const PoolTree& tree, const CpuSet& from, int pool) {
  std::vector<Part> parts;
  for (const int child : tree.at(pool).children) {
    const int free = tree.at(child).cpus.CountCommon(from);
    if (free > 0) parts.push_back({free, child});
  }
  std::ranges::sort(parts, [](const Part& a, const Part& b) {
    return std::tuple(-a.free, a.pool) < std::tuple(-b.free, b.pool);
  });
  return parts;
}

// The minimum number of parts that together have `count` CPUs; 0 if all together have too few.
size_t FewestFor(std::span<const Part> parts, int count) {
  int sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    sum += parts[i].free;
    if (sum >= count) return i + 1;
  }
  return 0;
}

// A choice of parts: from `first` on, parts that are used up, and `last` for the rest.
struct Choice {
  size_t first;
  size_t last;
  int rest;
  int left;  // CPUs that are left in the last part
};

// The choice that leaves the fewest CPUs, with used-up parts that are neighbours in the order of
// sizes; nullopt: no choice is possible.
std::optional<Choice> Tightest(std::span<const Part> parts, size_t fewest, int count) {
  std::optional<Choice> best;
  for (size_t first = 0; first + fewest <= parts.size() + 1; ++first) {
    const size_t end = first + fewest - 1;
    int rest = count;
    for (const Part& part : parts.subspan(first, fewest - 1))
      rest -= part.free;
    for (size_t last = parts.size(); last-- > 0;) {
      const int left = parts[last].free - rest;
      const bool used_up = last >= first && last < end;
      if (used_up || left < 0 || (best && left >= best->left)) continue;
      best = Choice{first, last, rest, left};
    }
  }
  return best;
}

}  // namespace

bool IsPacked(const GrantBook& book, const Need& need) {
  if (need.packing != Packing::kAuto) return need.packing == Packing::kTight;
  const int root = book.tree().root();
  return 2 * book.cpus().Room(root) < int64_t{1000} * book.tree().at(root).sharable.size();
}

int64_t RoomForLimit(const GrantBook& book, const Need& need, int pool) {
  const CpuLedger& cpus = book.cpus();
  const Pool& place = book.tree().at(pool);
  // Reserved CPUs count as room: otherwise a NUMA node with a reserved CPU would get no containers
  // that may use more than they request.
  const int64_t reserved = int64_t{1000} * place.reserved.size();
  if (IsPacked(book, need)) return int64_t{1000} * cpus.FreeCpus(pool) + reserved;
  const int64_t counted = place.parent < 0 ? cpus.unreserved().value : 0;
  return cpus.Room(pool) + reserved - counted;
}

int64_t Packer::Score(int pool) {
  if (!packed_) return 0;
  if (need_.cpu_class == CpuClass::kExclusive) return ScoreExclusive(pool);
  const CpuLedger& cpus = book_.cpus();
  const int around = Around(pool);
  const int64_t asked = cpus.Need(around) + kAskedForAtLeast * cpus.Sharers(around);
  constexpr int64_t kMostCpus = CpuSet::kBits + 1;
  return (int64_t{1000} * cpus.FreeCpus(around) - asked / 2) * kMostCpus + cpus.FreeCpus(pool);
}

int64_t Packer::ScoreExclusive(int pool) {
  const CpuLedger& cpus = book_.cpus();
  // With enough isolated CPUs the pools are equal here: rule kClassRoom then chooses.
  if (need_.isolated && cpus.FreeIsolated(pool).size() >= count_) return 1;
  int64_t left = 0;
  for (int id = pool; id >= 0; id = book_.tree().at(id).parent)
    left += std::max(cpus.FreeCpus(id) - count_, 0);
  return -(left + kLeftForMove * Moved(Around(pool)));
}

int Packer::Around(int pool) const {
  const Pool& place = book_.tree().at(pool);
  return place.near_memory ? place.memory_pool : pool;
}

int64_t Packer::Moved(int around) {
  if (around == around_) return moved_;
  around_ = around;
  const CpuLedger& cpus = book_.cpus();
  const int64_t lost = std::max(count_ - cpus.Sliceable(around, need_.fraction), 0);
  const int64_t sharers = cpus.Sharers(around);
  const int64_t asked = std::max<int64_t>(cpus.Need(around), 1);
  moved_ = cpus.FreeCpus(around) <= count_ ? sharers : (1000 * lost * sharers + asked - 1) / asked;
  moved_ = lost == 0 ? 0 : std::min(moved_, sharers);
  return moved_;
}

std::vector<CpuSet> FewestParts(const PoolTree& tree, const CpuSet& from, int pool, int count) {
  const std::vector<Part> parts = PartsOf(tree, from, pool);
  const size_t fewest = FewestFor(parts, count);
  if (fewest == 0) return {};
  const std::optional<Choice> choice = Tightest(parts, fewest, count);
  if (!choice) return {};
  std::vector<CpuSet> order;
  for (const Part& part : std::span(parts).subspan(choice->first, fewest - 1))
    order.push_back(tree.at(part.pool).cpus);
  const int last = parts[choice->last].pool;
  const std::vector<CpuSet> inside = FewestParts(tree, from, last, choice->rest);
  order.insert(order.end(), inside.begin(), inside.end());
  order.push_back(tree.at(last).cpus);
  return order;
}

}  // namespace resmgr
