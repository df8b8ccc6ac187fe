// SPDX-License-Identifier: Apache-2.0
// cri-resmgr-ctl asks a daemon in front of a fake runtime for the values in force.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/sys/unix_socket.h"
#include "test/integration/control_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(ControlTest, ShowsWhatTheDaemonHolds) {
  CriClient client = Started();
  const Running exclusive = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  Run(client, MakeBurstablePod("b"), MakeBurstableContainer("side", {300}));

  const Json status = Ctl({"status", "-o", "json"}).json();
  EXPECT_EQ(status.value("policy", ""), "static");
  EXPECT_EQ(status.value("runtime", ""), "connected");
  EXPECT_EQ(status.value("containers", 0), 2);

  const Json containers = Ctl({"containers", "-o", "json"}).json();
  ASSERT_EQ(containers.size(), 2u);
  const Json& first = containers[0];
  EXPECT_EQ(first.at("id"), exclusive.container);
  EXPECT_EQ(first.at("pod"), "g");
  EXPECT_EQ(first.at("namespace"), "default");
  EXPECT_EQ(first.at("name"), "main");
  EXPECT_EQ(first.at("qos"), "Guaranteed");
  EXPECT_EQ(first.at("state"), "running");
  EXPECT_EQ(first.at("cpus"), CpusAtRuntime(exclusive.container).ToString());
  EXPECT_EQ(first.at("exclusive"), first.at("cpus"));
  EXPECT_EQ(first.at("shared"), "");
  EXPECT_EQ(first.at("quota"), -1);
  EXPECT_EQ(first.at("pool"), "exclusive");
  EXPECT_EQ(first.at("policy"), "static");
  EXPECT_EQ(containers[1].at("shares"), 307);
  EXPECT_EQ(containers[1].at("quota"), -1) << "without a limit, as simulate tells it";

  const Json pools = Ctl({"pools", "-o", "json"}).json();
  EXPECT_EQ(pools[0].at("name"), "shared");
  EXPECT_EQ(pools[0].at("containers"), Json({"default/b/side"}));

  for (const char* what : {"g", "g/main", "default/g", "default/g/main"}) {
    const Json explained = Ctl({"explain", what, "-o", "json"}).json();
    ASSERT_EQ(explained.size(), 1u) << what;
    EXPECT_EQ(explained[0].at("id"), exclusive.container);
    EXPECT_EQ(explained[0].at("request"), 2000);
    EXPECT_EQ(explained[0].at("settled"), true);
  }
  EXPECT_EQ(Ctl({"explain", exclusive.container.substr(0, 8)}).exit_code, 0);
  EXPECT_EQ(Ctl({"explain", "nobody"}).exit_code, 1);
  EXPECT_THAT(Ctl({"policies"}).out, HasSubstr("*  static"));
  EXPECT_THAT(Ctl({"containers"}).out, HasSubstr("NAMESPACE"));
  EXPECT_THAT(Ctl({"pools"}).out, HasSubstr("default/b/side"));
  EXPECT_THAT(Ctl({"explain", "g"}).out, HasSubstr("Guaranteed pod with 2 whole CPUs"));
  EXPECT_THAT(Ctl({"config", "show"}).out, HasSubstr("Active: static"));
}

TEST_F(ControlTest, QuestionsDuringTheFirstLookAtTheRuntimeWaitForIt) {
  CriClient client = Started();
  Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", 2));
  const std::string before = Ctl({"containers"}).out;
  EXPECT_THAT(before, HasSubstr("main"));
  DuringFirstLook(StaticFlags(), [&](const std::function<bool()>& in_time) {
    EXPECT_EQ(Ctl({"status"}).exit_code, 0) << "it does not wait";
    auto asked = std::async(std::launch::async, [this] { return Ctl({"containers"}).out; });
    const bool waits =
        asked.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout;
    runtime_.Release("ListPodSandbox");
    const std::string answer = asked.get();
    if (!in_time()) return false;
    EXPECT_TRUE(waits);
    EXPECT_EQ(answer, before);
    return true;
  });
}

