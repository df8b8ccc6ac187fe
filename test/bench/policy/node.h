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

// The pods of a node: sizes and kinds as on nodes with databases, services and small side
// containers.
struct PodShape {
  QosClass qos = QosClass::kBestEffort;
  int64_t milli_cpu = 0;
  int64_t limit = 0;
  int64_t memory = 0;
  // The number of the annotations' text with affinities and preferences: 1 is the text that most
  // pods have, others are unique texts.
  int annotation = 0;
};
PodShape SomePod(std::mt19937_64& random);

// How long decisions took, in nanoseconds: on the clock, and of the processor's time, which others
// on a busy machine do not lengthen.
struct Times {
  std::vector<int64_t> wall{};
  std::vector<int64_t> cpu{};

  void Reserve(size_t count);
  void Clear();
  // Takes the shorter times of the same calls, made once more.
  void KeepShortest(const Times& again);
};

// A snapshot in which no pod has an overhead. The brain keeps the sum; TestSnapshot would count it
// anew.
class BenchSnapshot final : public TestSnapshot {
 public:
  HeldOverheads Overheads() const override { return {}; }
};

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
  // Milli-CPUs that a scheduler gives out of this node: its CPUs without the reserved one.
  int64_t Allocatable() const { return int64_t{1000} * (machine_.allowed().size() - 1); }
  // CPU requests of all containers.
  int64_t Requested() const { return requested_; }
  // How often a container was given other CPUs or memory for the sake of another one.
  int64_t Moves() const { return moves_; }
  const Machine& machine() const { return machine_; }
  Times allocate_times{};
  Times annotated_times{};   // of allocations with the usual affinities
  Times first_read_times{};  // of allocations with affinities that were never seen before
  Times prepare_times{};     // time of Prepare when such a pod was created
  Times update_times{};
  Times release_times{};
  Times reconcile_times{};

 private:
  // `key` is the container that the plan was made for.
  void Apply(const StatusOr<Plan>& plan, ContainerKey key = {});

  const Machine machine_;
  std::unique_ptr<Policy> policy_;
  BenchSnapshot snapshot_;
  std::vector<ContainerKey> keys_;
  int64_t requested_ = 0;
  int64_t moves_ = 0;
};

// The parts of the benchmark; each prints its tables.
void MeasureTimes();
void MeasureQuality();
void MeasureStreams();
// False when a target is missed.
bool MeasureClaims();
void MeasureViews();
void MeasureLosses();

}  // namespace resmgr::test
