// SPDX-License-Identifier: Apache-2.0
// Each extension of the relay beside each policy, through every way in which the daemon, its state,
// the runtime or the configuration goes away and comes back. No container moves, nothing leaks, and
// an extension's values stay set.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control_fixture.h"
#include "test/support/extensions/extensions.h"
#include "test/support/policy_text.h"

namespace resmgr::test {
namespace {

struct Extensions {
  const char* name;
  bool hooks = false;
  bool plugin = false;
  bool second_runtime = false;
  bool alias = false;
  bool cpu_files = false;

  bool ChangeShares() const { return hooks || plugin; }
  friend void PrintTo(const Extensions& extensions, std::ostream* out) { *out << extensions.name; }
};

class CombinationsTest : public ControlTest,
                         public ::testing::WithParamInterface<std::tuple<std::string, Extensions>> {
 protected:
  struct Member {
    std::string name;
    FakeRuntime* runtime;
    std::string pod;
    std::string id;
    int exclusive = 0;  // number of its exclusive CPUs
  };
  // The values that a runtime has in force for a container.
  using InForce = std::map<std::string, std::string>;

  ~CombinationsTest() override {
    daemon_.reset();
    plugin_.reset();
    kata_.Stop();
  }

  const std::string& policy() const { return std::get<0>(GetParam()); }
  const Extensions& extensions() const { return std::get<1>(GetParam()); }

  void WriteConfig() {
    std::string text = PolicyFile(policy());
    if (extensions().second_runtime) {
      text += fmt::format("runtimes: {{kata: {{Socket: {}}}}}\n", Path("kata.sock"));
    }
    std::string classes;
    if (extensions().second_runtime) classes += "  kata: {Runtime: kata}\n";
    if (extensions().alias) classes += "  counted: {Handler: \"\"}\n";
    if (!classes.empty()) text += "runtimeClasses:\n" + classes;
    if (extensions().cpu_files) text += "cpuFiles: {Containers: all}\n";
    WriteFile("node.yaml", text);
  }

  std::vector<std::string> DaemonFlags() const {
    std::vector<std::string> flags = Flags({"-config", Path("node.yaml")});
    *(std::ranges::find(flags, "-topology") + 1) = "synthetic:package:2 numa:1 core:4 pu:1";
    if (extensions().hooks) flags.insert(flags.end(), {"-hook-dir", Path("hooks.d")});
    if (extensions().plugin) flags.insert(flags.end(), {"-nri-host", Path("nri.sock")});
    return flags;
  }

  // Starts everything; returns when each extension serves and the daemon knows the runtimes'
  // containers.
  void StartAll() {
    WriteConfig();
    StartRuntime();
    if (extensions().second_runtime) ASSERT_THAT(kata_.Start(Path("kata.sock")), IsOk());
    if (extensions().hooks) StartHookServer();
    StartAgain();
    if (extensions().plugin) {
      plugin_ = std::make_unique<SharesPlugin>(Path("nri.sock"));
      ExpectServing();
    }
  }
  void StartHookServer() {
    auto server = SharesHookServer::Start(Path("hooks.d"), Path("hooks.sock"), Path("hooks.log"));
    ASSERT_THAT(server, IsOk());
    hook_server_ = *std::move(server);
  }
  void StartAgain() {
    StartDaemon(DaemonFlags());
    if (!HasFatalFailure()) ExpectServing();
  }
  void ExpectServing() {
    ASSERT_TRUE(Eventually([this] {
      cri::ListContainersResponse list;
      return Relayed().Unary("ListContainers", cri::ListContainersRequest(), &list).ok();
    }));
    ASSERT_TRUE(Eventually([this] { return ServersReady(); })) << Ctl({"plugins"}).out;
    ASSERT_TRUE(Eventually([this] { return ViewsAgree(); })) << Views();
  }
  bool ServersReady() const {
    if (plugin_ && !plugin_->synchronized()) return false;
    const size_t expected = (extensions().hooks ? 1 : 0) + (plugin_ ? 1 : 0);
    if (expected == 0) return true;
    const Json plugins = Ctl({"plugins", "-o", "json"}).json();
    return plugins.is_array() && plugins.size() == expected &&
           std::ranges::all_of(plugins, [](const Json& one) { return one["state"] == "ready"; });
  }

  FakeRuntime& RuntimeOf(const std::string& handler) {
    return handler == "kata" ? kata_ : runtime_;
  }
  StatusOr<Member> RunMember(const std::string& name, const std::string& handler, int exclusive) {
    CriClient client = Relayed();
    const auto pod = exclusive > 0 ? MakeGuaranteedPod(name) : MakeBurstablePod(name);
    const auto container = exclusive > 0 ? MakeGuaranteedContainer(name, exclusive)
                                         : MakeBurstableContainer(name, MilliCpu{300});
    Member member{name, &RuntimeOf(handler), "", "", exclusive};
    RESMGR_ASSIGN_OR_RETURN(member.pod, client.RunPod(pod, handler));
    RESMGR_ASSIGN_OR_RETURN(member.id, client.CreateContainer(member.pod, pod, container));
    RESMGR_RETURN_IF_ERROR(client.StartContainer(member.id));
    return member;
  }
  void AddMember(const std::string& name, const std::string& handler, int exclusive) {
    const auto member = RunMember(name, handler, exclusive);
    ASSERT_THAT(member, IsOk()) << name;
    members_.push_back(*member);
  }
  void RunMembers() {
    AddMember("shared", "", 0);
    AddMember("exclusive", "", 2);
    if (extensions().second_runtime) {
      AddMember("shared-there", "kata", 0);
      AddMember("exclusive-there", "kata", 1);
    }
    if (extensions().alias) AddMember("exclusive-alias", "counted", 1);
    ASSERT_TRUE(Eventually([this] { return ViewsAgree(); })) << Views();
  }
  void RemovePod(const std::string& pod) {
    CriClient client = Relayed();
    EXPECT_THAT(client.StopPod(pod), IsOk());
    EXPECT_THAT(client.RemovePod(pod), IsOk());
  }

  // By container: CPUs, memory nodes and shares in force, and the annotation of the extension.
  InForce AllInForce() {
    InForce in_force;
    for (const Member& member : members_) {
      const auto found = member.runtime->FindContainer(member.id);
      if (!found) {
        in_force[member.name] = "gone";
        continue;
      }
      const auto& annotations = found->config.annotations();
      const auto annotation = annotations.find(kExtensionAnnotation);
      in_force[member.name] =
          fmt::format("cpus {} mems {} shares {} annotation {}", found->resources.cpuset_cpus(),
                      found->resources.cpuset_mems(), found->resources.cpu_shares(),
                      annotation == annotations.end() ? "none" : annotation->second);
    }
    return in_force;
  }
  CpuSet CpusOf(const Member& member) {
    const auto found = member.runtime->FindContainer(member.id);
    return found ? CpuSet::Parse(found->resources.cpuset_cpus()).value_or(CpuSet()) : CpuSet();
  }
  // Whether the daemon knows every container and its CPUs.
  bool ViewsAgree() {
    const Json shown = Ctl({"containers", "-o", "json"}).json();
    if (!shown.is_array() || shown.size() != members_.size()) return false;
    std::map<std::string, std::string> cpus;
    for (const Json& one : shown)
      cpus[one.value("id", "")] = one.value("cpus", "");
    return std::ranges::all_of(members_, [&](const Member& member) {
      const auto told = cpus.find(member.id);
      return told != cpus.end() && CpuSet::Parse(told->second).value_or(CpuSet()) == CpusOf(member);
    });
  }
  std::string Views() {
    std::string text = Ctl({"containers"}).out;
    for (const auto& [name, in_force] : AllInForce())
      text += name + ": " + in_force + "\n";
    return text;
  }
  // The contents of each pool, with its containers in the order of their names, since a restart may
  // find them in another order.
  Json Pools() const {
    Json pools = Ctl({"pools", "-o", "json"}).json();
    for (Json& pool : pools) {
      auto names = pool["containers"].get<std::vector<std::string>>();
      std::ranges::sort(names);
      pool["containers"] = names;
    }
    return pools;
  }

  // The pools without the places of balloons, of which those without containers are chosen anew
  // with each list of the runtime: only the numbers of CPUs tell of a leak.
  Json PoolsAnywhere() const {
    Json pools = Pools();
    for (Json& pool : pools) {
      if (pool["kind"] != "balloon" && pool["kind"] != "idle") continue;
      pool["cpus"] = Must(CpuSet::Parse(pool["cpus"].get<std::string>())).size();
      pool.erase("mems");
    }
    return pools;
  }

  std::string State() const { return TextOf(Path("state/state/state")); }

  // Exclusive containers have CPUs of their own, and no other container is on these.
  void ExpectInvariants() {
    for (const Member& member : members_) {
      const CpuSet own = CpusOf(member);
      EXPECT_FALSE(own.empty()) << member.name;
      if (member.exclusive == 0) continue;
      EXPECT_EQ(own.size(), member.exclusive) << member.name << Views();
      for (const Member& other : members_) {
        if (&other == &member) continue;
        EXPECT_FALSE(CpusOf(other).Intersects(own)) << member.name << " and " << other.name;
      }
    }
  }

  // Runs `upset`, after which no container has moved and no CPU is lost.
  enum class Updates { kNone, kNotOfExclusiveOnes };
  void ExpectUnmoved(const std::string& what, const std::function<void()>& upset,
                     Updates updates = Updates::kNone) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, what);
    const InForce before = AllInForce();
    const Json pools = Pools();
    runtime_.ForgetCalls();
    kata_.ForgetCalls();
    upset();
    if (HasFatalFailure()) return;
    ExpectServing();
    EXPECT_EQ(AllInForce(), before);
    EXPECT_EQ(Pools(), pools);
    for (const std::string& id : UpdatedContainers()) {
      const auto member = std::ranges::find(members_, id, &Member::id);
      const bool exclusive = member != members_.end() && member->exclusive > 0;
      EXPECT_TRUE(updates == Updates::kNotOfExclusiveOnes && !exclusive)
          << "an update of " << (member == members_.end() ? id : member->name);
    }
    // A container that comes now gets CPUs beside those that run, and gives them back.
    const auto late = RunMember("late-" + std::to_string(++late_), "", 1);
    ASSERT_THAT(late, IsOk());
    members_.push_back(*late);
    ASSERT_TRUE(Eventually([this] { return ViewsAgree(); })) << Views();
    ExpectInvariants();
    members_.pop_back();
    RemovePod(late->pod);
    ASSERT_TRUE(Eventually([this] { return ViewsAgree(); })) << Views();
    EXPECT_EQ(AllInForce(), before);
    EXPECT_EQ(Pools(), pools);
  }