// The runtime may hang for long.
TEST_F(ControlTest, QuestionsDoNotWaitForLongForTheFirstLook) {
  StartRuntime();
  runtime_.Script("ListPodSandbox", {.hold = true});
  StartDaemon(StaticFlags());
  EXPECT_THAT(Ctl({"containers"}).out,
              HasSubstr("No containers are known: the daemon is still reading"));
  runtime_.Release("ListPodSandbox");
}

TEST_F(ControlTest, SaysWhyNoContainersAreKnown) {
  StartDaemon(StaticFlags());  // without a runtime
  const std::string none = "No containers are known: the runtime is not connected (";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"containers"},
                                                  {"containers", "-n", "shop"},
                                                  {"pools"},
                                                  {"top"},
                                                  {"top", "cpus"},
                                                  {"cpus"}}) {
    EXPECT_THAT(Ctl(command).out, HasSubstr(none)) << command.front();
  }
  EXPECT_THAT(Ctl({"top", "nodes"}).out, Not(HasSubstr("No containers")));
  EXPECT_THAT(Ctl({"explain", "web"}).err, HasSubstr("the runtime is not connected ("));
  const Shown json = Ctl({"containers", "-o", "json"});
  EXPECT_EQ(json.json(), Json::array());
  EXPECT_THAT(json.err, HasSubstr(none));
  StartRuntime();
  ASSERT_TRUE(Eventually([this] { return Ctl({"containers"}).out == "No containers.\n"; }));
  EXPECT_THAT(Ctl({"pools"}).out, Not(HasSubstr("No containers")));
}

TEST_F(ControlTest, TakesTheSocketBehindTheCommandToo) {
  StartBoth();
  const std::string socket = Path("admin.sock");
  EXPECT_EQ(Ctl({"status", "-socket", socket}).exit_code, 0);
  EXPECT_EQ(Ctl({"status", "-socket", Path("none.sock")}).exit_code, 2) << "the last one counts";
}

TEST_F(ControlTest, ChecksAFileOfOptions) {
  StartBoth();
  const Shown shown = Ctl({"config", "check", WriteFile("c", "policy static\nrelay-dir /d\n")});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(Ctl({"config", "check", WriteFile("c", "polcy static\n")}).exit_code, 1);
}

TEST_F(ControlTest, SaysThatNoDaemonIsThere) {
  const Shown shown = Ctl({"status"});
  EXPECT_EQ(shown.exit_code, 2);
  EXPECT_THAT(shown.err, HasSubstr("admin.sock"));
}

TEST_F(ControlTest, UnderTheNullPolicyListsAreEmpty) {
  StartRuntime();
  StartDaemon(Flags({}));
  EXPECT_EQ(PolicyInForce(), "null");
  for (const char* command : {"containers", "pools"}) {
    const Shown shown = Ctl({command, "-o", "json"});
    EXPECT_EQ(shown.exit_code, 0);
    EXPECT_EQ(shown.json(), Json::array()) << command;
    EXPECT_EQ(Ctl({command}).exit_code, 0) << command;
  }
  EXPECT_EQ(Ctl({"containers"}).out,
            "No containers are known: the null policy is active, which places none.\n");
  const Shown explained = Ctl({"explain", "any"});
  EXPECT_EQ(explained.exit_code, 1);
  EXPECT_THAT(explained.err, HasSubstr("null policy"));
}

TEST_F(ControlTest, ShowsTheDaemonsMachine) {
  StartRuntime();
  StartDaemon(Flags({"-topology", "synthetic:package:2 core:3 pu:2"}));
  const Json machine = Ctl({"topology", "-o", "json"}).json();
  EXPECT_EQ(machine.at("cpus").size(), 12u);
  EXPECT_EQ(Ctl({"topology", "-topology", "synthetic:core:3 pu:1", "-o", "json"})
                .json()
                .at("cpus")
                .size(),
            3u);
  EXPECT_EQ(Ctl({"topology"}).out,
            Ctl({"topology", "-topology", "synthetic:package:2 core:3 pu:2"}).out);
}

