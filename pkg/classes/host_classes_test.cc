// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_classes.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/testing/host_classes_fixture.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::HostClassesTest;
using test::IsOk;
using test::kDefaultAffinity;
using test::TestNode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using enum QosClass;

TEST_F(HostClassesTest, FromCreationToTheEnd) {
  classes_->Configure(Interrupts());
  const ContainerId id = node_.Run("dsp", kGuaranteed, 2000);
  ASSERT_EQ(node_.Exclusive(id), "1-2");
  ASSERT_TRUE(Becomes(kDefaultAffinity, "f9"));
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->report().containers.contains(id.value()); }));
  EXPECT_THAT(classes_->report().classes.at(0).containers, ElementsAre("ns/dsp/dsp"));
  EXPECT_FALSE(classes_->given_back());
  EXPECT_EQ(classes_->report().held.at(kDefaultAffinity), "ff");
  EXPECT_THAT(classes_->problems(), IsEmpty());
  node_.Run("web", kBurstable, 500);
  const ContainerId other = node_.Run("more", kGuaranteed, 1000);
  EXPECT_TRUE(Becomes(kDefaultAffinity, "f1"));
  node_.Stop(id);
  EXPECT_TRUE(Becomes(kDefaultAffinity, "f7"));
  node_.Remove(id);
  node_.Crash(other);
  node_.Reconnect();
  EXPECT_TRUE(Becomes(kDefaultAffinity, "ff\n"));
  EXPECT_TRUE(node_.RunUntil([&] { return classes_->given_back(); }));
}

TEST_F(HostClassesTest, AnotherProgramsValueIsWrittenOverWithinThePeriod) {
  classes_->Configure(Interrupts());
  node_.Run("dsp", kGuaranteed, 2000);
  ASSERT_TRUE(Becomes(kDefaultAffinity, "f9"));
  Put(kDefaultAffinity, "ff\n");
  EXPECT_TRUE(Becomes(kDefaultAffinity, "f9"));
}

TEST_F(HostClassesTest, TheConfigurationTakesItBack) {
  classes_->Configure(Interrupts());
  node_.Run("dsp", kGuaranteed, 2000);
  ASSERT_TRUE(Becomes(kDefaultAffinity, "f9"));
  classes_->Configure({});
  EXPECT_TRUE(Becomes(kDefaultAffinity, "ff\n"));
  classes_->Configure(Interrupts());
  ASSERT_TRUE(Becomes(kDefaultAffinity, "f9"));
  with_policy_ = false;
  classes_->Configure(Interrupts());
  EXPECT_TRUE(Becomes(kDefaultAffinity, "ff\n"));
}

TEST_F(HostClassesTest, TheNextDaemonGoesOnOrGivesBack) {
  classes_->Configure(Interrupts());
  node_.Run("dsp", kGuaranteed, 2000);
  ASSERT_TRUE(Becomes(kDefaultAffinity, "f9"));
  ASSERT_TRUE(node_.RunUntil([&] { return !classes_->report().held.empty(); }));
  for (const bool wanted : {true, false}) {
    MakeClasses();
    classes_->Configure(wanted ? Interrupts() : ClassesConfig());
    EXPECT_TRUE(Becomes(kDefaultAffinity, wanted ? "f9" : "ff\n"));
    EXPECT_TRUE(node_.RunUntil([&] { return classes_->report().held.empty() == !wanted; }));
  }
}

TEST_F(HostClassesTest, WhatIsMissingIsAProblemUntilItIsThere) {
  fs::remove(Root() + "/" + kDefaultAffinity);
  classes_->Configure(Interrupts());
  ASSERT_TRUE(node_.RunUntil([&] { return !classes_->problems().empty(); }));
  const Problem problem = classes_->problems()[0];
  EXPECT_EQ(problem.kind, "class-inactive");
  EXPECT_THAT(problem.message, HasSubstr(kDefaultAffinity));
  EXPECT_GT(problem.since.time_since_epoch().count(), 0);
  Put(kDefaultAffinity, "ff\n");
  EXPECT_TRUE(node_.RunUntil([&] { return classes_->problems().empty(); }));
}

