// SPDX-License-Identifier: Apache-2.0
// Policies that take one after the other over, live, under containers that run.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "pkg/classes/class_journal.h"
#include "pkg/sys/unix_socket.h"
#include "test/integration/control_fixture.h"
#include "test/support/placement_trail/placement_trail.h"

namespace resmgr::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class PolicyWalkTest : public ControlTest {
 protected:
  static constexpr int kManyCpus = 32;
  static constexpr const char* kMachine = "synthetic:package:2 numa:2 l3:1 core:4 pu:2";

  PolicyWalkTest() {
    FakeRuntime::Options options;
    options.store.cpus = kManyCpus;
    big_runtime_ = std::make_unique<FakeRuntime>(options);
  }
  ~PolicyWalkTest() override { big_runtime_->Stop(); }

  void Start() {
    ASSERT_THAT(big_runtime_->Start(RuntimeSocket()), IsOk());
    // Long enough that the trail sees the state between two updates.
    big_runtime_->Script("UpdateContainerResources", {.delay = milliseconds(2)});
    std::vector<std::string> flags = Flags({});
    flags.back() = kMachine;
    StartDaemon(flags);
  }

  // 20 containers: 8 that get CPUs for themselves under every policy but null, 12 that share.
  void RunTwenty() {
    CriClient client = Relayed();
    for (const int cpus : {1, 2, 1, 3, 2, 1, 4, 1}) {
      const std::string name = fmt::format("g{}", names_.size());
      names_[Run(client, MakeGuaranteedPod(name), MakeGuaranteedContainer("main", cpus))
                 .container] = name;
    }
    for (const int request : {100, 250, 500, 1000, 1500, 200, 300}) {
      const std::string name = fmt::format("u{}", names_.size());
      names_[Run(client, MakeBurstablePod(name), MakeBurstableContainer("main", {request}))
                 .container] = name;
    }
    for (int i = 0; i < 5; ++i) {
      const std::string name = fmt::format("e{}", names_.size());
      names_[Run(client, MakeBestEffortPod(name), MakeBestEffortContainer("main")).container] =
          name;
    }
    ASSERT_THAT(names_, SizeIs(20));
  }

  std::string SetPolicy(const std::string& policy) const {
    return SetConfig(
        {{"policy",
          fmt::format("{{Active: \"{}\", ReservedResources: {{CPU: \"cpuset:0\"}}}}", policy)}});
  }

  Placements AtRuntime() {
    return big_runtime_->WithStore([this](const CriStore& store) {
      Placements placements;
      for (const auto& [id, container] : store.containers()) {
        const std::string& cpus = container.resources.cpuset_cpus();
        placements[names_.at(id)] =
            cpus.empty() ? CpuSet::Range(0, kManyCpus - 1) : CpuSet::Parse(cpus).value_or(CpuSet());
      }
      return placements;
    });
  }

  // The daemon's grant of each container; nothing under the null policy.
  Grants Granted() const {
    Grants grants;
    const Shown shown = Ctl({"containers", "-o", "json"});
    if (shown.exit_code != 0) return grants;
    for (const Json& container : shown.json()) {
      const auto set = [&](const char* key) {
        return CpuSet::Parse(container.at(key).get<std::string>()).value_or(CpuSet());
      };
      grants[container.at("pod").get<std::string>()] = {set("cpus"), set("exclusive")};
    }
    return grants;
  }
  // The placements of Guaranteed pods, whose CPUs are theirs alone.
  static Placements Alone(const Grants& grants) {
    Placements alone;
    for (const auto& [name, grant] : grants) {
      if (name.starts_with('g') && grant.own == grant.cpus) alone[name] = grant.own;
    }
    return alone;
  }

  void ExpectAllRunUntouched() {
    big_runtime_->WithStore([this](const CriStore& store) {
      EXPECT_THAT(store.containers(), SizeIs(names_.size()));
      for (const auto& [id, container] : store.containers())
        EXPECT_EQ(container.state, cri::CONTAINER_RUNNING) << names_.at(id);
    });
    EXPECT_THAT(big_runtime_->Calls("StartContainer"), SizeIs(names_.size()));
    for (const char* method : {"StopContainer", "RemoveContainer", "StopPodSandbox"})
      EXPECT_THAT(big_runtime_->Calls(method), IsEmpty());
  }

  std::unique_ptr<FakeRuntime> big_runtime_;
  std::map<std::string, std::string> names_;  // by id
};

