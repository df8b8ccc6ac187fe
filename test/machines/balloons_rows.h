// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "test/machines/machine_fixture.h"

namespace resmgr::test {

bool Apart(const CpuSet& a, const CpuSet& b);

// The annotation of this name, of one container if it is given.
std::string Key(const std::string& name, const std::string& container = "");

Workload Asks(const std::string& name, int64_t request);
Workload In(const std::string& namespace_name, Workload workload);

// A node under balloons for its acceptance rows. The rows' machine has two packages of two nodes of
// two cores of two threads.
class BalloonsRowsTest : public MachineTest {
 protected:
  using Texts = std::map<std::string, std::string>;

  void SetUp() override;

  // The text of the section policy.balloons.
  void OpenWith(const std::string& section);
  Status Change(const std::string& section);

  // A pod with this container; more of them by Add.
  RunningPod RunAs(const Workload& workload, const Texts& annotations = {},
                   const Texts& labels = {});
  RunningPod RunOf(const std::string& type, const Workload& workload);

  // The container's CPUs by the kernel; waits until there are `size` of them, with memory of their
  // nodes.
  CpuSet On(const RunningPod& pod, int size);

  // The balloon of each container, by its full name, and the balloons themselves.
  Texts Balloons();
  static int CoresOf(const CpuSet& cpus) { return TheMachine().WithSiblings(cpus).size() / 2; }
  // The number of these CPUs in the NUMA node.
  static int InNode(const CpuSet& cpus, int node);
};

}  // namespace resmgr::test
