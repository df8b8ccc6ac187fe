// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/topology/machine.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {

// A machine with 4 GiB for each CPU.
Machine BenchMachine(const Shape& shape);

// What comes on a node: sizes and kinds as on nodes with databases, services and small side
// containers.
struct PodShape {
  QosClass qos = QosClass::kBestEffort;
  int64_t milli_cpu = 0;
  int64_t limit = 0;
  int64_t memory = 0;
  bool annotated = false;  // with affinities to containers of any pod, and preferences
};
PodShape SomePod(std::mt19937_64& random);

// A policy with its containers, in the part of the brain. Ends the program on a policy's bug.
class BenchNode {
 public:
  BenchNode(const Machine& machine, const PolicyFactory& factory);

  // False when it is refused.
  bool Create(const PodShape& shape);
  // The container at this index of keys().
  void Remove(size_t index);
  bool Resize(size_t index, int64_t milli_cpu);
  // Takes everything over anew.
  void Reconcile();

  const std::vector<ContainerKey>& keys() const { return keys_; }
  const Container& At(size_t index) { return snapshot_.At(keys_[index]); }
  // CPU requests of all containers.
  int64_t Requested() const { return requested_; }
  const Machine& machine() const { return machine_; }
  // How long each decision of this kind took, in nanoseconds.
  std::vector<int64_t> allocate_times{};
  std::vector<int64_t> annotated_times{};  // of allocations with affinities
  std::vector<int64_t> update_times{};
  std::vector<int64_t> release_times{};
  std::vector<int64_t> reconcile_times{};

 private:
  void Apply(const StatusOr<Plan>& plan);

  const Machine machine_;
  std::unique_ptr<Policy> policy_;
  TestSnapshot snapshot_;
  std::vector<ContainerKey> keys_;
  int64_t requested_ = 0;
};

// The parts of the benchmark; each prints its tables.
void MeasureTimes();
void MeasureQuality();

}  // namespace resmgr::test