TEST_F(ControlTest, ANamedSocketWithoutADaemonIsNotThisMachine) {
  const Shown shown = Ctl({"topology"});
  EXPECT_EQ(shown.exit_code, 2);
  EXPECT_THAT(shown.err, HasSubstr("admin.sock"));
}

// The number of connections in the metrics.
class ConnectionsTest : public ControlTest {
 protected:
  bool Stand(std::string_view peer, int connections) {
    const std::string line =
        fmt::format("\ncri_resmgr_connections{{peer=\"{}\"}} {}\n", peer, connections);
    return Eventually([&] { return Counts().find(line) != std::string::npos; });
  }
};

TEST_F(ConnectionsTest, OfClientsAndToTheRuntimeForThemAreCountedWhileTheyStand) {
  StartWithMetrics({});
  EXPECT_TRUE(Stand("client", 0)) << Counts();
  EXPECT_TRUE(Stand("runtime", 0)) << "the brain's own does not count: " << Counts();
  std::optional<CriClient> first(Relayed());
  EXPECT_TRUE(first->Call(kVersion, {""}).status.ok());
  EXPECT_TRUE(Stand("client", 1)) << Counts();
  EXPECT_TRUE(Stand("runtime", 1)) << Counts();
  std::optional<CriClient> second(Relayed());
  EXPECT_TRUE(second->Call(kVersion, {""}).status.ok());
  EXPECT_TRUE(Stand("client", 2)) << Counts();
  EXPECT_TRUE(Stand("runtime", 2)) << Counts();
  EXPECT_TRUE(Stand("image", 0)) << "images go to the runtime's socket: " << Counts();
  first.reset();
  EXPECT_TRUE(Stand("client", 1)) << Counts();
  EXPECT_TRUE(Stand("runtime", 1)) << Counts();
  second.reset();
  EXPECT_TRUE(Stand("runtime", 0)) << Counts();
}

// The report of differences between a runtime's containers and its requests.
class AuditTest : public ControlTest {};

// The container has other CPUs from its creation, as with CRI-O's workloads. Audits are a minute
// apart.
TEST_F(AuditTest, OtherCpusThanAskedForAreToldSoonAfterTheCreation) {
  CriClient client = Started();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const std::string id =
      Ok(client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2)));
  ASSERT_EQ(CpusAtRuntime(id).ToString(), "1-2");
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(id);
  request.mutable_linux()->set_cpuset_cpus("6");
  cri::UpdateContainerResourcesResponse response;
  CriClient direct = Direct();
  ASSERT_TRUE(direct.Unary("UpdateContainerResources", request, &response).ok());
  EXPECT_THAT(client.StartContainer(id), IsOk());
  EXPECT_TRUE(Logged("container default/g/main has drifted: cpuset.cpus is 6 at the runtime"));
}

// The runtime still reports its former CPUs.
TEST_F(AuditTest, AnEndedContainerHasNoCpusBeforeAndAfterARestart) {
  CriClient client = Started();
  const Running ended = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  EXPECT_THAT(client.StopContainer(ended.container), IsOk());
  const auto cpus = [this, &ended] {
    const auto containers = Ctl({"containers", "-o", "json"}).json();
    EXPECT_EQ(containers.size(), 1U);
    if (containers.empty()) return std::string("none");
    EXPECT_EQ(containers[0].value("id", ""), ended.container);
    EXPECT_EQ(containers[0].value("state", ""), "exited");
    return containers[0].value("cpus", "?") + "/" + containers[0].value("mems", "?");
  };
  EXPECT_EQ(cpus(), "/");
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  StartDaemon(StaticFlags());
  ASSERT_TRUE(Eventually([this] { return Ctl({"containers", "-o", "json"}).json().size() == 1; }));
  EXPECT_EQ(cpus(), "/");
}

TEST_F(AuditTest, CallsOfTheOnlyRuntimeAreNotCounted) {
  StartBoth();
  const auto runtimes = Ctl({"runtimes", "-o", "json"}).json();
  ASSERT_EQ(runtimes.size(), 1U);
  EXPECT_TRUE(runtimes[0]["calls"].is_null());
  EXPECT_TRUE(runtimes[0]["errors"].is_null());
}

