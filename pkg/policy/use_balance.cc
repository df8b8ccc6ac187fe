// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/use_balance.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace resmgr::policy {
namespace {

// Limit of the waiting that counts. If tasks wait more than half of the time, the demand cannot be
// estimated; twice the present use is assumed then.
constexpr double kMostWaiting = 0.5;
// Gains that differ less count as equal: then the smaller container moves.
constexpr double kAlike = 0.01;
// Limit of containers that are considered for one move; those that want most come first.
constexpr size_t kMostCandidates = 64;
// A plan ends after so many moves that were refused, or that gained less on a copy of the policy
// than was computed.
constexpr int kMostRefused = 16;
// Limit of the work for one plan, in computed shares of pools: some ten milliseconds of the loop. A
// plan that reaches it ends with the moves found so far.
constexpr size_t kMostWork = 20'000'000;

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Pools in the order in which they get CPUs, smaller ones first, and the CPUs that each has in
// common with those before it.
class PoolOrder {
 public:
  explicit PoolOrder(const std::vector<SharedPool>& pools)
      : pools_(pools), order_(pools.size()), common_(pools.size()), apart_(pools.size(), true) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::stable_sort(order_, {}, [&](size_t pool) { return pools[pool].cpus.size(); });
    for (size_t i = 0; i < order_.size(); ++i) {
      const CpuSet& cpus = pools[order_[i]].cpus;
      for (size_t j = 0; j < i; ++j) {
        const CpuSet& smaller = pools[order_[j]].cpus;
        const int shared = cpus.CountCommon(smaller);
        if (shared == 0) continue;
        common_[order_[i]].emplace_back(order_[j], static_cast<double>(shared) / smaller.size());
        apart_[order_[j]] = false;
        ++work_;
      }
    }
    work_ += pools.size();
  }

  // Returns the CPUs that each pool gets: as much of `wanted` as smaller pools leave, taken evenly
  // from all of its CPUs.
  std::vector<double> Give(const std::vector<double>& wanted) const {
    std::vector<double> given(wanted.size());
    for (const size_t pool : order_) {
      double left = pools_[pool].cpus.size();
      for (const auto& [smaller, part] : common_[pool])
        left -= part * given[smaller];
      given[pool] = std::clamp(wanted[pool], 0.0, std::max(left, 0.0));
    }
    return given;
  }
  // The work of one Give, in computed shares of pools.
  size_t work() const { return work_; }
  // Whether no other pool's share depends on this pool's.
  bool IsApart(size_t pool) const { return apart_[pool]; }

 private:
  const std::vector<SharedPool>& pools_;
  std::vector<size_t> order_;
  std::vector<std::vector<std::pair<size_t, double>>> common_;
  std::vector<bool> apart_;
  size_t work_ = 0;
};

double WantedBy(const Snapshot& snapshot, const MeasuredUse& use, ContainerKey key) {
  const ContainerUse* const measured = use.Find(key);
  const Container* const container = snapshot.FindContainer(key);
  if (measured == nullptr || container == nullptr) return 0;
  return WantedCpus(*measured, container->placement.exclusive.size(),
                    static_cast<double>(container->requirements.cpu_limit.value) / 1000);
}