TEST_F(HostClassesTest, WithoutItsJournalAClassIsInactiveAndNothingIsKnownToBeGivenBack) {
  directory_.Put("classes/journal", "cri-resmgr classes 2 x\n{}");
  classes_->Configure(Interrupts());
  const ContainerId id = node_.Run("dsp", kGuaranteed, 2000);
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->report().containers.contains(id.value()); }));
  const ClassState& state = classes_->report().classes.at(0);
  EXPECT_FALSE(state.active);
  EXPECT_THAT(state.reason, HasSubstr("which is newer"));
  EXPECT_EQ(At(kDefaultAffinity), "ff\n");
  classes_->Configure({});
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->report().classes.empty(); }));
  EXPECT_FALSE(classes_->given_back());
}

// Their clocks keep the class's values meanwhile, and no program can read or write them.
TEST_F(HostClassesTest, FilesOfCpusThatAreOfflineDoNotHoldUpTheEnd) {
  const std::string file = "sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us";
  for (int cpu = 1; cpu < 8; ++cpu)
    Put(fmt::format("sys/devices/system/cpu/cpu{}/power/pm_qos_resume_latency_us", cpu), "0\n");
  classes_->Configure({.isolation = {.max_latency = "10"}});
  node_.Run("dsp", kGuaranteed, 2000);
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->report().held.size() == 2; }));
  // Each step at once, since the worker looks at any time; a directory cannot be read.
  fs::create_directory_symlink(Root(), Root() + "/directory");
  fs::rename(Root() + "/directory", Root() + "/" + file);
  Put("online", "0,2-7\n");
  fs::rename(Root() + "/online", Root() + "/sys/devices/system/cpu/online");
  classes_->Configure({});
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->given_back(); }));
  EXPECT_THAT(classes_->report().held, ElementsAre(testing::Key(file)));
  EXPECT_THAT(classes_->problems(), IsEmpty());
}

TEST_F(HostClassesTest, ManyFilesAreNotAProblemEach) {
  constexpr int kInterrupts = 30;
  const auto path = [](int i) { return fmt::format("proc/irq/{}/smp_affinity", i); };
  for (int i = 0; i < kInterrupts; ++i)
    Put(path(i), "ff\n");
  classes_->Configure(Interrupts());
  node_.Run("dsp", kGuaranteed, 2000);
  ASSERT_TRUE(
      node_.RunUntil([&] { return classes_->report().held.size() == size_t{kInterrupts} + 1; }));
  for (int i = 0; i < kInterrupts; ++i) {
    fs::remove(Root() + "/" + path(i));
    fs::create_directory(Root() + "/" + path(i));
  }
  classes_->Configure({});
  ASSERT_TRUE(node_.RunUntil([&] { return !classes_->report().not_given_back.empty(); }));
  ASSERT_EQ(classes_->problems().size(), 11U);
  EXPECT_THAT(classes_->problems().back().message, HasSubstr("20 more files"));
}

TEST_F(HostClassesTest, AnUnknownValueIsRefusedWhereItCounts) {
  CreateRequest request = TestNode::Request(node_.AddPod("dsp", kGuaranteed), "dsp", 2000);
  request.pod_id = PodSandboxId("unknown");
  request.pod.emplace();
  request.pod->namespace_name = "ns";
  request.pod->annotations = StringMap({{"cpu-c-states.crio.io", "foo"}});
  ClassesConfig config;
  classes_->Configure(config);
  EXPECT_THAT(Refusal(request), IsOk());
  config.namespaces["isolation"] = {"ns"};
  classes_->Configure(config);
  const Status refusal = Refusal(request);
  EXPECT_EQ(refusal.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refusal)), HasSubstr("annotation cpu-c-states.crio.io: \"foo\""));
  config.namespaces["isolation"] = {"other"};
  classes_->Configure(config);
  EXPECT_THAT(Refusal(request), IsOk());
}

