// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/topology/machine.h"

namespace resmgr::test {

// Pods as a scheduler sends them: their requests never exceed what the node has, the CPUs without
// the reserved ones and the memory, and often use all of it. In between pods end, their containers
// are started again or resized, and the policy is made anew.
class PodStream {
 public:
  // The errors, in words; a test expects none.
  struct Result {
    int pods = 0;
    int full = 0;  // how often all CPUs were asked for
    std::vector<std::string> refusals{};
    std::vector<std::string> defects{};  // plans against the rules, containers that were moved
  };

  // `unreserved` is the part of the reserved CPUs that pods may request.
  PodStream(const Machine& machine, const CpuSet& reserved, const PolicyFactory& factory,
            uint64_t seed, MilliCpu unreserved = {});

  // Runs until `pods` pods came.
  Result Run(int pods);

 private:
  struct Member {
    ContainerKey key{};
    int64_t milli_cpu = 0;
    int64_t memory = 0;  // the pod's real request
  };

  void MakePolicy();
  int64_t Number(int64_t first, int64_t last);
  bool Chance(int percent) { return Number(1, 100) <= percent; }

  int64_t SomeRequest(QosClass qos);
  void Create(QosClass qos, int64_t milli_cpu);
  void SetNeeds(QosClass qos, int64_t milli_cpu, int64_t memory, Container& container);
  void Annotate(Pod& pod);
  void FillUp();
  void Remove(size_t index);
  void StartAgain(size_t index);
  void Resize(size_t index);
  void CheckRestart();
  void Apply(std::string_view what, const StatusOr<Plan>& plan);
  void Refused(std::string_view what, const Container& container, const Status& status);

  const Machine machine_;
  const CpuSet reserved_;
  const PolicyFactory factory_;
  const MilliCpu unreserved_;
  const int64_t allocatable_;  // in milli-CPUs
  int64_t memory_ = 0;
  std::mt19937_64 random_;
  std::unique_ptr<Policy> policy_;
  TestSnapshot snapshot_;
  std::vector<Member> members_;
  int64_t cpu_used_ = 0;
  int64_t memory_used_ = 0;
  Result result_;
};

struct StreamMachine {
  const char* name;  // a word
  Machine (*make)();
  const char* reserved;  // CPUs for the system
};

// Twenty machines: from 2 to 288 CPUs, with one to four threads in a core, with several dies, with
// packages of different sizes, with offline and with isolated CPUs.
const std::vector<StreamMachine>& StreamMachines();

}  // namespace resmgr::test
