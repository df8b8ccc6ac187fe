// SPDX-License-Identifier: Apache-2.0
// How policies place streams of pods, over a range of machines together.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/policy/registry.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/bench/policy/balloons_bench.h"
#include "test/bench/policy/node.h"
#include "test/bench/policy/share.h"

namespace resmgr::test {
namespace {

// Pods as they come to a node, one after the other.
struct Stream {
  std::string_view name;
  std::string_view what;  // one line on its pods
  PodShape (*next)(std::mt19937_64& random);
  // Pods end by their own lifetimes; else a random one ends if there is no room for the next.
  bool lifetimes = false;
};

constexpr int64_t kGiB = int64_t{1} << 30;

// Chooses one of these by its weight.
template <size_t N>
int64_t Weighted(std::mt19937_64& random, const std::array<std::pair<int64_t, int>, N>& values) {
  int sum = 0;
  for (const auto& [value, weight] : values)
    sum += weight;
  int64_t left = std::uniform_int_distribution<int64_t>(0, sum - 1)(random);
  for (const auto& [value, weight] : values) {
    if (left < weight) return value;
    left -= weight;
  }
  return values.back().first;
}

// 31 of 100 pods ask for whole CPUs exclusively, most of them for 2 to 16; the others share, most
// of them less than two CPUs.
PodShape TracePod(std::mt19937_64& random) {
  constexpr std::array<std::pair<int64_t, int>, 9> kWhole = {
      {{1, 5}, {2, 10}, {4, 22}, {6, 8}, {8, 24}, {12, 8}, {16, 14}, {32, 7}, {64, 2}}};
  constexpr std::array<std::pair<int64_t, int>, 7> kShared = {
      {{100, 25}, {250, 25}, {500, 20}, {1000, 15}, {1500, 8}, {3152, 5}, {6304, 2}}};
  const int64_t kind = std::uniform_int_distribution<int64_t>(1, 100)(random);
  if (kind <= 31) {
    const int64_t cpus = Weighted(random, kWhole);
    return {QosClass::kGuaranteed, cpus * 1000, cpus * 1000, cpus * kGiB};
  }
  if (kind <= 40) return {};
  const int64_t milli = Weighted(random, kShared);
  return {QosClass::kBurstable, milli, kind % 3 == 0 ? 0 : 2 * milli,
          kGiB / 4 + kGiB * milli / 2000};
}

// Between 1 and 32 CPUs, half of them 1 or 2.
PodShape ExclusivePod(std::mt19937_64& random) {
  constexpr std::array<std::pair<int64_t, int>, 6> kLast = {
      {{1, 25}, {2, 25}, {4, 24}, {8, 16}, {16, 7}, {32, 3}}};
  const int64_t last = Weighted(random, kLast);
  const int64_t cpus = std::uniform_int_distribution<int64_t>((last + 1) / 2, last)(random);
  return {QosClass::kGuaranteed, cpus * 1000, cpus * 1000, cpus * kGiB / 4};
}

constexpr std::array<Stream, 3> kStreams = {{
    {"random mix", "25 % exclusive (nine of ten 1 to 8 CPUs, the others 9 to 24), 75 % share",
     SomePod},
    {"trace-like",
     "31 % exclusive (1 to 64 CPUs, most 4 to 16), 69 % share (most below 1 CPU), lifetimes "
     "log-normal",
     TracePod, true},
    {"exclusive alone", "all exclusive, 1 to 32 CPUs, half of them 1 or 2", ExclusivePod},
}};

// The random mix of SomePod, pods with the sizes of a GPU cluster's trace, exclusive pods alone.
std::span<const Stream> Streams() {
  return kStreams;
}

// The number of further pods for which a pod of such a stream stays: most stay for few, some nearly
// for ever.
double Lifetime(std::mt19937_64& random) {
  return std::lognormal_distribution<double>(7, 1.5)(random);
}

class KubeletLikePolicy : public Policy {
 public:
  explicit KubeletLikePolicy(const PolicyContext& context)
      : machine_(context.machine), shared_(context.available), reserved_(context.reserved) {}

  static StatusOr<std::unique_ptr<Policy>> Create(const PolicyContext& context) {
    return std::unique_ptr<Policy>(std::make_unique<KubeletLikePolicy>(context));
  }

  std::string_view name() const override { return "kubelet-like"; }
  std::unique_ptr<Policy> Clone() const override {
    return std::make_unique<KubeletLikePolicy>(*this);
  }
  StatusOr<Plan> Reconcile(const Snapshot& /*snapshot*/) override { return Plan{}; }
  std::vector<Zone> Zones(const Snapshot& /*snapshot*/) const override { return {}; }

  StatusOr<Plan> Allocate(const Snapshot& /*snapshot*/, const Pod& pod, const Container& container,
                          const Container* /*predecessor*/) override {
    const MilliCpu request = container.requirements.cpu_request;
    Plan plan;
    if (pod.qos != QosClass::kGuaranteed || !request.IsWhole()) {
      sharers_.insert(container.key);
      plan.Change(container.key).cpus = shared_;
      return plan;
    }
    const auto count = static_cast<int>(request.Whole());
    const CpuSet free = shared_ - reserved_;
    const CpuSet hinted = free & Hinted(free, count);
    RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, AllocateCpus(machine_, free, hinted, count,
                                                            {.prefer_align_by_uncore = true}));
    shared_ -= cpus;
    granted_[container.key] = cpus;
    Placement& placement = plan.Change(container.key);
    placement.cpus = cpus;
    placement.exclusive = cpus;
    TellSharers(plan);
    return plan;
  }

