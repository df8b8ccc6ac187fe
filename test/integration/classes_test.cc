// SPDX-License-Identifier: Apache-2.0
// Classes keep the CPUs of containers free of disturbances, in a fake tree of the host's files.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control_fixture.h"
#include "test/integration/stand_in_engine.h"
#include "test/support/cri_client/specs.h"
#include "test/support/nri_runtime/nri_runtime.h"

namespace resmgr::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

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

// Classes at the creation of containers, at each front door.

// Settings that only a runtime itself can make, and that newer versions of NRI have fields for.
class NriCreationTest : public ClassesTest {
 protected:
  NriCreationTest() {
    for (const char* const file : {"cbm_mask", "min_cbm_bits", "num_closids"})
      Put(std::string("sys/fs/resctrl/info/L3/") + file, "4\n");
    Put("sys/fs/resctrl/info/L3/cbm_mask", "f\n");
    Put("sys/fs/resctrl/info/L3/min_cbm_bits", "1\n");
    // The group is there already, since these files do not behave like a kernel's.
    for (const std::string directory : {"", "cri-resmgr.gold/"}) {
      Put("sys/fs/resctrl/" + directory + "schemata", "L3:0=f\n");
      Put("sys/fs/resctrl/" + directory + "tasks", "\n");
      Put("sys/fs/resctrl/" + directory + "cpus_list", "\n");
    }
  }
  // The answer of a runtime with this version of NRI.
  StatusOr<nri_api::CreateContainerResponse> Created(const std::string& nri_version,
                                                     const std::string& annotation,
                                                     const std::string& value) {
    auto started = NriRuntime::Start(
        Path("nri.sock"), {.name = "containerd", .version = "2.3.0", .nri_version = nri_version});
    if (!started.ok()) return started.status();
    NriRuntime& nri = **started;
    StartDaemon(
        Flags({"-mode", "nri-plugin", "-nri-socket", Path("nri.sock"), "-host-root", Root(),
               "-fallback-config",
               WriteFile("classes.yaml",
                         "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
                         "classes:\n"
                         "  rdt: {partitions: {p: {l3Allocation: 100%, classes: {gold: {}}}}}\n"
                         "  memory: [{name: spread, policy: {mode: interleave, nodes: all}}]\n"
                         "  AllowedNamespaces: {rdt: [default], memory: [default]}\n")}));
    if (!nri.AwaitSynchronized(1)) return Unavailable("it does not connect");
    EXPECT_TRUE(Eventually([this] {
      return At("sys/fs/resctrl/cri-resmgr.gold/schemata") == "L3:0=f\n" &&
             Ctl({"classes"}).out.find("gold") != std::string::npos;
    }));
    nri_api::CreateContainerRequest request = NriCreation("b", 0);
    (*request.mutable_pod()->mutable_annotations())[annotation] = value;
    return nri.CreateContainer(request);
  }

  static constexpr const char* kRdtClass = "rdtclass.resource-policy.nri.io/pod";
  static constexpr const char* kPolicyClass = "class.memory-policy.nri.io";
};

TEST_F(NriCreationTest, AContainerStartsInItsGroupOfResctrl) {
  const auto created = Created("v0.11.0", kRdtClass, "gold");
  ASSERT_THAT(created.status(), IsOk());
  EXPECT_EQ(created->adjust().linux().rdt().clos_id().value(), "cri-resmgr.gold");
  EXPECT_FALSE(created->adjust().linux().resources().has_rdt_class());
}

TEST_F(NriCreationTest, AnOlderRuntimeIsNotAskedForAGroup) {
  const auto created = Created("v0.10.0", kRdtClass, "gold");
  ASSERT_THAT(created.status(), IsOk());
  EXPECT_FALSE(created->adjust().linux().has_rdt());
  EXPECT_FALSE(created->adjust().linux().resources().has_rdt_class());
}

TEST_F(NriCreationTest, AMemoryPolicyIsPartOfTheCreation) {
  const auto created = Created("v0.12.0", kPolicyClass, "spread");
  ASSERT_THAT(created.status(), IsOk());
  const nri_api::LinuxMemoryPolicy& policy = created->adjust().linux().memory_policy();
  EXPECT_EQ(policy.mode(), nri_api::MEMORY_POLICY_INTERLEAVE);
  EXPECT_FALSE(policy.nodes().empty());
}

TEST_F(NriCreationTest, AnOlderRuntimeCanSetNoMemoryPolicy) {
  const auto created = Created("v0.11.0", kPolicyClass, "spread");
  EXPECT_THAT(std::string(Message(created.status())),
              HasSubstr("the runtime can set no memory policy: that needs a plugin of NRI 0.12"));
}

// CRI-O's six annotations at all front doors, with the variables that its users' programs read: a
// pod with the containers "main" and "side", of which the latter has shared CPUs, too.
class CrioAnnotationsTest : public ClassesTest {
 protected:
  using Texts = std::map<std::string, std::string>;