// The pools of a policy, and the CPUs that are wanted of each.
struct State {
  State(const Policy& policy, const Snapshot& snapshot, const MeasuredUse& use)
      : shared(policy.Shared(snapshot)), order(shared.pools), wanted(shared.pools.size()) {
    by_container.reserve(shared.containers.size());
    for (const SharedContainer& container : shared.containers) {
      by_container.push_back(WantedBy(snapshot, use, container.key));
      wanted[container.pool] += by_container.back();
      if (use.Find(container.key) != nullptr) ++measured;
    }
    const std::vector<double> given = order.Give(wanted);
    for (size_t pool = 0; pool < wanted.size(); ++pool) {
      lacking.push_back(wanted[pool] - given[pool]);
      places.emplace(shared.pools[pool].name, pool);
    }
    all = Sum(lacking);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  PoolLoad LoadOf(size_t pool) const {
    return {static_cast<double>(shared.pools[pool].cpus.size()), wanted[pool], lacking[pool]};
  }

  // By how much less all pools together lack if this container is moved to `pool`.
  double GainOf(size_t container, size_t pool) const {
    std::vector<double> after = wanted;
    after[shared.containers[container].pool] -= by_container[container];
    after[pool] += by_container[container];
    return all - (Sum(after) - Sum(order.Give(after)));
  }
  // The most that a move can gain: what the container wants, or what is lacking if that is less.
  double MostGain(size_t container) const {
    const size_t pool = shared.containers[container].pool;
    return std::min(by_container[container], order.IsApart(pool) ? lacking[pool] : all);
  }

  const SharedPools shared;
  const PoolOrder order;
  std::vector<double> wanted;                           // by pool
  std::vector<double> by_container;                     // in the order of the containers
  std::vector<double> lacking;                          // by pool
  std::unordered_map<std::string_view, size_t> places;  // of the pools, by name
  double all = 0;
  size_t measured = 0;
};

// By how much less each pool lacks in `after`.
std::map<std::string, double> ReliefOf(const State& before, const State& after) {
  std::map<std::string, double> relief;
  for (size_t pool = 0; pool < before.shared.pools.size(); ++pool)
    relief.emplace(before.shared.pools[pool].name, before.lacking[pool]);
  for (size_t pool = 0; pool < after.shared.pools.size(); ++pool)
    relief[after.shared.pools[pool].name] -= after.lacking[pool];
  std::erase_if(relief, [](const auto& each) { return each.second <= 0; });
  return relief;
}

class Planner {
 public:
  Planner(const Policy& policy, const Snapshot& snapshot, const MeasuredUse& use,
          const UseLimits& limits, const std::function<bool(ContainerKey)>& stays)
      : snapshot_(snapshot), use_(use), limits_(limits), stays_(stays), policy_(policy.Clone()) {}

  UsePlan Run() {
    auto state = std::make_unique<State>(*policy_, snapshot_, use_);
    UsePlan plan{.lacking = state->all, .measured = state->measured};
    for (size_t pool = 0; pool < state->shared.pools.size(); ++pool)
      plan.loads.emplace(state->shared.pools[pool].name, state->LoadOf(pool));
    while (std::ssize(plan.moves) < limits_.most_moves && state->all >= limits_.least_gain) {
      const std::optional<Candidate> best = FindBest(*state);
      if (!best) break;
      std::unique_ptr<State> next = Try(*state, *best, plan);
      if (next != nullptr) {
        state = std::move(next);
      } else if (std::ssize(refused_) > kMostRefused) {
        break;
      }
    }
    plan.lacking_after = state->all;
    return plan;
  }

 private:
  struct Candidate {
    size_t container = 0;  // index in State::shared.containers
    size_t target = 0;     // index of the pool
    double gain = 0;
  };

  bool IsEnough(double gain, double wanted) const {
    return gain >= limits_.least_gain && gain >= limits_.least_part * wanted;
  }

  // The containers whose move may gain enough.
  std::vector<size_t> Candidates(const State& state) const {
    std::vector<size_t> candidates;
    for (size_t i = 0; i < state.shared.containers.size(); ++i) {
      const ContainerKey key = state.shared.containers[i].key;
      const bool stays = moved_.contains(key) || (stays_ && stays_(key));
      if (IsEnough(state.MostGain(i), state.by_container[i]) && !stays) candidates.push_back(i);
    }
    std::ranges::stable_sort(candidates, std::ranges::greater(),
                             [&](size_t i) { return state.by_container[i]; });
    candidates.resize(std::min(candidates.size(), kMostCandidates));
    return candidates;
  }