// The list of problems of a real daemon before a fake runtime, in all places that show it.
class ProblemsTest : public ControlTest {
 protected:
  // The problems of this kind.
  Json Problems(const std::string& kind) const {
    Json found = Json::array();
    const Json status = Ctl({"status", "-o", "json"}).json();
    for (const Json& problem : status.value("problems", Json::array()))
      if (problem["kind"] == kind) found.push_back(problem);
    return found;
  }
  void Refuse(CriClient& client, const std::string& name) {
    const cri::PodSandboxConfig pod = MakeGuaranteedPod(name);
    const std::string id = Ok(client.RunPod(pod));
    EXPECT_FALSE(client.CreateContainer(id, pod, MakeGuaranteedContainer("main", 20)).ok());
  }
};

TEST_F(ProblemsTest, ARefusalIsTellableEverywhereAndAfterARestart) {
  StartWithMetrics({});
  CriClient client = Relayed();
  EXPECT_EQ(Ctl({"status", "-check"}).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(Refuse(client, "large"));
  const Json before = Problems("refused");
  ASSERT_EQ(before.size(), 1U) << before;
  EXPECT_EQ(before[0]["objects"], Json::array({"default/large/main"}));
  EXPECT_THAT(before[0]["message"].get<std::string>(), HasSubstr("needs 20 exclusive CPUs"));
  EXPECT_EQ(Ctl({"status", "-check"}).exit_code, 1);
  EXPECT_THAT(Ctl({"status"}).out,
              AllOf(HasSubstr("try: cri-resmgr-ctl explain default/large/main"),
                    HasSubstr("docs/troubleshooting.md#refused")));
  EXPECT_THAT(Ctl({"explain", "large"}).out,
              AllOf(HasSubstr("needs 20 exclusive CPUs"), HasSubstr("; refused at "),
                    Not(HasSubstr("cri-resmgr-ctl explain"))));
  EXPECT_TRUE(Eventually([this] {
    return Counts().find("cri_resmgr_problems{kind=\"refused\"} 1") != std::string::npos;
  })) << Counts();
  EXPECT_THAT(Counts(), HasSubstr("cri_resmgr_problems{kind=\"drift\"} 0"));

  ASSERT_THAT(daemon_->Terminate(), IsOk());
  StartDaemon(StaticFlags());
  Json after = Problems("refused");
  ASSERT_EQ(after.size(), 1U) << after;
  // The history's clock is read a moment later.
  after[0]["since"] = before[0]["since"];
  EXPECT_EQ(after, before);
  EXPECT_THAT(Ctl({"explain", "large"}).out, HasSubstr("needs 20 exclusive CPUs"));
  EXPECT_THAT(Ctl({"history"}).out, HasSubstr("needs 20 exclusive CPUs"));
}

// Under the null policy nothing is refused, and nothing could be explained.
TEST_F(ProblemsTest, RefusalsAreNoProblemOnceTheNullPolicyIsActive) {
  CriClient client = Started();
  ASSERT_NO_FATAL_FAILURE(Refuse(client, "large"));
  ASSERT_EQ(Problems("refused").size(), 1U);
  EXPECT_EQ(Ctl({"uninstall", "-apply"}).exit_code, 0);
  EXPECT_EQ(PolicyInForce(), "null");
  EXPECT_EQ(Problems("refused"), Json::array());
  EXPECT_THAT(Ctl({"history"}).out, HasSubstr("needs 20 exclusive CPUs"));
}

TEST_F(ProblemsTest, AKubeletWithACpuManagerIsOne) {
  const fs::path file = fs::path(Path("root")) / "var/lib/kubelet/cpu_manager_state";
  fs::create_directories(file.parent_path());
  std::ofstream(file) << R"({"policyName":"static","defaultCpuSet":"0-7","checksum":1})";
  StartRuntime();
  StartDaemon(StaticFlags({"-host-root", Path("root")}));
  EXPECT_TRUE(Eventually([this] { return Problems("cpu-manager-on").size() == 1; }))
      << Ctl({"status"}).out;
  EXPECT_TRUE(Logged("the kubelet's CPU manager is on"));
}

TEST_F(ProblemsTest, ARefusedConfigurationIsOneUntilAnotherOneIsInForce) {
  StartBoth();
  EXPECT_NE(SetConfig({{"policy", "Active: nosuch\n"}}), "");
  ASSERT_EQ(Problems("config-rejected").size(), 1U) << Ctl({"status"}).out;
  EXPECT_EQ(SetConfig({{"policy", kStatic}}), "");
  EXPECT_EQ(Problems("config-rejected"), Json::array());
}

TEST_F(ProblemsTest, ASocketThatIsNotServedIsOne) {
  // A directory is in its place.
  fs::create_directories(Path("config.sock"));
  StartRuntime();
  StartDaemon(StaticFlags());
  const Json problems = Problems("socket");
  ASSERT_EQ(problems.size(), 1U) << Ctl({"status"}).out;
  EXPECT_EQ(problems[0]["objects"], Json::array({Path("config.sock")}));
  fs::remove(Path("config.sock"));
  EXPECT_TRUE(Eventually([this] { return Problems("socket").empty(); }));
}

TEST_F(ProblemsTest, NriPluginsThatAreNotServedAreOne) {
  // As containerd 2 does.
  auto other = ListeningSocket::Create(Path("nri.sock"));
  ASSERT_TRUE(other.ok());
  StartRuntime();
  StartDaemon(StaticFlags({"-nri-host", Path("nri.sock")}));
  EXPECT_TRUE(Eventually([this] { return Problems("socket").size() == 1; })) << Ctl({"status"}).out;
  EXPECT_EQ(Problems("socket")[0]["objects"], Json::array({Path("nri.sock")}));
  EXPECT_EQ(Ctl({"status", "-check"}).exit_code, 1);
  other = Unavailable("closed");
  EXPECT_TRUE(Eventually([this] { return Problems("socket").empty(); })) << Ctl({"status"}).out;
}

TEST_F(ProblemsTest, ARequiredPluginThatWasNeverConnectedIsOne) {
  const std::string file = WriteFile(
      "node.yaml", fmt::format("policy: {{Active: static, ReservedResources: {{CPU: 1}}}}\n"
                               "nri: {{Host: {{Socket: {}, PluginPath: disabled, Plugins: "
                               "{{10-guard: {{Required: true}}, 20-other: {{}}}}}}}}\n",
                               Path("nri.sock")));
  StartRuntime();
  StartDaemon(Flags({"-config", file}));
  EXPECT_TRUE(Eventually([this] { return Problems("plugin").size() == 1; })) << Ctl({"status"}).out;
  EXPECT_EQ(Problems("plugin")[0]["objects"], Json::array({"10-guard"}));
}

TEST_F(ProblemsTest, AHookFileOrDirectoryThatIsNotUsedIsOne) {
  const auto plugin_problems = [this](size_t count) {
    return Eventually([this, count] { return Problems("plugin").size() == count; });
  };
  WriteFile("hooks", "this is no directory");
  StartRuntime();
  StartDaemon(StaticFlags({"-hook-dir", Path("hooks")}));
  EXPECT_TRUE(plugin_problems(1)) << Ctl({"status"}).out;
  EXPECT_EQ(Problems("plugin")[0]["objects"], Json::array({Path("hooks")}));
  fs::remove(Path("hooks"));
  fs::create_directories(Path("hooks"));
  EXPECT_TRUE(plugin_problems(0)) << Ctl({"status"}).out;
  const std::string good = fmt::format(
      R"({{"remote-endpoint":"{}","runtime-hooks":["PreRunPodSandbox"]}})", Path("hook.sock"));
  WriteFile("hooks/a.json", good);
  EXPECT_TRUE(plugin_problems(1)) << "its server is away: " << Ctl({"status"}).out;
  WriteFile("hooks/a.json", "{");
  EXPECT_TRUE(plugin_problems(2)) << Ctl({"status"}).out;
  WriteFile("hooks/a.json", good);
  EXPECT_TRUE(plugin_problems(1)) << Ctl({"status"}).out;
}

// A daemon that starts under the null policy releases what a former one has bound.
TEST_F(ProblemsTest, AContainerThatIsNotReleasedIsOneUnderTheNullPolicyToo) {
  CriClient client = Started();
  Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  runtime_.Script("UpdateContainerResources",
                  {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "disk on fire")});
  StartDaemon(Flags({}));
  EXPECT_EQ(PolicyInForce(), "null");
  EXPECT_TRUE(Eventually([this] { return Problems("runtime").size() == 1; }))
      << Ctl({"status"}).out;
  const Shown status = Ctl({"status", "-check"});
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_THAT(status.out,
              AllOf(HasSubstr("does not update default/g/main: disk on fire"),
                    HasSubstr("; 1 container is still bound to what a former policy chose")));
  EXPECT_THAT(Ctl({"explain", "g"}).out,
              AllOf(HasSubstr("disk on fire"), Not(HasSubstr("it decides nothing"))));
  runtime_.ClearScripts();
  EXPECT_TRUE(Eventually([this] {
    return Ctl({"status", "-check"}).exit_code == 0;
  })) << Ctl({"status"}).out;
  EXPECT_THAT(Ctl({"status"}).out, Not(HasSubstr("still bound")));
}