TEST_F(HostClassesTest, ABurstComesDownBeforeALowerQuotaAndUpAfterAHigherOne) {
  period_ = std::chrono::hours(1);
  MakeClasses();
  ClassesConfig config;
  config.scheduling.classes = {{.name = "web", .burst_percent = 100}};
  config.namespaces["scheduling"] = {"ns"};
  const ContainerId id = RunWith({{"scheduling-class.resource-policy.nri.io/pod", "web"}},
                                 {{"cpu.max", "50000 100000\n"}, {"cpu.max.burst", "0\n"}});
  const std::string burst = CgroupOf(id) + "/cpu.max.burst";
  classes_->Configure(config);
  ASSERT_TRUE(Becomes(burst, "50000"));
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->report().containers.contains(id.value()); }));
  {
    const auto update = SetQuota(id, 30'000);
    ASSERT_TRUE(node_.RunUntil([&] { return update->passed(); }));
    EXPECT_EQ(At(burst), "30000");
    // The runtime refuses it for another reason.
  }
  EXPECT_TRUE(Becomes(burst, "50000"));
  {
    const auto rise = SetQuota(id, 80'000);
    EXPECT_TRUE(rise->passed()) << "at once";
    EXPECT_EQ(At(burst), "50000");
    // The runtime writes it when it has been decided.
    Put(CgroupOf(id) + "/cpu.max", "80000 100000\n");
  }
  EXPECT_TRUE(Becomes(burst, "80000")) << "when it has got there, and not after a minute";
}

TEST_F(HostClassesTest, ABurstStaysDownForTheUpdateThatIsStillUnderWay) {
  ClassesConfig config;
  config.scheduling.classes = {{.name = "web", .burst_percent = 100}};
  config.namespaces["scheduling"] = {"ns"};
  const ContainerId id = RunWith({{"scheduling-class.resource-policy.nri.io/pod", "web"}},
                                 {{"cpu.max", "50000 100000\n"}, {"cpu.max.burst", "0\n"}});
  const std::string burst = CgroupOf(id) + "/cpu.max.burst";
  classes_->Configure(config);
  ASSERT_TRUE(Becomes(burst, "50000"));
  auto first = SetQuota(id, 30'000);
  auto second = SetQuota(id, 20'000);
  ASSERT_TRUE(Becomes(burst, "20000"));
  second.reset();
  EXPECT_TRUE(Becomes(burst, "30000"));
  first.reset();
  EXPECT_TRUE(Becomes(burst, "50000"));
}

TEST_F(HostClassesTest, AClassIsChosenAgainWhenTheDoorCanDoMore) {
  ClassesConfig config;
  config.namespaces["memory"] = {"ns"};
  const ContainerId id =
      RunWith({{"policy.memory-policy.nri.io", "{mode: MPOL_BIND, nodes: all}"}}, {});
  classes_->Configure(config);
  ASSERT_TRUE(node_.RunUntil([&] { return !classes_->NoteOf(std::string(id.value())).empty(); }));
  EXPECT_THAT(classes_->NoteOf(std::string(id.value())), HasSubstr("can set no memory policy"));
  ways_.memory_policy = true;
  EXPECT_TRUE(node_.RunUntil([&] { return classes_->report().containers.contains(id.value()); }));
  EXPECT_THAT(classes_->NoteOf(std::string(id.value())), IsEmpty());
}

class MemoryPolicyTruthTest : public HostClassesTest {
 protected:
  MemoryPolicyTruthTest() { ways_.memory_policy = true; }

  static ClassesConfig Asks(std::optional<MemoryPolicySettings::Mode> mode) {
    ClassesConfig config;
    config.namespaces["memory"] = {"ns"};
    MemoryClassConfig& one = config.memory.emplace_back();
    one.name = "near";
    one.low = "1000";
    if (mode) one.policy = MemoryPolicyConfig{.mode = *mode, .nodes = "all"};
    return config;
  }
  // A container whose pod asks for the class, created by calls that pass the pipeline.
  ContainerId CreateWithClass(const char* name) {
    Pod pod;
    pod.id = PodSandboxId(fmt::format("sandbox-{}", name));
    pod.uid = PodUid(fmt::format("uid-{}", name));
    pod.name = name;
    pod.namespace_name = "ns";
    pod.qos = kBurstable;
    pod.annotations = StringMap({{"class.memory-policy.nri.io", "near"}});
    node_.runtime.held.pods.push_back(pod);
    node_.manager().PodCreated(Pod(pod));
    const CreateRequest request = TestNode::Request(pod.id, name, 500);
    const Admission admission = node_.manager().AdmitCreate(CreateRequest(request)).value();
    EXPECT_THAT(Refusal(request), IsOk());
    return node_.Created(request, admission);
  }
  // Returns the part of `explain` about the policy; "" if there is nothing yet.
  std::string Told(const ContainerId& id) const {
    const auto found = classes_->report().containers.find(id.value());
    if (found == classes_->report().containers.end()) return "";
    for (const ContainerClass& one : found->second)
      if (one.kind == "memory") return fmt::format("{}, {}; {}", one.in_force, one.way, one.reason);
    return "";
  }
  bool Tells(const ContainerId& id, std::string_view text) {
    if (node_.RunUntil([&] { return Told(id).starts_with(text); })) return true;
    ADD_FAILURE() << Told(id);
    return false;
  }
};

TEST_F(MemoryPolicyTruthTest, WhatAContainerBeganWithStaysWhateverIsChosenLater) {
  using enum MemoryPolicySettings::Mode;
  classes_->Configure(Asks(kInterleave));
  const ContainerId id = CreateWithClass("db");
  ASSERT_TRUE(Tells(id, "interleave 0, at creation; "));
  EXPECT_EQ(Told(id), "interleave 0, at creation; ");
  classes_->Configure(Asks(kBind));
  EXPECT_TRUE(Tells(id, "interleave 0, at creation; bind 0 is chosen now, "));
  EXPECT_TRUE(Tells(CreateWithClass("web"), "bind 0, at creation; "));
  classes_->Configure(Asks(std::nullopt));
  EXPECT_TRUE(Tells(id, "interleave 0, at creation; "));
  // The next daemon knows it, too.
  MakeClasses();
  classes_->Configure(Asks(kInterleave));
  ASSERT_TRUE(Tells(id, "interleave 0, at creation; "));
  EXPECT_EQ(Told(id), "interleave 0, at creation; ");
}

TEST_F(MemoryPolicyTruthTest, WhatAContainerBeganWithIsKnownWhileNoClassIsChosenToo) {
  classes_->Configure(Asks(MemoryPolicySettings::Mode::kInterleave));
  const ContainerId id = CreateWithClass("db");
  ASSERT_TRUE(Tells(id, "interleave 0, at creation; "));
  ClassesConfig others = Asks(MemoryPolicySettings::Mode::kBind);
  others.namespaces["memory"] = {"other"};
  const std::string former = "interleave 0, at creation; it is not chosen any more";
  classes_->Configure(others);
  EXPECT_TRUE(Tells(id, former));
  MakeClasses();
  classes_->Configure(others);
  EXPECT_TRUE(Tells(id, former)) << "after a restart";
  classes_->Configure({});
  EXPECT_TRUE(node_.RunUntil([&] { return Told(id).empty(); })) << "classes are off";
  classes_->Configure(others);
  EXPECT_TRUE(Tells(id, former));
}

TEST_F(MemoryPolicyTruthTest, AContainerThatBeganWithoutAPolicyDoesNotHaveIt) {
  using enum MemoryPolicySettings::Mode;
  ClassesConfig others = Asks(kBind);
  others.namespaces["memory"] = {"other"};
  classes_->Configure(others);
  const ContainerId id = CreateWithClass("db");
  classes_->Configure(Asks(kBind));
  EXPECT_TRUE(Tells(id, "none, at creation; bind 0 is chosen now, "));
}

// Kubelets since 1.28 ask for memory.swap.max and memory.oom.group of each container.
TEST_F(HostClassesTest, WhatTheKubeletAskedForIsBackWhenAClassOfMemoryEnds) {
  Put("sys/fs/cgroup/cgroup.controllers", "memory\n");
  MakeClasses();
  ClassesConfig config;
  config.namespaces["memory"] = {"ns"};
  config.memory = {{.name = "kept", .low = "4096"}};
  classes_->Configure(config);
  const Pod pod = PodWith(StringMap({{"class.memory-qos.nri.io", "kept"}}));
  node_.runtime.held.pods.push_back(pod);
  node_.manager().PodCreated(Pod(pod));
  const CreateRequest request = TestNode::Request(pod.id, "p", 500);
  const Admission admission = node_.manager().AdmitCreate(CreateRequest(request)).value();
  {
    test::TestCall call(pipeline_, Operation::kCreateContainer);
    call.request.body = request;
    call.details.unified = StringMap({{"memory.low", "8192"}, {"memory.oom.group", "1"}});
    call.Start();
  }
  const ContainerId id = node_.Created(request, admission);
  const std::string file = CgroupOf(id) + "/memory.low";
  // At once, since the worker looks at any time.
  Put("low", "4096\n");
  fs::create_directories(Root() + "/" + CgroupOf(id));
  fs::rename(Root() + "/low", Root() + "/" + file);
  const auto active = [&] { return classes_->report().containers.contains(id.value()); };
  ASSERT_TRUE(node_.RunUntil(active));
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->report().held.contains(file); }));
  MakeClasses();  // the next daemon
  classes_->Configure({});
  EXPECT_TRUE(Becomes(file, "8192")) << At(file);
}