  CrioAnnotationsTest() {
    for (int cpu = 0; cpu < kCpus; ++cpu)
      Put(GovernorOf(cpu), "powersave\n");
    before_ = Tree();
  }
  static std::string GovernorOf(int cpu) {
    return fmt::format("sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu);
  }
  void StartAt(std::vector<std::string> flags) {
    const std::string file = WriteFile("classes.yaml",
                                       "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
                                       "classes: {AllowedNamespaces: {isolation: [default]}}\n");
    flags.insert(flags.end(), {"-host-root", Root(), "-fallback-config", file});
    StartDaemon(Flags(flags));
    ASSERT_NE(daemon_, nullptr);
  }
  static const Texts& Annotations() {
    static const Texts annotations = {{"irq-load-balancing.crio.io", "housekeeping"},
                                      {"cpu-load-balancing.crio.io", "disable"},
                                      {"cpu-quota.crio.io", "disable"},
                                      {"cpu-c-states.crio.io", "max_latency:7"},
                                      {"cpu-freq-governor.crio.io", "performance"},
                                      {"cpu-shared.crio.io/side", "enable"}};
    return annotations;
  }
  // A container's CPUs and variables, as its creation has them at the runtime.
  struct Made {
    CpuSet cpus{};
    Texts variables{};

    CpuSet Named(const std::string& variable) const {
      const auto found = variables.find(variable);
      if (found == variables.end()) return {};
      return CpuSet::Parse(found->second).value_or(CpuSet());
    }
  };
  void ExpectAll(const Made& main, const Made& side) {
    EXPECT_EQ(main.cpus.size(), 2);
    EXPECT_EQ(main.variables.size(), 1U);
    EXPECT_EQ(side.variables.size(), 3U);
    const CpuSet own = side.Named("OPENSHIFT_ISOLATED_CPUS");
    const CpuSet shared = side.Named("OPENSHIFT_SHARED_CPUS");
    EXPECT_EQ(own.size(), 2);
    EXPECT_FALSE(shared.empty());
    EXPECT_FALSE(own.Intersects(shared | main.cpus));
    EXPECT_EQ(side.cpus, own | shared);
    for (const auto& [made, cpus] : {std::pair(main, main.cpus), std::pair(side, own)}) {
      const CpuSet keeps = made.Named("OPENSHIFT_HOUSEKEEPING_CPUS");
      ASSERT_FALSE(cpus.empty());
      EXPECT_TRUE(keeps.Contains(cpus.First()));
      EXPECT_TRUE(keeps.IsSubsetOf(cpus));
    }
    const CpuSet calm = main.cpus | own;
    Texts expected = {{kQuota, "max 100000"}};
    for (int cpu = 0; cpu < kCpus; ++cpu) {
      expected[LatencyOf(cpu)] = calm.Contains(cpu) ? "7" : "0\n";
      expected[GovernorOf(cpu)] = calm.Contains(cpu) ? "performance" : "powersave\n";
    }
    // The files are written one after the other.
    const auto all = [&] {
      return std::ranges::all_of(expected,
                                 [this](const auto& one) { return At(one.first) == one.second; });
    };
    if (!Eventually(all)) {
      for (const auto& [file, text] : expected)
        EXPECT_EQ(At(file), text) << file;
    }
    EXPECT_TRUE(Eventually([this] { return At("proc/irq/default_smp_affinity") != "ff\n"; }));
    EXPECT_TRUE(
        Explains("default/g/main", {"interrupts housekeeping", "idle 7us", "clock performance",
                                    "quota lift", "partition isolated"}));
    EXPECT_TRUE(Explains("default/g/side", {"the container has shared CPUs as well, which a "
                                            "partition would take from it"}));
  }
  bool Explains(const std::string& container, const std::vector<std::string>& words) {
    const bool told = Eventually([&] {
      const std::string text = Ctl({"explain", container}).out;
      return std::ranges::all_of(
          words, [&text](const std::string& word) { return text.find(word) != std::string::npos; });
    });
    if (!told) ADD_FAILURE() << Ctl({"explain", container}).out;
    return told;
  }
};

TEST_F(CrioAnnotationsTest, AllSixHaveTheirEffectsThroughTheRelay) {
  StartRuntime();
  StartAt({});
  CriClient client = Relayed();
  cri::PodSandboxConfig pod = MakeGuaranteedPod("g");
  for (const auto& [key, value] : Annotations())
    (*pod.mutable_annotations())[key] = value;
  const std::string id = *client.RunPod(pod);
  std::vector<std::string> ids;
  std::vector<Made> made;
  for (const char* const name : {"main", "side"}) {
    const auto created = client.CreateContainer(id, pod, MakeGuaranteedContainer(name, 2));
    ASSERT_THAT(created.status(), IsOk());
    ids.push_back(*created);
    cri::CreateContainerRequest sent;
    ASSERT_TRUE(sent.ParseFromString(runtime_.Calls("CreateContainer").back().messages.at(0)));
    made.push_back({.cpus = *CpuSet::Parse(sent.config().linux().resources().cpuset_cpus())});
    for (const auto& variable : sent.config().envs())
      made.back().variables[variable.key()] = variable.value();
  }
  ExpectAll(made[0], made[1]);
  for (const std::string& container : ids)
    EXPECT_THAT(client.RemoveContainer(container), IsOk());
  EXPECT_TRUE(GivenBack());
}

TEST_F(CrioAnnotationsTest, AllSixHaveTheirEffectsAsPluginOfARuntime) {
  auto started = NriRuntime::Start(Path("nri.sock"), {.name = "containerd", .version = "2.2.0"});
  ASSERT_THAT(started, IsOk());
  NriRuntime& nri = **started;
  StartAt({"-mode", "nri-plugin", "-nri-socket", Path("nri.sock")});
  ASSERT_TRUE(nri.AwaitSynchronized(1));
  std::vector<nri_api::CreateContainerRequest> requests;
  std::vector<Made> made;
  for (const char* const name : {"main", "side"}) {
    nri_api::CreateContainerRequest& request = requests.emplace_back(NriCreation("g", 2));
    request.mutable_container()->set_name(name);
    request.mutable_container()->set_id(std::string("id-of-") + name);
    for (const auto& [key, value] : Annotations())
      (*request.mutable_pod()->mutable_annotations())[key] = value;
    const auto created = nri.CreateContainer(request);
    ASSERT_THAT(created.status(), IsOk());
    made.push_back({.cpus = *CpuSet::Parse(created->adjust().linux().resources().cpu().cpus())});
    for (const nri_api::KeyValue& variable : created->adjust().env())
      made.back().variables[variable.key()] = variable.value();
  }
  ExpectAll(made[0], made[1]);
  for (const nri_api::CreateContainerRequest& request : requests)
    nri.Tell(nri_api::EVENT_REMOVE_CONTAINER, request.pod(), request.container());
  EXPECT_TRUE(GivenBack());
}

TEST_F(CrioAnnotationsTest, AllSixHaveTheirEffectsBeforeDockerd) {
  const StandInEngine engine(Path("engine.sock"));
  StartAt({"-mode", "docker", "-docker-socket", Path("engine.sock")});
  const auto create = [this](const std::string& name, const Json& body) {
    const std::string reply =
        AskEngine(RelaySocket(), "POST", "/v1.40/containers/create?name=" + name, body.dump());
    const size_t head = reply.find("\r\n\r\n");
    return head == std::string::npos ? "" : Json::parse(reply.substr(head + 4)).value("Id", "");
  };
  Json labels = {{"io.kubernetes.docker.type", "podsandbox"},
                 {"io.kubernetes.pod.name", "g"},
                 {"io.kubernetes.pod.namespace", "default"},
                 {"io.kubernetes.pod.uid", "uid-g"}};
  for (const auto& [key, value] : Annotations())
    labels["annotation." + key] = value;
  const std::string parent = "/kubepods/poduid-g";
  const std::string sandbox = create(
      "k8s_POD_g_default_uid-g_0", {{"Image", "pause"},
                                    {"Labels", labels},
                                    {"HostConfig", {{"CgroupParent", parent}, {"CpuShares", 2}}}});
  std::vector<std::string> ids;
  std::vector<Made> made;
  for (const std::string name : {"main", "side"}) {
    ids.push_back(
        create("k8s_" + name + "_g_default_uid-g_0", {{"Image", "busybox"},
                                                      {"Labels",
                                                       {{"io.kubernetes.docker.type", "container"},
                                                        {"io.kubernetes.sandbox.id", sandbox},
                                                        {"io.kubernetes.container.name", name}}},
                                                      {"HostConfig",
                                                       {{"CgroupParent", parent},
                                                        {"CpuShares", 2048},
                                                        {"CpuQuota", 200'000},
                                                        {"CpuPeriod", 100'000},
                                                        {"Memory", 1 << 20}}}}));
    ASSERT_FALSE(ids.back().empty());
    const Json sent = engine.BodyOf("/containers/create");
    made.push_back({.cpus = *CpuSet::Parse(sent["HostConfig"].value("CpusetCpus", ""))});
    for (const std::string variable : sent.value("Env", Json::array())) {
      const size_t equals = variable.find('=');
      made.back().variables[variable.substr(0, equals)] = variable.substr(equals + 1);
    }
  }
  ExpectAll(made[0], made[1]);
  for (const std::string& id : ids)
    AskEngine(RelaySocket(), "DELETE", "/v1.40/containers/" + id, "");
  EXPECT_TRUE(GivenBack());
}

}  // namespace
}  // namespace resmgr::test
