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
  // Those of the first that are another, or are missing, in the second.
  static std::string Changes(const HostTree& before, const HostTree& after);

  // A node with these classes.
  void OpenWithClasses(std::string_view classes);
  // The configuration with these classes; "": none.
  static std::string WithClasses(std::string_view classes);
  void SetClasses(std::string_view classes);

  // A pod whose annotations choose classes. The pod's cgroup has a CPU quota when the container
  // comes, as a kubelet gives it one.
  RunningPod RunAnnotated(const Workload& workload,
                          const std::map<std::string, std::string>& annotations = {});

  // A file of the container's cgroup, without the end of its line.
  std::string Outside(const RunningPod& pod, std::string_view file);
  // The same, which has to be what a program in the container reads.
  std::string Setting(const RunningPod& pod, std::string_view file);
  // A file of its pod's cgroup.
  std::string PodSetting(const RunningPod& pod, std::string_view file);
  static std::string PodDirectory(const RunningPod& pod);
  static std::string LineOf(const std::string& path);
  static void Put(const std::string& path, std::string_view text);
  // The first process of the container.
  int ProcessOf(const RunningPod& pod);

  // The daemon writes after the call that has made a container, or started it.
  void Await(std::string_view what, const std::function<bool()>& condition);
  void AwaitText(std::string_view what, const std::string& expected,
                 const std::function<std::string()>& text);
  // Waits until Setting is this.
  void AwaitSetting(const RunningPod& pod, std::string_view file, const std::string& expected);
  // Words of `classes` and the log, for messages.
  std::string Why();
};

}  // namespace resmgr::test