TEST_F(HostClassesTest, AClassOfMemoryThatIsConfiguredLaterReachesContainersThatRun) {
  const ContainerId id = RunWith({{"class.memory-qos.nri.io", "kept"}}, {{"memory.low", "0\n"}});
  const std::string file = CgroupOf(id) + "/memory.low";
  ClassesConfig config = Interrupts();
  classes_->Configure(config);
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->known(); }));
  config.namespaces["memory"] = {"ns"};
  config.memory = {{.name = "kept", .low = "4096"}};
  classes_->Configure(config);
  EXPECT_TRUE(Becomes(file, "4096")) << At(file);
}

TEST_F(HostClassesTest, AMemoryPolicyIsNotToldInForceForAContainerThatExistedBefore) {
  ClassesConfig config;
  config.namespaces["memory"] = {"ns"};
  ways_.memory_policy = true;
  const ContainerId id =
      RunWith({{"policy.memory-policy.nri.io", "{mode: MPOL_BIND, nodes: all}"}}, {});
  classes_->Configure(config);
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->report().containers.contains(id.value()); }));
  EXPECT_EQ(classes_->report().containers.at(std::string(id.value()))[0].in_force, "unknown");
}

TEST_F(HostClassesTest, AnnotationsOfCrioSetItsVariables) {
  ClassesConfig config;
  config.namespaces["isolation"] = {"ns"};
  classes_->Configure(config);
  const auto environment = [&](const char* name, QosClass qos, const StringMap& annotations) {
    Pod pod;
    pod.id = PodSandboxId(fmt::format("sandbox-{}", name));
    pod.name = name;
    pod.namespace_name = "ns";
    pod.qos = qos;
    pod.annotations = annotations;
    node_.manager().PodCreated(Pod(pod));
    const CreateRequest request = TestNode::Request(pod.id, name, 2000);
    EXPECT_THAT(node_.manager().AdmitCreate(CreateRequest(request)).status(), IsOk());
    const auto creation = Create(request);
    EXPECT_TRUE(creation->passed());
    std::vector<std::string> variables;
    if (!creation->wide) return variables;
    for (const auto& [variable, value] : creation->wide->environment)
      variables.push_back(fmt::format("{}={}", variable, value.value_or("")));
    return variables;
  };
  // The machine's cores are {0,4} {1,5} {2,6} {3,7}, and the policy gives the lowest free CPUs.
  EXPECT_THAT(environment("keeps", kGuaranteed,
                          StringMap({{"irq-load-balancing.crio.io", "housekeeping"}})),
              ElementsAre("OPENSHIFT_HOUSEKEEPING_CPUS=1"));
  EXPECT_THAT(
      environment("off", kGuaranteed, StringMap({{"irq-load-balancing.crio.io", "disable"}})),
      IsEmpty());
  EXPECT_THAT(environment("shares", kBurstable,
                          StringMap({{"irq-load-balancing.crio.io", "housekeeping"}})),
              IsEmpty())
      << "it has no CPUs of its own";
}

