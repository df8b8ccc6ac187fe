// SPDX-License-Identifier: Apache-2.0
// Classes keep the CPUs of containers free of disturbances, in a fake tree of the host's files.
#include <algorithm>
#include <csignal>
#include <map>
#include <random>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/classes_fixture.h"
#include "test/support/cri_client/specs.h"

namespace resmgr::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST_F(ClassesTest, AreInForceWithTheContainerAndGivenBackAfterIt) {
  StartRuntime();
  Start(kAll);
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(CpusAtRuntime(running.container).size(), 2);
  const CpuSet own = CpusAtRuntime(running.container);
  const std::string interrupts = "proc/irq/1/smp_affinity";
  const std::string workqueues = "sys/devices/virtual/workqueue/cpumask";
  EXPECT_TRUE(Eventually([&] {
    for (int cpu = 0; cpu < kCpus; ++cpu)
      if (At(LatencyOf(cpu)) != (own.Contains(cpu) ? "10" : "0\n")) return false;
    return At(kQuota) == "max 100000" && At(interrupts) != "ff\n" && At(workqueues) != "ff\n";
  })) << "quota "
      << At(kQuota) << ", interrupts " << At(interrupts) << ", workqueues " << At(workqueues);

  Json classes;
  ASSERT_TRUE(Eventually([&] {
    classes = Ctl({"classes", "-o", "json"}).json();
    return classes.size() == 5 && std::ranges::all_of(classes, [](const Json& one) {
             return one["containers"] == Json::array({"default/g/main"}) &&
                    one["state"] == (one["kind"] == "clock" ? "inactive" : "active");
           });
  })) << classes;
  for (const Json& one : classes)
    EXPECT_EQ(one.size(), 5U) << "DESIGN 7.3";
  EXPECT_THAT(classes[0]["reason"], HasSubstr("cpufreq/scaling_governor"));
  Json problems;
  ASSERT_TRUE(Eventually([&] {
    problems = Ctl({"status", "-o", "json"}).json()["problems"];
    return problems.size() == 1;
  })) << problems;
  EXPECT_EQ(problems[0]["kind"], "class-inactive");
  std::string explained;
  EXPECT_TRUE(Eventually([&] {
    explained = Ctl({"explain", "g"}).out;
    return explained.find("idle 10us") != std::string::npos &&
           explained.find("10, by CPU; of classes.isolation") != std::string::npos;
  })) << explained;
  EXPECT_EQ(Ctl({"explain", "g", "-o", "json"}).json()[0]["classes"].size(), 5U);

  EXPECT_THAT(client.StopContainer(running.container), IsOk());
  EXPECT_TRUE(GivenBack());
}

TEST_F(ClassesTest, AreGivenBackByTheConfigurationAndByUninstall) {
  StartRuntime();
  Start(kAll);
  CriClient client = Relayed();
  Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_TRUE(Eventually([this] { return At(kQuota) == "max 100000"; }));
  const std::string policy = "policy: {Active: static, ReservedResources: {CPU: 1}}\n";
  EXPECT_EQ(Set(policy), 0);
  EXPECT_TRUE(GivenBack());
  EXPECT_EQ(Set(policy + kAll), 0);
  ASSERT_TRUE(Eventually([this] { return At(kQuota) == "max 100000"; }));
  Json plan;
  ASSERT_TRUE(Eventually([&] {
    plan = Ctl({"uninstall", "-dry-run", "-o", "json"}).json();
    return plan.contains("host");
  })) << plan;
  EXPECT_THAT(plan["host"],
              Contains(Json({{"file", std::string("/") + kQuota}, {"before", "200000 100000"}})));
  EXPECT_EQ(Ctl({"uninstall", "-apply", "-o", "json"}).json()["done"], true);
  EXPECT_EQ(Tree(), before_);
}

