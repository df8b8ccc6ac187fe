// SPDX-License-Identifier: Apache-2.0
// The list of problems of a real daemon before a fake runtime, in all places that show it.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/unix_socket.h"
#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

using testing::Not;

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