  StatusOr<Plan> Update(const Snapshot& /*snapshot*/, const Pod& /*pod*/,
                        const Container& /*container*/) override {
    return FailedPrecondition("containers are not resized");
  }

  StatusOr<Plan> Release(const Snapshot& /*snapshot*/, ContainerKey key) override {
    Plan plan;
    sharers_.erase(key);
    const auto granted = granted_.find(key);
    if (granted == granted_.end()) return plan;
    shared_ |= granted->second;
    granted_.erase(granted);
    TellSharers(plan);
    return plan;
  }

 private:
  // The CPUs of the nodes that the Topology Manager would choose; none without hints.
  CpuSet Hinted(const CpuSet& free, int count) const {
    const auto nodes = static_cast<unsigned>(machine_.nodes().size());
    int smallest = static_cast<int>(nodes) + 1;
    CpuSet best;
    std::tuple<bool, int> best_rank;
    std::vector<std::pair<int, CpuSet>> enough;
    for (unsigned mask = 1; mask < 1U << nodes; ++mask) {
      CpuSet cpus;
      for (unsigned i = 0; i < nodes; ++i) {
        if ((mask >> i & 1U) != 0) cpus |= machine_.nodes()[i].cpus;
      }
      const int width = std::popcount(mask);
      if (cpus.size() >= count) smallest = std::min(smallest, width);
      if (cpus.CountCommon(free) >= count) enough.emplace_back(width, std::move(cpus));
    }
    for (const auto& [width, cpus] : enough) {
      const std::tuple rank(width != smallest, width);
      if (!best.empty() && rank >= best_rank) continue;
      best = cpus;
      best_rank = rank;
    }
    return best;
  }

  void TellSharers(Plan& plan) const {
    if (sharers_.empty()) return;
    plan.shared.push_back({.cpus = shared_, .containers = {sharers_.begin(), sharers_.end()}});
  }

  const Machine& machine_;
  CpuSet shared_;
  const CpuSet reserved_;
  std::map<ContainerKey, CpuSet> granted_;
  std::set<ContainerKey> sharers_;
};

// The choices of a kubelet with the CPU Manager policy static, its option
// prefer-align-cpus-by-uncorecache and the Topology Manager policy best-effort, written from its
// rules, to compare with: the narrowest set of NUMA nodes with enough free CPUs, the lowest among
// equals, one before others that is as small as any set of nodes could be for so many CPUs; there
// as the static policy chooses. Memory is not bound. For machines of up to twelve NUMA nodes;
// containers are not resized, and there is nothing to take over.
PolicyFactory KubeletLikePolicyFactory() {
  return {.name = "kubelet-like",
          .description = "the kubelet's static policy with hints of a best-effort Topology Manager",
          .create = KubeletLikePolicy::Create};
}

constexpr int kPods = 3000;  // on each machine
// Placements follow from each other: with one stream alone numbers are right to one or two percent.
constexpr std::array<uint64_t, 6> kSeeds = {11, 12, 13, 14, 15, 16};
constexpr int kSampledEvery = 50;  // operations

constexpr std::array<Shape, 12> kShapes = {{
    {.packages = 1, .nodes = 1, .l3s = 2, .cores = 8, .threads = 1},   // 8 CPUs
    {.packages = 1, .nodes = 1, .l3s = 2, .cores = 8, .threads = 2},   // 16
    {.packages = 2, .nodes = 1, .l3s = 2, .cores = 8, .threads = 2},   // 32
    {.packages = 1, .nodes = 4, .l3s = 2, .cores = 8, .threads = 1},   // 32
    {.packages = 1, .nodes = 1, .l3s = 8, .cores = 32, .threads = 2},  // 64
    {.packages = 4, .nodes = 1, .l3s = 0, .cores = 10, .threads = 2},  // 80
    {.packages = 2, .nodes = 2, .l3s = 0, .cores = 12, .threads = 2},  // 96
    {.packages = 2, .nodes = 2, .l3s = 0, .cores = 16, .threads = 2},  // 128
    {.packages = 2, .nodes = 1, .l3s = 8, .cores = 64, .threads = 1},  // 128
    {.packages = 2, .nodes = 4, .l3s = 3, .cores = 12, .threads = 2},  // 192
    {.packages = 2, .nodes = 4, .l3s = 4, .cores = 16, .threads = 2},  // 256
    {.packages = 2, .nodes = 4, .l3s = 8, .cores = 32, .threads = 2},  // 512
}};

// Sums over all machines.
struct StreamQuality {
  ExclusiveShares exclusive;
  double exclusive_local = 0;  // sums over samples
  int64_t exclusive_samples = 0;
  double local = 0;
  int64_t samples = 0;
  int64_t moves = 0;
  int64_t operations = 0;
  int64_t refused = 0;
};

// The probability that a CPU of the container finds a page of its memory on its own node, if both
// are evenly used. Memory that is not bound is anywhere.
double Locality(const Machine& machine, const Placement& placement) {
  if (!placement.cpus || placement.cpus->empty()) return 0;
  const auto all = static_cast<double>(machine.nodes().size());
  double sum = 0;
  for (const NumaNode& node : machine.nodes()) {
    const double part = static_cast<double>(node.cpus.CountCommon(*placement.cpus));
    const bool has = !placement.mems || placement.mems->Contains(node.id);
    const double pages = placement.mems ? static_cast<double>(placement.mems->size()) : all;
    if (has) sum += part / pages;
  }
  return sum / static_cast<double>(placement.cpus->size());
}

// One machine with the pods of a stream, up to a part of what a scheduler would give out.
class StreamRun {
 public:
  StreamRun(const Shape& shape, const PolicyFactory& factory, const Stream& stream, int fill,
            uint64_t seed)
      : node_(BenchMachine(shape), factory),
        stream_(stream),
        most_(fill * node_.Allocatable() / 100),
        random_(seed) {}

