// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "test/integration/control_fixture.h"

namespace resmgr::test {

// A daemon whose host is a tree of files.
class ClassesTest : public ControlTest {
 protected:
  ClassesTest() {
    Put("proc/irq/default_smp_affinity", "ff\n");
    Put("proc/irq/1/smp_affinity", "ff\n");
    Put("proc/irq/24/smp_affinity", "0f\n");
    Put("proc/interrupts", "     CPU0 CPU1\n  1: 0 0 IO-APIC 1-edge i8042\n");
    Put("sys/devices/system/cpu/online", "0-7\n");
    Put("sys/devices/virtual/workqueue/cpumask", "ff\n");
    for (int cpu = 0; cpu < kCpus; ++cpu)
      Put(LatencyOf(cpu), "0\n");
    Put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    Put(kQuota, "200000 100000\n");
    before_ = Tree();
  }
  static std::string LatencyOf(int cpu) {
    return fmt::format("sys/devices/system/cpu/cpu{}/power/pm_qos_resume_latency_us", cpu);
  }
  std::filesystem::path Root() const { return Path("root"); }
  void Put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((Root() / name).parent_path());
    std::ofstream(Root() / name) << text;
  }
  std::string At(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Root() / name).rdbuf();
    return text.str();
  }
  std::map<std::string, std::string> Tree() const {
    std::map<std::string, std::string> tree;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Root())) {
      const std::string name = std::filesystem::relative(entry.path(), Root());
      if (entry.is_regular_file()) tree[name] = At(name);
    }
    return tree;
  }
  bool GivenBack() const {
    return Eventually([this] { return Tree() == before_; });
  }
  void Start(const std::string& classes) {
    StartDaemon(
        Flags({"-host-root", Root(), "-fallback-config",
               WriteFile("classes.yaml",
                         "policy: {Active: static, ReservedResources: {CPU: 1}}\n" + classes)}));
  }

  static constexpr const char* kAll =
      "classes: {isolation: {Interrupts: isolate, Workqueues: isolate, Quota: lift, "
      "MaxLatency: 10us, Governor: performance}}\n";
  static constexpr const char* kQuota = "sys/fs/cgroup/kubepods/poduid-g/cpu.max";
  std::map<std::string, std::string> before_;
};

}  // namespace resmgr::test
