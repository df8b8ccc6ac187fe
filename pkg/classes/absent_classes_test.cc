// SPDX-License-Identifier: Apache-2.0
// Classes that pods ask for and that the machine lacks support for.
#include <algorithm>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/testing/host_classes_fixture.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using test::HostClassesTest;
using test::IsOk;
using test::kDefaultAffinity;
using test::TestNode;
using testing::AllOf;
using testing::HasSubstr;

using enum QosClass;

TEST_F(HostClassesTest, AbsentClassesThatAPodAsksForAreRefusedWhereTheConfigurationSaysSo) {
  fs::remove(Root() + "/sys/fs/resctrl/schemata");
  ClassesConfig config;
  config.rdt.partitions["p"].classes["gold"];
  config.namespaces["rdt"] = {"ns"};
  classes_->Configure(config);
  // A report about the former configuration may come first.
  ASSERT_TRUE(node_.RunUntil([&] {
    return std::ranges::any_of(classes_->report().classes, [](const ClassState& one) {
      return one.name == "gold" && !one.active;
    });
  }));
  CreateRequest request = TestNode::Request(node_.AddPod("web", kBurstable), "web", 500);
  request.pod_id = PodSandboxId("unknown");
  request.pod.emplace();
  request.pod->namespace_name = "ns";
  request.pod->annotations = StringMap({{"rdtclass.resource-policy.nri.io", "gold"}});
  EXPECT_THAT(Refusal(request), IsOk());
  config.absent = ClassesConfig::Absent::kRefuse;
  classes_->Configure(config);
  EXPECT_EQ(Refusal(request).code(), StatusCode::kUnavailable)
      << "the machine has not been looked at yet";
  Status refusal;
  ASSERT_TRUE(node_.RunUntil([&] {
    refusal = Refusal(request);
    return refusal.code() == StatusCode::kFailedPrecondition;
  }));
  EXPECT_THAT(std::string(Message(refusal)), HasSubstr("there is no sys/fs/resctrl/schemata"));
}

TEST_F(HostClassesTest, AnAbsentClassOfCpusIsRefusedAlsoWhileContainersHaveIt) {
  ClassesConfig config;
  config.cpu.classes = {{.name = "quiet", .disabled_cstates = {"C6"}}};
  config.namespaces["cpu"] = {"ns"};
  config.absent = ClassesConfig::Absent::kRefuse;
  CreateRequest request = TestNode::Request(node_.AddPod("web", kBurstable), "web", 500);
  request.pod_id = PodSandboxId("unknown");
  request.pod.emplace();
  request.pod->namespace_name = "ns";
  request.pod->annotations = StringMap({{"cpu-class.resource-policy.nri.io/pod", "quiet"}});
  const auto refused = [&] {
    const Status refusal = Refusal(request);
    return refusal.code() == StatusCode::kFailedPrecondition &&
           Message(refusal).find("there is no sys/devices/system/cpu/cpu0/cpuidle") !=
               std::string_view::npos;
  };
  classes_->Configure(config);
  EXPECT_TRUE(node_.RunUntil(refused));
  const ContainerId id = RunWith(request.pod->annotations, {});
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->report().containers.contains(id.value()); }));
  EXPECT_TRUE(refused());
}

// A class that a pod asks for, and the words of the refusal where its machine lacks support for it.
struct Absence {
  const char* key;
  const char* value;
  const char* message = "";
  const char* reason = "";
};

class AbsentClassTest : public HostClassesTest {
 protected:
  AbsentClassTest() {
    config_.memory = {{.name = "silver", .high = "1Gi"}};
    config_.memory_files = {"memory.swap.max"};
    config_.namespaces = {{"memory", {"ns"}}, {"isolation", {"ns"}}};
    config_.absent = ClassesConfig::Absent::kRefuse;
  }
  // The refusal of a container with CPUs of its own, which has been placed.
  Status RefusalOf(const Absence& absence) {
    const std::string name = fmt::format("c{}", ++created_);
    Pod pod;
    pod.id = PodSandboxId("sandbox-" + name);
    pod.name = name;
    pod.namespace_name = "ns";
    pod.qos = kGuaranteed;
    pod.annotations = StringMap({{absence.key, absence.value}});
    node_.runtime.held.pods.push_back(pod);
    node_.manager().PodCreated(Pod(pod));
    const CreateRequest request = TestNode::Request(pod.id, name, 1000);
    const StatusOr<Admission> admission = node_.manager().AdmitCreate(CreateRequest(request));
    EXPECT_THAT(admission.status(), IsOk());
    Status refusal = Refusal(request);
    if (admission.ok()) node_.manager().CreateFailed(admission->key);
    return refusal;
  }

