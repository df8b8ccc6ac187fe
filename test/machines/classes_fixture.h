// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "test/machines/machine_fixture.h"

namespace resmgr::test {

// Containers with classes on a kernel with cgroup v2, and what the kernel says of them.
class MachineClassesFixture : public MachineTest {
 protected:
  // Files of the kernel that classes write, by path, byte for byte.
  using HostTree = std::map<std::string, std::string>;

  void SetUp() override;

  // Interrupts, idle states, workqueues, and all cgroups that are there.
  static HostTree Host();
  // Files of `before` that differ or are missing in `after`.
  static std::string Changes(const HostTree& before, const HostTree& after);

  // Starts with these classes.
  void OpenWithClasses(std::string_view classes);
  // The configuration with these classes; "": none.
  static std::string WithClasses(std::string_view classes);
  void SetClasses(std::string_view classes);

  // A pod whose annotations choose classes. The pod's cgroup already has a CPU quota, as under a
  // kubelet.
  RunningPod RunAnnotated(const Workload& workload,
                          const std::map<std::string, std::string>& annotations = {});

  // A file of the container's cgroup, without the end of its line.
  std::string Outside(const RunningPod& pod, std::string_view file);
  // The same; checks that a program in the container reads it, too.
  std::string Setting(const RunningPod& pod, std::string_view file);
  // A file of its pod's cgroup.
  std::string PodSetting(const RunningPod& pod, std::string_view file);
  static std::string PodDirectory(const RunningPod& pod);
  static std::string LineOf(const std::string& path);
  static void Put(const std::string& path, std::string_view text);
  // The first process of the container.
  int ProcessOf(const RunningPod& pod);

  // Waits, since the daemon writes after it has answered a create or start.
  void Await(std::string_view what, const std::function<bool()>& condition);
  void AwaitText(std::string_view what, const std::string& expected,
                 const std::function<std::string()>& text);
  // Waits for this Setting.
  void AwaitSetting(const RunningPod& pod, std::string_view file, const std::string& expected);
  // Output of `classes` and log, for messages.
  std::string Why();
};

}  // namespace resmgr::test