TEST_F(PolicyWalkTest, TwentyContainersRunOnThroughAllPolicies) {
  Start();
  if (HasFatalFailure()) return;
  RunTwenty();
  PlacementTrail trail([this] { return AtRuntime(); });
  Grants grants;
  for (const std::string policy : {"static", "static-plus", "topology-aware", "static", "null",
                                   "topology-aware", "static-plus", "static"}) {
    SCOPED_TRACE(policy);
    ASSERT_EQ(SetPolicy(policy), "");
    const std::vector<Placements> seen = trail.Take();
    const Grants now = Granted();
    EXPECT_THAT(Violations(seen, grants, now), IsEmpty());
    // In force when the answer comes.
    EXPECT_THAT(Differences(seen.back(), now), IsEmpty());
    EXPECT_THAT(Alone(now), SizeIs(policy == "null" ? 0 : 8));
    for (const auto& [name, grant] : now)
      EXPECT_FALSE(grant.own.Contains(0)) << name << " has the reserved CPU";
    if (policy == "null") {
      for (const auto& [name, cpus] : seen.back())
        EXPECT_EQ(cpus.size(), kManyCpus) << name << " is not let go";
    }
    ExpectAllRunUntouched();
    grants = now;
  }
}

// A change to a policy whose rules are already fulfilled moves no container with exclusive CPUs.
TEST_F(PolicyWalkTest, PlacementsThatFulfilTheNewRulesStay) {
  Start();
  if (HasFatalFailure()) return;
  RunTwenty();
  ASSERT_EQ(SetPolicy("static"), "");
  const Placements before = Alone(Granted());
  for (const std::string policy : {"static-plus", "topology-aware", "static"}) {
    ASSERT_EQ(SetPolicy(policy), "") << policy;
    EXPECT_EQ(Alone(Granted()), before) << policy;
  }
}

// A change to the null policy takes the brain away, but no container stays bound.

constexpr char kPinning[] = "Active: static\nReservedResources: {CPU: cpuset:0}\n";
constexpr char kNull[] = "Active: null";

class LettingGoByNullTest : public ControlTest {
 protected:
  LettingGoByNullTest() {
    StartRuntime();
    StartDaemon(Flags({}));
    EXPECT_EQ(SetConfig({{"policy", kPinning}}), "");
  }
  bool RunsEverywhere(const std::string& container) {
    return Eventually([&] { return CpusAtRuntime(container).size() == kCpus; });
  }
};

TEST_F(LettingGoByNullTest, ContainerBeingCreatedDuringTheChange) {
  runtime_.Script("CreateContainer", {.hold = true});
  std::future<Running> run = std::async(std::launch::async, [this] {
    CriClient client = Relayed();
    return Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  });
  ASSERT_TRUE(runtime_.WaitForHeld("CreateContainer", 1));
  ASSERT_EQ(SetConfig({{"policy", kNull}}), "");
  runtime_.Release("CreateContainer");
  EXPECT_TRUE(RunsEverywhere(run.get().container));
}

TEST_F(LettingGoByNullTest, WhenTheRuntimeComesBack) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(CpusAtRuntime(running.container).size(), 2);
  runtime_.Stop();
  ASSERT_EQ(SetConfig({{"policy", kNull}}), "");
  StartRuntime();
  EXPECT_TRUE(RunsEverywhere(running.container));
}

TEST_F(LettingGoByNullTest, AfterARestart) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(CpusAtRuntime(running.container).size(), 2);
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  StartDaemon(Flags({"-policy", "null"}));
  EXPECT_TRUE(RunsEverywhere(running.container));
}

// The next policy takes over containers that null had not released yet.
TEST_F(LettingGoByNullTest, ThereAndBackWithoutARuntime) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const CpuSet before = CpusAtRuntime(running.container);
  runtime_.Stop();
  ASSERT_EQ(SetConfig({{"policy", kNull}}), "");
  ASSERT_EQ(SetConfig({{"policy", kPinning}}), "");
  StartRuntime();
  ASSERT_TRUE(Eventually([&] { return Ctl({"containers", "-o", "json"}).json().size() == 1; }));
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(running.container).size() == 2; }));
}

// The commands of the section "Back" of docs/kubelet.md, in their order.
std::vector<std::string> CommandsOfThePage() {
  std::ifstream page(RESMGR_SOURCE_DIR "/docs/kubelet.md");
  std::vector<std::string> commands;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line == "## Back";
    if (inside && line.starts_with("    ")) commands.push_back(line.substr(4));
  }
  return commands;
}