TEST_F(HostClassesTest, ACreationGetsTheClassOfItsOwnPlaceAmongSeveral) {
  ClassesConfig config;
  config.blockio.assign = BlockioConfig::Assign::kRuntime;
  classes_->Configure(config);
  std::vector<CreateRequest> requests;
  for (const char* const name : {"a", "b", "c"}) {
    requests.push_back(TestNode::Request(node_.AddPod(name, kGuaranteed), name, 1000));
    ASSERT_THAT(node_.manager().AdmitCreate(CreateRequest(requests.back())).status(), IsOk());
  }
  for (const CreateRequest& request : requests) {
    const auto creation = Create(request);
    EXPECT_TRUE(creation->passed());
    ASSERT_TRUE(creation->wide);
    EXPECT_EQ(creation->wide->blockio_class, "of-" + request.name);
  }
}

TEST_F(HostClassesTest, LimitsOfAClassOfBlockIoAreInTheCgroup) {
  ClassesConfig config;
  config.blockio.classes = {{"light", {{.weight = 80}}}};
  config.namespaces["blockio"] = {"ns"};
  const ContainerId id = RunWith({{"blockioclass.resource-policy.nri.io/pod", "light"}},
                                 {{"io.weight", "default 100\n"}});
  classes_->Configure(config);
  EXPECT_TRUE(Becomes(CgroupOf(id) + "/io.weight", "default 708"));
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->report().containers.contains(id.value()); }));
  const ContainerClass mine = classes_->report().containers.at(std::string(id.value())).at(0);
  EXPECT_EQ(mine.kind, "blockio");
  EXPECT_EQ(mine.source, "annotation blockioclass.resource-policy.nri.io/pod");
  EXPECT_EQ(mine.in_force, "default 708");
}