  // Returns the first target that gains enough, or a later one that gains so much more that a
  // further move from the first target to it would be worthwhile.
  std::optional<Candidate> BestTarget(const State& state, size_t i) {
    std::optional<Candidate> best;
    const SharedContainer& container = state.shared.containers[i];
    const double wanted = state.by_container[i];
    const double most = state.MostGain(i);
    for (const std::string& name : policy_->TargetsOf(snapshot_, container.key)) {
      const auto target = state.places.find(name);
      if (target == state.places.end() || refused_.contains({container.key, name})) continue;
      if (best && most < best->gain + limits_.least_gain) break;
      work_ += state.order.work();
      if (work_ > kMostWork) break;
      const double gain = state.GainOf(i, target->second);
      if (IsEnough(gain, wanted) && (!best || gain >= best->gain + limits_.least_gain))
        best = Candidate{i, target->second, gain};
    }
    return best;
  }

  std::optional<Candidate> FindBest(const State& state) {
    std::optional<Candidate> best;
    for (const size_t i : Candidates(state)) {
      if (best && state.MostGain(i) <= best->gain - kAlike) continue;
      const std::optional<Candidate> next = BestTarget(state, i);
      if (!next) continue;
      const bool smaller = best && next->gain > best->gain - kAlike &&
                           state.by_container[i] < state.by_container[best->container] - kAlike;
      if (!best || next->gain > best->gain + kAlike || smaller) best = next;
    }
    return best;
  }

  // Makes the move on a copy of the policy, since the pools may change by it, and computes the
  // gain. nullptr: the policy refuses the move.
  std::unique_ptr<State> Try(const State& state, const Candidate& candidate, UsePlan& plan) {
    const SharedContainer& container = state.shared.containers[candidate.container];
    const std::string& to = state.shared.pools[candidate.target].name;
    const double wanted = state.by_container[candidate.container];
    std::unique_ptr<Policy> copy = policy_->Clone();
    const std::vector<PoolMove> move = {{container.key, to}};
    std::unique_ptr<State> next;
    if (copy->MoveShared(snapshot_, move).ok()) {
      next = std::make_unique<State>(*copy, snapshot_, use_);
      if (!IsEnough(state.all - next->all, wanted)) next.reset();
    }
    if (next == nullptr) {
      refused_.emplace(container.key, to);
      return nullptr;
    }
    const ContainerUse& used = *use_.Find(container.key);
    plan.moves.push_back({.key = container.key,
                          .from = state.shared.pools[container.pool].name,
                          .to = to,
                          .used = used.cpus,
                          .pressure = used.pressure,
                          .wanted = wanted,
                          .from_load = state.LoadOf(container.pool),
                          .to_load = state.LoadOf(candidate.target),
                          .gain = state.all - next->all,
                          .relief = ReliefOf(state, *next)});
    moved_.insert(container.key);
    policy_ = std::move(copy);
    return next;
  }

  const Snapshot& snapshot_;
  const MeasuredUse& use_;
  const UseLimits& limits_;
  const std::function<bool(ContainerKey)>& stays_;
  std::unique_ptr<Policy> policy_;  // with the moves so far
  std::set<ContainerKey> moved_;
  std::set<std::pair<ContainerKey, std::string>> refused_;
  size_t work_ = 0;
};

}  // namespace

double WantedCpus(const ContainerUse& use, double own, double limit) {
  const double used = std::max(use.cpus - own, 0.0);
  const double waiting = std::clamp(use.pressure.value_or(0) / 100, 0.0, kMostWaiting);
  const double wanted = used / (1 - waiting);
  return limit > 0 ? std::min(wanted, std::max(limit - own, used)) : wanted;
}

PoolLoads LoadsOf(const Policy& policy, const Snapshot& snapshot, const MeasuredUse& use) {
  const State state(policy, snapshot, use);
  PoolLoads loads;
  for (size_t pool = 0; pool < state.shared.pools.size(); ++pool)
    loads.emplace(state.shared.pools[pool].name, state.LoadOf(pool));
  return loads;
}

double Lacking(const PoolLoads& loads) {
  double sum = 0;
  for (const auto& [name, load] : loads)
    sum += load.lacking;
  return sum;
}

UsePlan PlanByUse(const Policy& policy, const Snapshot& snapshot, const MeasuredUse& use,
                  const UseLimits& limits, const std::function<bool(ContainerKey)>& stays) {
  return Planner(policy, snapshot, use, limits, stays).Run();
}

}  // namespace resmgr::policy