  std::vector<std::string> UpdatedContainers() {
    std::vector<std::string> ids;
    for (FakeRuntime* const runtime : {&runtime_, &kata_}) {
      for (const RecordedCall& call : runtime->Calls("UpdateContainerResources")) {
        cri::UpdateContainerResourcesRequest request;
        // A daemon that is killed may have sent half a call.
        if (call.messages.empty()) continue;
        EXPECT_TRUE(request.ParseFromString(call.messages[0]));
        ids.push_back(request.container_id());
      }
    }
    return ids;
  }

  void Restart(int signal_number) {
    if (signal_number == SIGKILL) {
      daemon_->Kill();
    } else {
      EXPECT_THAT(daemon_->Terminate(), IsOk());
    }
    StartAgain();
  }
  void KillInTheMiddleOfACreation() {
    runtime_.Script("CreateContainer", {.times = 1, .hold = true});
    const std::string name = "cut-" + std::to_string(++late_);
    auto creation = std::async(std::launch::async, [&] { return RunMember(name, "", 1); });
    ASSERT_TRUE(runtime_.WaitForHeld("CreateContainer", 1));
    daemon_->Kill();
    runtime_.Release("CreateContainer");
    EXPECT_FALSE(creation.get().ok());
    StartDaemon(DaemonFlags());
    if (HasFatalFailure()) return;
    // Removes the pod, as a kubelet does after an unclear outcome.
    std::string pod;
    runtime_.WithStore([&](const CriStore& store) {
      for (const auto& [id, sandbox] : store.sandboxes())
        if (sandbox.config.metadata().name() == name) pod = id;
    });
    ASSERT_NE(pod, "");
    CriClient client = Relayed();
    ASSERT_TRUE(Eventually([&] { return client.StopPod(pod).ok(); }));
    EXPECT_THAT(client.RemovePod(pod), IsOk());
  }
  void RestartRuntimes() {
    runtime_.Stop();
    if (extensions().second_runtime) kata_.Stop();
    ASSERT_TRUE(Logged("lost the runtime at"));
    StartRuntime();
    if (extensions().second_runtime) ASSERT_THAT(kata_.Start(Path("kata.sock")), IsOk());
  }