TEST_F(HostClassesTest, AClassOfSharedCpusDoesNotReachThoseOfContainersAlone) {
  const auto governor = [](int cpu) {
    return fmt::format("sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu);
  };
  for (int cpu = 0; cpu < 8; ++cpu)
    Put(governor(cpu), "performance\n");
  const CpuSet own = CpuSet::Parse(node_.Exclusive(node_.Run("dsp", kGuaranteed, 2000))).value();
  ASSERT_EQ(own.size(), 2);
  ClassesConfig config;
  config.cpu.classes = {{.name = "plain", .governor = "powersave"}};
  classes_->Configure(config);
  const CpuSet shared = CpuSet::Range(1, 7) - own;
  ASSERT_TRUE(Becomes(governor(shared.Last()), "powersave"));
  for (const int cpu : own | CpuSet{0})
    EXPECT_EQ(At(governor(cpu)), "performance\n") << cpu;
  classes_->Configure({});
  EXPECT_TRUE(Becomes(governor(shared.Last()), "performance\n"));
}

TEST_F(HostClassesTest, WithoutClassesNothingIsLookedAt) {
  classes_->Configure({});
  EXPECT_TRUE(node_.RunUntil([&] { return classes_->given_back(); }));
  node_.Run("dsp", kGuaranteed, 2000);
  EXPECT_EQ(At(kDefaultAffinity), "ff\n");
  EXPECT_FALSE(fs::exists(directory_.path() + "/classes"));
}

TEST_F(HostClassesTest, AnAuditListsFilesThatDifferAndRepairsThemOnRequest) {
  std::optional<std::vector<HostClasses::Audited>> audited;
  const auto audit = [&](bool repair) {
    audited.reset();
    classes_->Audit(repair, [&](const auto& found) { audited = found.value(); });
    return node_.RunUntil([&] { return audited.has_value(); });
  };
  ASSERT_TRUE(audit(false));
  EXPECT_THAT(*audited, IsEmpty());
  period_ = std::chrono::hours(1);
  MakeClasses();
  classes_->Configure(Interrupts());
  node_.Run("dsp", kGuaranteed, 2000);
  ASSERT_TRUE(Becomes(kDefaultAffinity, "f9"));
  ASSERT_TRUE(audit(false));
  EXPECT_THAT(*audited, IsEmpty());
  Put(kDefaultAffinity, "ff\n");
  ASSERT_TRUE(audit(false));
  ASSERT_EQ(audited->size(), 1U);
  const HostDifference expected{.path = kDefaultAffinity, .wanted = "f9", .now = "ff"};
  EXPECT_EQ(audited->at(0).difference, expected);
  EXPECT_FALSE(audited->at(0).repaired);
  EXPECT_EQ(At(kDefaultAffinity), "ff\n");
  ASSERT_TRUE(audit(true));
  ASSERT_EQ(audited->size(), 1U);
  EXPECT_TRUE(audited->at(0).repaired);
  EXPECT_EQ(At(kDefaultAffinity), "f9");
}

// Work that waits for the thread is replaced by later work, which must not be a comparison.
TEST_F(HostClassesTest, AnAuditIsNotInTheWayOfDecisions) {
  classes_->Configure(Interrupts());
  int answers = 0;
  for (int i = 0; i < 5; ++i) {
    node_.Run(fmt::format("dsp{}", i), kGuaranteed, 1000);
    classes_->Audit(i % 2 == 0, [&](const auto& found) { answers += found.ok() ? 1 : 0; });
  }
  EXPECT_TRUE(Becomes(kDefaultAffinity, "c1"));
  EXPECT_TRUE(node_.RunUntil([&] { return answers == 5; }));
}

TEST_F(HostClassesTest, AuditsThatWaitAreBounded) {
  classes_->Configure(Interrupts());
  size_t answers = 0;
  size_t refused = 0;
  for (int i = 0; i < 200; ++i) {
    classes_->Audit(false, [&](const auto& found) {
      ++answers;
      if (found.status().code() == StatusCode::kResourceExhausted) ++refused;
    });
  }
  EXPECT_GE(refused, 100U);
  EXPECT_TRUE(node_.RunUntil([&] { return answers == 200; }));
  EXPECT_LE(refused, 136U);
}

class RdtStartTest : public HostClassesTest {
 protected:
  // The groups exist already, since these files do not behave like a kernel's.
  RdtStartTest() {
    Put("sys/fs/cgroup/cgroup.controllers", "cpu\n");
    for (const char* const file : {"L3/cbm_mask", "L3/min_cbm_bits", "L3/num_closids"})
      Put(std::string("sys/fs/resctrl/info/") + file, "f\n");
    Put("sys/fs/resctrl/info/L3/min_cbm_bits", "1\n");
    Put("sys/fs/resctrl/info/L3/num_closids", "4\n");
    for (const std::string directory : {"", "cri-resmgr.Burstable/"}) {
      Put("sys/fs/resctrl/" + directory + "schemata", "L3:0=f\n");
      Put("sys/fs/resctrl/" + directory + "tasks", "\n");
      Put("sys/fs/resctrl/" + directory + "cpus_list", "\n");
    }
    MakeClasses();
    RdtPartitionConfig partition;
    partition.allocations.l3.all = CacheParts{.unified = CachePercent{50}};
    partition.classes["Burstable"];
    ClassesConfig config;
    config.rdt.default_by_qos = true;
    config.rdt.partitions["p"] = partition;
    classes_->Configure(config);
  }
  static constexpr const char* kTasks = "sys/fs/resctrl/cri-resmgr.Burstable/tasks";
};

TEST_F(RdtStartTest, AStartWaitsUntilTheTasksAreInTheirGroup) {
  ASSERT_TRUE(Becomes("sys/fs/resctrl/cri-resmgr.Burstable/schemata", "L3:0=3\n"));
  const ContainerId id = node_.Create("web", kBurstable, 500).value();
  Put(fmt::format("sys/fs/cgroup/kubepods/{}/cgroup.threads", id.value()), "100\n");
  const auto start = Start(id);
  EXPECT_FALSE(start->decided);
  ASSERT_TRUE(node_.RunUntil([&] { return start->decided.has_value(); }));
  EXPECT_TRUE(start->passed());
  EXPECT_EQ(At(kTasks), "100");
  // A task in its group does not wait.
  ASSERT_TRUE(node_.RunUntil([&] { return classes_->report().containers.contains(id.value()); }));
  EXPECT_EQ(classes_->report().containers.at(std::string(id.value()))[0].way, "by tasks");
}

// The directory of a group that is made here has no files, as where the kernel refuses it.
TEST_F(RdtStartTest, AGroupThatCannotBeMadeIsAProblemBeforeAnyContainerHasItsClass) {
  ClassesConfig config;
  config.rdt.partitions["p"].allocations.l3.all = CacheParts{.unified = CachePercent{50}};
  config.rdt.partitions["p"].classes["Burstable"];
  config.rdt.partitions["p"].classes["gold"];
  classes_->Configure(config);
  ASSERT_TRUE(node_.RunUntil([&] { return !classes_->problems().empty(); }));
  const Problem problem = classes_->problems()[0];
  EXPECT_EQ(problem.kind, "class-inactive");
  EXPECT_THAT(problem.message, HasSubstr("rdt gold is inactive: cannot open "));
  EXPECT_TRUE(problem.objects.empty());
  classes_->Configure({});
  EXPECT_TRUE(node_.RunUntil([&] { return classes_->problems().empty(); }));
}

// If a file hangs, a client's repeated starts each wait for a second only, but wait for the same
// work.
TEST_F(RdtStartTest, StartsThatWaitAreBounded) {
  ASSERT_TRUE(Becomes("sys/fs/resctrl/cri-resmgr.Burstable/schemata", "L3:0=3\n"));
  const ContainerId id = node_.Create("web", kBurstable, 500).value();
  Put(fmt::format("sys/fs/cgroup/kubepods/{}/cgroup.threads", id.value()), "100\n");
  std::vector<std::unique_ptr<test::TestCall>> starts;
  for (int i = 0; i < 2000; ++i)
    starts.push_back(Start(id));
  EXPECT_FALSE(starts.front()->decided);
  EXPECT_TRUE(starts.back()->decided);
  EXPECT_TRUE(node_.RunUntil([&] {
    return std::ranges::all_of(starts,
                               [](const auto& start) { return start->decided.has_value(); });
  }));
}

TEST_F(RdtStartTest, AStartOfAContainerWithoutAClassDoesNotWait) {
  const ContainerId id = node_.Create("dsp", kGuaranteed, 1000).value();
  EXPECT_TRUE(Start(id)->passed());
  EXPECT_TRUE(Start(ContainerId("unknown"))->passed());
}

}  // namespace
}  // namespace resmgr