class BackTest : public ControlTest {
 protected:
  void Do(const std::string& command) {
    SCOPED_TRACE(command);
    constexpr std::string_view kCtl = "cri-resmgr-ctl ";
    if (command.starts_with(kCtl)) {
      std::istringstream words(command.substr(kCtl.size()));
      const std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
      const Shown shown = Ctl(arguments);
      EXPECT_EQ(shown.exit_code, 0) << shown.err;
    } else if (command == "systemctl restart kubelet") {
      kubelet_ = std::make_unique<CriClient>(RuntimeSocket());
    } else if (command.starts_with("systemctl disable --now ")) {
      EXPECT_THAT(daemon_->Terminate(), IsOk());
    } else {
      ADD_FAILURE() << "the test does not know it";
    }
  }

  std::unique_ptr<CriClient> kubelet_;
};

TEST_F(BackTest, ThePagesOwnCommandsGoBackUnderAnyFlags) {
  StartRuntime();
  StartDaemon(Flags({"-policy", "static", "-reserved-resources", "CPU=1"}));
  kubelet_ = std::make_unique<CriClient>(RelaySocket());
  const Running running =
      Run(*kubelet_, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(CpusAtRuntime(running.container).size(), 2);
  const std::vector<std::string> commands = CommandsOfThePage();
  ASSERT_EQ(commands.size(), 3U);
  for (const std::string& command : commands)
    Do(command);
  EXPECT_EQ(CpusAtRuntime(running.container).size(), kCpus);
  const Running later = Run(*kubelet_, MakeGuaranteedPod("h"), MakeGuaranteedContainer("main", 2));
  EXPECT_FALSE(later.container.empty());
}

// The words of the package's script before a removal, where this test's daemon is the only process
// and there is no unit to stop.
struct Removal {
  int exit_code = 0;
  std::string said;
};
// Runs one of the package's scripts with this argument, where the daemon's directory is `state`.
Removal RunScript(const std::string& name, const std::string& argument, const std::string& proc,
                  const std::string& state, const std::string& script) {
  std::ifstream source(RESMGR_SOURCE_DIR "/cmake/debian/" + name);
  std::string text{std::istreambuf_iterator<char>(source), {}};
  const auto replace = [&text](const std::string& what, const std::string& by) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
      text.replace(at, what.size(), by);
  };
  replace("proc=/proc", "proc=" + proc);
  replace("@SOCKETS@", "a.socket");
  replace("state=/var/lib/cri-resmgr", "state=" + state);
  replace("@STATE@", state);
  replace("@UNITS@", "");
  replace("/run/systemd/system", "/no/such/directory");
  std::ofstream(script) << text;
  const int status = std::system(fmt::format("sh {0} {1} 2>{0}.said", script, argument).c_str());
  std::ifstream said(script + ".said");
  return {WEXITSTATUS(status), {std::istreambuf_iterator<char>(said), {}}};
}

class RemovalTest : public BackTest {
 protected:
  Removal TryToRemove() const {
    return RunScript("prerm.in", "remove", Path("proc"), Path("state"), Path("prerm"));
  }
  Removal Purge() const {
    return RunScript("postrm.in", "purge", Path("proc"), Path("state"), Path("postrm"));
  }
  void Write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(Path(file)).parent_path());
    std::ofstream(Path(file)) << text;
  }
};

TEST_F(RemovalTest, ThePackageIsNotRemovedWhoeverStartedTheRelay) {
  namespace fs = std::filesystem;
  const auto connect = [&](const std::string& socket) {
    Write("proc/net/unix",
          "0000000000000000: 00000003 00000000 00000000 0001 03 4711 " + socket + "\n");
  };
  const auto code = [this] { return TryToRemove().exit_code; };
  fs::create_directories(Path("proc/12"));
  fs::create_symlink("/usr/bin/cri-resmgr (deleted)", Path("proc/12/exe"));
  const auto start = [&](std::string line) {
    std::ranges::replace(line, ' ', '\0');
    Write("proc/12/cmdline", line);
  };
  connect("/run/other/x.sock");
  start("/usr/bin/cri-resmgr");
  EXPECT_EQ(code(), 0);
  start("koord-runtime-proxy --koord-runtimeproxy-endpoint=/run/other/x.sock");
  EXPECT_EQ(code(), 1);
  Write("options", "policy static\nrelay-socket /run/other/x.sock\n");
  start("/usr/bin/cri-resmgr -config " + Path("options"));
  EXPECT_EQ(code(), 1);
  start("/usr/bin/cri-resmgr -relay-socket unix:///run/other/x.sock -config /none");
  EXPECT_EQ(code(), 1);
  start("/usr/bin/cri-resmgr");
  connect("/var/run/koord-runtimeproxy/runtimeproxy.sock");
  EXPECT_EQ(code(), 1);
}