// No brain asks the runtime for anything.
TEST_F(ProblemsTest, ARuntimeThatIsAwayIsOneUnderTheNullPolicyToo) {
  StartDaemon(Flags({"-image-socket", Path("images.sock")}));
  ASSERT_EQ(Problems("runtime").size(), 2U) << Ctl({"status"}).out;
  EXPECT_EQ(Problems("runtime")[0]["objects"], Json::array({RuntimeSocket()}));
  EXPECT_EQ(Problems("runtime")[1]["objects"], Json::array({Path("images.sock")}));
  EXPECT_EQ(Ctl({"status", "-check"}).exit_code, 1);
  StartRuntime();
  EXPECT_EQ(Problems("runtime").size(), 1U) << Ctl({"status"}).out;
  const auto images = ListeningSocket::Create(Path("images.sock"));
  EXPECT_EQ(Ctl({"status", "-check"}).exit_code, 0) << Ctl({"status"}).out;
}

TEST_F(ProblemsTest, ADaemonIsReadyWhenTheRuntimeIsThere) {
  StartDaemon(StaticFlags());
  EXPECT_TRUE(Logged("not ready yet: policy static"));
  EXPECT_THAT(TextOf(Path("daemon.log")), Not(HasSubstr("ready: policy")));
  EXPECT_EQ(Problems("runtime").size(), 1U);
  StartRuntime();
  EXPECT_TRUE(Logged("ready: policy static"));
  EXPECT_TRUE(Eventually([this] { return Problems("runtime").empty(); }));
}