  void Run(StreamQuality& quality) {
    for (int i = 0; i < kPods; ++i) {
      const PodShape shape = stream_.next(random_);
      const double end = i + (stream_.lifetimes ? Lifetime(random_) : 0);
      const uint64_t victim = random_();
      if (shape.milli_cpu > most_) continue;
      MakeRoom(shape, i, victim, quality);
      ++quality.operations;
      if (!node_.Create(shape)) {
        ++quality.refused;
        continue;
      }
      ends_.push_back(end);
      const Container& created = node_.At(node_.keys().size() - 1);
      if (!AloneOn(created.placement).empty()) quality.exclusive.Count(node_.machine(), created);
      if (i % kSampledEvery == 0) Sample(quality);
    }
    quality.moves += node_.Moves();
  }

 private:
  // If pods have lifetimes, removes those whose time is over, then those whose time ends first.
  void MakeRoom(const PodShape& shape, double now, uint64_t victim, StreamQuality& quality) {
    while (!ends_.empty()) {
      const bool full = node_.Requested() + shape.milli_cpu > most_;
      const auto first = std::ranges::min_element(ends_);
      const bool over = stream_.lifetimes && *first <= now;
      if (!full && !over) return;
      const auto index =
          stream_.lifetimes ? static_cast<size_t>(first - ends_.begin()) : victim % ends_.size();
      node_.Remove(index);
      ends_[index] = ends_.back();
      ends_.pop_back();
      ++quality.operations;
    }
  }

  void Sample(StreamQuality& quality) {
    for (size_t i = 0; i < node_.keys().size(); ++i) {
      const Placement& placement = node_.At(i).placement;
      const double local = Locality(node_.machine(), placement);
      quality.local += local;
      ++quality.samples;
      if (AloneOn(placement).empty()) continue;
      quality.exclusive_local += local;
      ++quality.exclusive_samples;
    }
  }

  BenchNode node_;
  const Stream& stream_;
  const int64_t most_;
  std::mt19937_64 random_;
  std::vector<double> ends_;  // by the node's containers
};

void Print(std::string_view policy, const StreamQuality& quality) {
  const auto per = [](auto sum, int64_t of) {
    return of == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(of);
  };
  std::printf("  %-16.*s %7.1f%% %7.1f%% %7.1f%% %7.1f%% %7.1f%% %8.2f %9lld\n",
              static_cast<int>(policy.size()), policy.data(), quality.exclusive.l3.Percent(),
              quality.exclusive.node.Percent(), quality.exclusive.package.Percent(),
              100 * per(quality.exclusive_local, quality.exclusive_samples),
              100 * per(quality.local, quality.samples), per(quality.moves, quality.operations),
              static_cast<long long>(quality.refused));
}

}  // namespace

void MeasureStreams() {
  for (const Stream& stream : Streams()) {
    for (const int fill : {60, 100}) {
      std::printf("%.*s (%.*s), %zu machines of 8 to 512 CPUs, requests up to %d%%\n",
                  static_cast<int>(stream.name.size()), stream.name.data(),
                  static_cast<int>(stream.what.size()), stream.what.data(), kShapes.size(), fill);
      std::printf("  %-16s %8s %8s %8s %8s %8s %8s %9s\n", "policy", "one L3", "one NUMA",
                  "package", "local ex", "local", "moves/op", "refused");
      for (const PolicyFactory& factory :
           {KubeletLikePolicyFactory(), StaticPolicyFactory(), StaticPlusPolicyFactory(),
            TopologyAwarePolicyFactory(), DedicatedBalloonsFactory(),
            BalloonsWithinNodeFactory()}) {
        StreamQuality quality;
        for (const Shape& shape : kShapes) {
          for (const uint64_t seed : kSeeds)
            StreamRun(shape, factory, stream, fill, seed).Run(quality);
        }
        Print(factory.name, quality);
      }
    }
  }
}

}  // namespace resmgr::test