  ClassesConfig config_;
  int created_ = 0;
};

TEST_F(AbsentClassTest, IsolationAndMemoryThatTheMachineLacksAreRefused) {
  fs::remove(Root() + "/" + kDefaultAffinity);
  const Absence absences[] = {
      {"irq-load-balancing.crio.io", "disable",
       "annotation irq-load-balancing.crio.io: the machine lacks interrupts isolate: ",
       "/proc/irq/default_smp_affinity"},
      {"isolation.resource-policy.nri.io/pod", "{Workqueues: isolate}",
       "the machine lacks workqueues isolate: ", "/sys/devices/virtual/workqueue/cpumask"},
      {"cpu-quota.crio.io", "disable", "the machine lacks quota lift: ", "sys/fs/cgroup/cpu"},
      {"cpu-load-balancing.crio.io", "disable",
       "the machine lacks partition isolated: ", "/sys/fs/cgroup/cgroup.controllers"},
      {"cpu-c-states.crio.io", "max_latency:10",
       "the machine lacks idle 10us: ", "cpu0/power/pm_qos_resume_latency_us"},
      {"cpu-freq-governor.crio.io", "performance",
       "the machine lacks clock performance: ", "cpu0/cpufreq/scaling_governor"},
      {"class.memory-qos.nri.io", "silver",
       "annotation class.memory-qos.nri.io: the machine lacks memory silver: ", "cgroup v2"},
      {"memory.swap.max.memory-qos.nri.io", "0",
       "the machine lacks memory annotated files: ", "cgroup v2"}};
  classes_->Configure(config_);
  EXPECT_EQ(RefusalOf(absences[0]).code(), StatusCode::kUnavailable)
      << "the machine has not been looked at yet";
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->known(); }));
  for (const Absence& absence : absences) {
    const Status refusal = RefusalOf(absence);
    EXPECT_EQ(refusal.code(), StatusCode::kFailedPrecondition) << absence.key;
    EXPECT_THAT(std::string(Message(refusal)),
                AllOf(HasSubstr(absence.message), HasSubstr(absence.reason)));
  }
  EXPECT_THAT(RefusalOf({"cpu-c-states.crio.io", "enable"}), IsOk()) << "it needs nothing";
}

TEST_F(AbsentClassTest, IsolationAndMemoryThatTheMachineHasAreNot) {
  Put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
  Put("proc/sys/kernel/osrelease", "6.12.1-cloud\n");
  Put("sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us", "0\n");
  Put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  Put("sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors", "performance powersave\n");
  classes_->Configure(config_);
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->known(); }));
  const Absence present[] = {
      {"irq-load-balancing.crio.io", "housekeeping"}, {"cpu-quota.crio.io", "disable"},
      {"cpu-load-balancing.crio.io", "disable"},      {"cpu-c-states.crio.io", "disable"},
      {"cpu-freq-governor.crio.io", "performance"},   {"class.memory-qos.nri.io", "silver"}};
  for (const Absence& one : present)
    EXPECT_THAT(RefusalOf(one), IsOk()) << one.key;
  EXPECT_THAT(std::string(Message(RefusalOf({"cpu-freq-governor.crio.io", "ondemand"}))),
              HasSubstr("the machine lacks clock ondemand: there are the governors performance, "
                        "powersave"));
}

TEST_F(AbsentClassTest, WhatTheConfigurationAloneAsksForIsNotRefused) {
  fs::remove(Root() + "/" + kDefaultAffinity);
  config_.isolation.interrupts = IsolationConfig::Interrupts::kIsolate;
  classes_->Configure(config_);
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->known(); }));
  EXPECT_THAT(RefusalOf({"other", ""}), IsOk());
  const Status refusal = RefusalOf({"irq-load-balancing.crio.io", "disable"});
  EXPECT_EQ(refusal.code(), StatusCode::kFailedPrecondition) << "the pod asks for the same";
}

}  // namespace
}  // namespace resmgr