  FakeRuntime kata_{{.store = {.first_id = 1'000'000}}};
  std::unique_ptr<SharesHookServer> hook_server_;
  std::unique_ptr<SharesPlugin> plugin_;
  std::vector<Member> members_;
  int late_ = 0;
};

TEST_P(CombinationsTest, NothingMovesNothingLeaks) {
  StartAll();
  if (HasFatalFailure()) return;
  const Json empty = PoolsAnywhere();
  RunMembers();
  if (HasFatalFailure()) return;
  ExpectInvariants();
  if (extensions().ChangeShares()) {
    for (const Member& member : members_) {
      const auto found = member.runtime->FindContainer(member.id);
      EXPECT_EQ(found->resources.cpu_shares(), kExtensionShares) << member.name;
    }
  }

  ExpectUnmoved("SIGTERM", [this] { Restart(SIGTERM); });
  ExpectUnmoved("kill -9", [this] { Restart(SIGKILL); });
  ExpectUnmoved(
      "kill -9 in a creation", [this] { KillInTheMiddleOfACreation(); },
      Updates::kNotOfExclusiveOnes);
  ExpectUnmoved("restart of the runtimes", [this] { RestartRuntimes(); });

  const std::string other = policy() == "static"           ? "topology-aware"
                            : policy() == "topology-aware" ? "balloons"
                                                           : "static";
  for (const std::string& next : {other, policy()}) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, "change to " + next);
    const size_t written = State().size();
    ASSERT_EQ(SetConfig({{"policy", PolicyText(next)}}), "");
    // The delivery is stored after it is answered.
    ASSERT_TRUE(Eventually([&] {
      return TextOf(Path("state/config")).find("Active: " + next + "\\n") != std::string::npos;
    }));
    // Only the state has a balloon's own CPUs, and it is written a moment later, behind what it had
    // before or in a new file.
    ASSERT_TRUE(next != "balloons" || Eventually([&] {
                  const std::string state = State();
                  return state.find("own CPUs", state.size() < written ? 0 : written) !=
                         std::string::npos;
                }));
    ASSERT_TRUE(Eventually([this] { return ViewsAgree(); })) << Views();
    ExpectInvariants();
    ExpectUnmoved("kill -9 under " + next, [this] { Restart(SIGKILL); });
  }

  for (const Member& member : std::exchange(members_, {}))
    RemovePod(member.pod);
  ASSERT_TRUE(Eventually([this] { return ViewsAgree(); })) << Views();
  EXPECT_EQ(PoolsAnywhere(), empty) << "nothing leaks";
}

