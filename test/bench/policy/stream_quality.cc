// SPDX-License-Identifier: Apache-2.0
// How policies place streams of pods, over a range of machines together.
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/bench/policy/balloons_bench.h"
#include "test/bench/policy/kubelet_like.h"
#include "test/bench/policy/node.h"
#include "test/bench/policy/share.h"
#include "test/bench/policy/streams.h"

namespace resmgr::test {
namespace {

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