TEST_F(ClassesTest, AKillLosesNothing) {
  StartRuntime();
  Start(kAll);
  std::string container;
  {
    CriClient client = Relayed();
    container = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2)).container;
  }
  // All files are written before it is told.
  ASSERT_TRUE(Eventually([this] {
    const Json classes = Ctl({"classes", "-o", "json"}).json();
    return classes.size() == 5 && std::ranges::all_of(classes, [](const Json& one) {
             return one["containers"] == Json::array({"default/g/main"}) &&
                    one["state"] == (one["kind"] == "clock" ? "inactive" : "active");
           });
  })) << Ctl({"classes"}).out;
  ASSERT_EQ(At(kQuota), "max 100000");
  const std::map<std::string, std::string> in_force = Tree();
  daemon_->Kill();
  Start(kAll);
  ASSERT_TRUE(Eventually([this] { return Ctl({"classes", "-o", "json"}).json().size() == 5; }));
  EXPECT_EQ(Tree(), in_force);
  daemon_->Kill();
  EXPECT_THAT(Direct().StopContainer(container), IsOk());
  EXPECT_EQ(Tree(), in_force);
  Start(kAll);
  EXPECT_TRUE(GivenBack());
}

TEST_F(ClassesTest, BeforeTheFirstLookAtTheRuntimeAListIsRefused) {
  StartRuntime();
  runtime_.Script("ListPodSandbox", {.hold = true});
  Start(kAll);
  const Shown early = Ctl({"classes"});
  EXPECT_NE(early.exit_code, 0);
  EXPECT_THAT(early.err, HasSubstr("not known yet which classes are in use"));
  runtime_.Release("ListPodSandbox");
  EXPECT_TRUE(Eventually([this] { return Ctl({"classes"}).exit_code == 0; }))
      << Ctl({"classes"}).err;
}

// Containers come and go meanwhile; at the end all of them are gone.
TEST_F(ClassesTest, ManyKillsAtAnyInstantLoseNothing) {
  constexpr int kKills = 12;
  std::minstd_rand random(7);
  StartRuntime();
  for (int i = 0; i < kKills; ++i) {
    Start(kAll);
    CriClient client = Relayed();
    const Running running =
        Run(client, MakeGuaranteedPod(fmt::format("p{}", i)), MakeGuaranteedContainer("main", 2));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    if (i % 2 == 0) {
      EXPECT_THAT(client.StopContainer(running.container), IsOk());
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 5'000));
      daemon_->Kill();
    } else {
      daemon_->Kill();
      EXPECT_THAT(Direct().StopContainer(running.container), IsOk());
    }
  }
  Start(kAll);
  EXPECT_TRUE(GivenBack());
}

TEST_F(ClassesTest, AClassOfMemoryIsInTheRequestAndReadBack) {
  StartRuntime();
  Start(
      "classes: {memory: [{name: bronze, swaplimitratio: 0.5}], "
      "AllowedNamespaces: {memory: [default]}}\n");
  CriClient client = Relayed();
  cri::PodSandboxConfig pod = MakeBurstablePod("b");
  (*pod.mutable_annotations())["class.memory-qos.nri.io"] = "bronze";
  const std::string id = *client.RunPod(pod);
  EXPECT_EQ(client.CreateContainer(id, pod, MakeBestEffortContainer("main")).status().code(),
            StatusCode::kInvalidArgument)
      << "without a limit";
  const cri::ContainerConfig config =
      MakeContainer({.name = "main", .memory_limit = Bytes{1 << 20}});
  const StatusOr<std::string> created = client.CreateContainer(id, pod, config);
  ASSERT_THAT(created.status(), IsOk());
  cri::CreateContainerRequest sent;
  ASSERT_TRUE(sent.ParseFromString(runtime_.Calls("CreateContainer").back().messages.at(0)));
  const auto& unified = sent.config().linux().resources().unified();
  EXPECT_EQ(unified.at("memory.high"), "524288");
  EXPECT_EQ(unified.at("memory.swap.max"), "max");
  const std::string cgroup = "sys/fs/cgroup" + pod.linux().cgroup_parent() + "/" + *created;
  Put(cgroup + "/memory.high", "524288\n");
  Put(cgroup + "/memory.swap.max", "max\n");
  EXPECT_TRUE(Eventually([this] {
    return Ctl({"classes", "-o", "json"}).json() ==
           Json::parse(R"([{"kind":"memory","name":"bronze","state":"active","reason":"",
                            "containers":["default/b/main"]}])");
  })) << Ctl({"classes"}).out;
}