class SeveralRuntimesProblemsTest : public ProblemsTest {
 protected:
  FakeRuntime kata_{{.store = {.first_id = 1'000'000}}};
};

// The one that hangs is not waited for.
TEST_F(SeveralRuntimesProblemsTest, AnAnswerIsThereAtOnce) {
  std::ofstream(Path("node.yaml")) << "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
                                   << "runtimes: {kata: {Socket: " << Path("kata.sock") << "}}\n"
                                   << "runtimeClasses: {kata: {Runtime: kata}}\n";
  StartRuntime();
  ASSERT_THAT(kata_.Start(Path("kata.sock")), IsOk());
  kata_.Script("Version", {.hold = true});
  StartDaemon(Flags({"-config", Path("node.yaml")}));
  EXPECT_TRUE(Eventually([this] { return Problems("runtime").size() == 1; }))
      << Ctl({"status"}).out;
  // A wait would delay each answer, a busy machine delays some.
  auto quickest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(Ctl({"status"}).exit_code, 0);
    quickest = std::min(quickest, std::chrono::steady_clock::now() - begun);
  }
  EXPECT_LT(quickest, kAtOnceAlone);
  EXPECT_THAT(Ctl({"status"}).out, HasSubstr("the runtime kata is hanging"));
}

}  // namespace
}  // namespace resmgr::test