// The journal is the only note of what the daemon changed, also of one that serves no socket.
TEST_F(RemovalTest, ThePackageIsNotRemovedWhileFilesOfTheHostHaveItsValues) {
  namespace fs = std::filesystem;
  EXPECT_EQ(TryToRemove().exit_code, 0) << "classes were never used";
  Write("proc/sys/kernel/random/boot_id", "b-2\n");
  const ClassJournal::Entries of_kernel = {{"proc/irq/24/smp_affinity", {"ff", "3", "ff"}},
                                           {"sys/fs/cgroup/a/memory.high", {"max", "[7]", "max"}}};
  const ClassJournal::Entries on_disk = {{"etc/default/irqbalance", {"", "BANNED=3", ""}}};
  Write("state/classes/journal", JournalText({}, "b-2"));
  EXPECT_EQ(TryToRemove().exit_code, 0) << "all is given back";
  Write("state/classes/journal", JournalText(of_kernel, "b-1"));
  EXPECT_EQ(TryToRemove().exit_code, 0) << "a boot has ended them";
  Write("state/classes/journal", JournalText(on_disk, "b-1"));
  EXPECT_EQ(TryToRemove().exit_code, 1) << "a boot has not";
  Write("state/classes/journal", JournalText(of_kernel, "b-2"));
  const Removal refused = TryToRemove();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.said, testing::AllOf(testing::HasSubstr("values of its classes (2)"),
                                           testing::HasSubstr(Path("state/classes/journal")),
                                           testing::HasSubstr("cri-resmgr-ctl uninstall -apply")));
  fs::remove(Path("state/classes/journal"));
  EXPECT_EQ(TryToRemove().exit_code, 0);

  fs::create_directories(Path("proc/12"));
  fs::create_symlink("/usr/bin/cri-resmgr", Path("proc/12/exe"));
  using std::string_literals::operator""s;
  Write("proc/12/cmdline", "cri-resmgr\0-relay-dir\0"s + Path("elsewhere") + '\0');
  EXPECT_EQ(TryToRemove().exit_code, 0);
  Write("elsewhere/classes/journal", JournalText(of_kernel, "b-2"));
  EXPECT_THAT(TryToRemove().said, testing::HasSubstr(Path("elsewhere/classes/journal")));
}

TEST_F(RemovalTest, APurgeLeavesTheJournalOfWhatWasNotGivenBack) {
  namespace fs = std::filesystem;
  Write("state/classes/journal",
        JournalText({{"proc/irq/24/smp_affinity", {"ff", "3", "ff"}}}, ""));
  Write("state/state/a", "1");
  const Removal kept = Purge();
  EXPECT_EQ(kept.exit_code, 0);
  EXPECT_THAT(kept.said, testing::HasSubstr(Path("state/classes") + " stays"));
  EXPECT_TRUE(fs::exists(Path("state/classes/journal")));
  EXPECT_FALSE(fs::exists(Path("state/state")));
  Write("state/classes/journal", JournalText({}, ""));
  EXPECT_EQ(Purge().said, "");
  EXPECT_FALSE(fs::exists(Path("state")));
}

TEST_F(RemovalTest, ThePackageIsNotRemovedWhileClientsAreConnected) {
  StartBoth();
  namespace fs = std::filesystem;
  fs::create_directory(Path("proc"));
  fs::create_symlink(fmt::format("/proc/{}", pid()), Path(fmt::format("proc/{}", pid())));
  fs::create_symlink("/proc/net", Path("proc/net"));
  // The start of the daemon, or this test's own first call, may still be connected.
  EXPECT_TRUE(Eventually([&] { return TryToRemove().exit_code == 0; }));
  {
    StatusOr<UniqueFd> kubelet = ConnectUnix(RelaySocket());
    ASSERT_TRUE(kubelet.ok()) << kubelet.status();
    Removal refused;
    EXPECT_TRUE(Eventually([&] {  // once the daemon has accepted it
      refused = TryToRemove();
      return refused.exit_code == 1;
    }));
    EXPECT_THAT(refused.said, testing::HasSubstr("clients are connected to its socket"));
    EXPECT_THAT(refused.said, testing::HasSubstr(RelaySocket())) << "wherever that is";
    EXPECT_THAT(refused.said, testing::HasSubstr("cri-resmgr-ctl uninstall -apply"));
  }
  EXPECT_TRUE(Eventually([&] { return TryToRemove().exit_code == 0; }));
}

}  // namespace
}  // namespace resmgr::test