// A list of the runtime is then all that a daemon has: containers stay where they run, and
// exclusive ones keep their CPUs. Without the state, the shares in force are all that shows a CPU
// request, so the daemon takes a container whose shares an extension changed for one that shares
// CPUs.
TEST_P(CombinationsTest, WithoutItsStateNothingMoves) {
  StartAll();
  if (HasFatalFailure()) return;
  RunMembers();
  if (HasFatalFailure()) return;
  const InForce before = AllInForce();
  daemon_->Kill();
  std::filesystem::remove_all(Path("state"));
  StartAgain();
  if (HasFatalFailure()) return;
  if (extensions().ChangeShares()) {
    for (const Member& member : members_)
      EXPECT_FALSE(CpusOf(member).empty()) << member.name;
  } else {
    EXPECT_EQ(AllInForce(), before);
    ExpectInvariants();
  }
  const auto late = RunMember("late", "", 1);
  ASSERT_THAT(late, IsOk());
  members_.push_back(*late);
  ASSERT_TRUE(Eventually([this] { return ViewsAgree(); })) << Views();
  if (!extensions().ChangeShares()) ExpectInvariants();
}

TEST_P(CombinationsTest, UninstallBindsNoContainerAnyMore) {
  StartAll();
  if (HasFatalFailure()) return;
  RunMembers();
  if (HasFatalFailure()) return;
  const Shown shown = Ctl({"uninstall", "-apply", "-o", "json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.out << shown.err;
  for (const Member& member : members_) {
    EXPECT_EQ(CpusOf(member).size(), kCpus) << member.name << Views();
    const auto found = member.runtime->FindContainer(member.id);
    if (extensions().ChangeShares()) {
      EXPECT_EQ(found->resources.cpu_shares(), kExtensionShares) << member.name;
    }
  }
  daemon_->Kill();
  StartDaemon(DaemonFlags());
}

const Extensions kOneByOne[] = {
    {.name = "Alone"},
    {.name = "HookServer", .hooks = true},
    {.name = "Plugin", .plugin = true},
    {.name = "SecondRuntime", .second_runtime = true},
    {.name = "Alias", .alias = true},
    {.name = "CpuFiles", .cpu_files = true},
};
const Extensions kAll = {.name = "All",
                         .hooks = true,
                         .plugin = true,
                         .second_runtime = true,
                         .alias = true,
                         .cpu_files = true};

std::string NameOfCombination(
    const ::testing::TestParamInfo<CombinationsTest::ParamType>& combination) {
  std::string name = std::get<0>(combination.param) + std::get<1>(combination.param).name;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Together, CombinationsTest,
                         ::testing::Combine(::testing::Values("static", "static-plus",
                                                              "topology-aware", "balloons"),
                                            ::testing::Values(kAll)),
                         NameOfCombination);
INSTANTIATE_TEST_SUITE_P(OneByOne, CombinationsTest,
                         ::testing::Combine(::testing::Values("topology-aware"),
                                            ::testing::ValuesIn(kOneByOne)),
                         NameOfCombination);
INSTANTIATE_TEST_SUITE_P(Long, CombinationsTest,
                         ::testing::Combine(::testing::Values("static", "static-plus", "balloons"),
                                            ::testing::ValuesIn(kOneByOne)),
                         NameOfCombination);

}  // namespace
}  // namespace resmgr::test