TEST_F(ClassesTest, SharedCpusByAnnotationAreInTheRequestWithTheirVariables) {
  StartRuntime();
  Start("classes: {AllowedNamespaces: {isolation: [default]}}\n");
  CriClient client = Relayed();
  cri::PodSandboxConfig pod = MakeGuaranteedPod("g");
  (*pod.mutable_annotations())["cpu-shared.crio.io/main"] = "enable";
  (*pod.mutable_annotations())["irq-load-balancing.crio.io"] = "housekeeping";
  Run(client, pod, MakeGuaranteedContainer("main", 2));
  cri::CreateContainerRequest sent;
  ASSERT_TRUE(sent.ParseFromString(runtime_.Calls("CreateContainer").back().messages.at(0)));
  std::map<std::string, std::string> variables;
  for (const auto& variable : sent.config().envs())
    variables[variable.key()] = variable.value();
  const CpuSet all = *CpuSet::Parse(sent.config().linux().resources().cpuset_cpus());
  const CpuSet own = *CpuSet::Parse(variables["OPENSHIFT_ISOLATED_CPUS"]);
  const CpuSet shared = *CpuSet::Parse(variables["OPENSHIFT_SHARED_CPUS"]);
  EXPECT_EQ(own.size(), 2);
  EXPECT_FALSE(shared.empty());
  EXPECT_FALSE(own.Intersects(shared));
  EXPECT_EQ(all, own | shared);
  EXPECT_TRUE(CpuSet::Parse(variables["OPENSHIFT_HOUSEKEEPING_CPUS"])->Contains(own.First()));
}

TEST_F(ClassesTest, PodsChooseWhereTheyMay) {
  StartRuntime();
  Start("classes: {AllowedNamespaces: {isolation: [default]}}\n");
  CriClient client = Relayed();
  cri::PodSandboxConfig pod = MakeGuaranteedPod("g");
  (*pod.mutable_annotations())["cpu-c-states.crio.io"] = "max_latency:0";
  const std::string id = *client.RunPod(pod);
  const auto refused = client.CreateContainer(id, pod, MakeGuaranteedContainer("main", 2));
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused.status())),
              HasSubstr("annotation cpu-c-states.crio.io: \"max_latency:0\" is not"));
  EXPECT_EQ(Tree(), before_);

  cri::PodSandboxConfig other = MakeGuaranteedPod("other");
  (*other.mutable_annotations())["cpu-c-states.crio.io"] = "disable";
  const CpuSet own =
      CpusAtRuntime(Run(client, other, MakeGuaranteedContainer("main", 2)).container);
  EXPECT_TRUE(Eventually([&] { return At(LatencyOf(own.First())) == "n/a"; }));

  cri::PodSandboxConfig elsewhere =
      MakePod({.name = "e", .namespace_name = "elsewhere", .qos = QosClass::kGuaranteed});
  (*elsewhere.mutable_annotations())["cpu-c-states.crio.io"] = "foo";
  Run(client, elsewhere, MakeGuaranteedContainer("main", 2));
  EXPECT_THAT(Ctl({"explain", "elsewhere/e"}).out,
              HasSubstr("annotation cpu-c-states.crio.io ignored: namespace elsewhere is not in "
                        "classes.AllowedNamespaces.isolation"));
}

}  // namespace
}  // namespace resmgr::test
