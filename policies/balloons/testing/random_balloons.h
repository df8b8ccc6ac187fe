// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "pkg/topology/machine.h"
#include "policies/balloons/testing/reference_balloons.h"

namespace resmgr::test {

// Draws machines, configurations and containers for tests of balloons; a seed determines all.
class RandomBalloons {
 public:
  explicit RandomBalloons(uint64_t seed) : random_(seed) {}

  int Number(int first, int last) {
    return std::uniform_int_distribution<int>(first, last)(random_);
  }
  bool OneIn(int chance) { return Number(1, chance) == 1; }
  template <typename T>
  T OneOf(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Number(0, static_cast<int>(choices.size()) - 1))];
  }

  // Packages, dies, nodes, caches, cores of one to three threads; sometimes CPUs that are offline
  // or isolated, numbers with gaps or in no order.
  Machine NextMachine();
  ReferenceConfig NextConfig(const Machine& machine);
  // A container of a pod of its own, without key.
  ReferenceContainer NextContainer(const ReferenceConfig& config);
  // Another container of that pod.
  ReferenceContainer NextInPod(const ReferenceContainer& sibling);

 private:
  ReferenceType NextType(const std::string& name, const ReferenceConfig& config, int cpus);
  void AddRules(ReferenceType& type);
  void AddSizes(ReferenceType& type, int cpus);
  void AddComposites(ReferenceConfig& config);
  int64_t NextRequest();

  std::mt19937_64 random_;
  int last_pod_ = 0;
};

// The section policy.balloons of this configuration. `additions`: keys of ours, such as "a: 1, ".
std::string SectionOf(const ReferenceConfig& config, const std::string& additions);

// A text for messages: one line for each core.
std::string DescriptionOf(const Machine& machine);

}  // namespace resmgr::test
