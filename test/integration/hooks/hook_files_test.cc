// SPDX-License-Identifier: Apache-2.0
// Rows about the hook directory and the start, with servers that are processes.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/hooks/hook_rows_fixture.h"

namespace resmgr::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Writes a file as koordlet does: tabs, a double slash, no order, in place.
std::string KoordletFile(const std::string& directory, const std::string& more) {
  return "{\n\t\"remote-endpoint\": \"" + directory +
         "//koordlet.sock\",\n\t\"failure-policy\": \"Ignore\",\n\t\"runtime-hooks\": [\n"
         "\t\t\"PreUpdateContainerResources\",\n\t\t\"PreRunPodSandbox\",\n"
         "\t\t\"PreCreateContainer\"" +
         more + "\n\t]\n}";
}

TEST_F(HookRowsTest, K01KoordletsFileMakesItsThreeHooksActive) {
  const auto server = Serve("koordlet");
  StartNode();
  std::ofstream(HookDirectory() + "/koordlet.json")
      << KoordletFile(std::filesystem::path(Path("x")).parent_path(), "");
  AwaitServers(1);
  EXPECT_THAT(Ctl({"plugins"}),
              AllOf(HasSubstr("PreRunPodSandbox"), HasSubstr("PreCreateContainer"),
                    HasSubstr("PreUpdateContainerResources")));
  CriClient client = Relayed();
  const Running pod = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  EXPECT_THAT(client.UpdateContainer(pod.container, cri::LinuxContainerResources()), IsOk());
  EXPECT_THAT(Calls("koordlet", "PreRunPodSandbox"), SizeIs(1));
  EXPECT_THAT(Calls("koordlet", "PreCreateContainer"), SizeIs(1));
  EXPECT_THAT(Calls("koordlet", "PreUpdateContainerResources"), SizeIs(1));
}

TEST_F(HookRowsTest, K02TheHookWithoutAMethodIsAWarningAndIsNeverAsked) {
  const auto server = Serve("koordlet");
  StartNode();
  std::ofstream(HookDirectory() + "/koordlet.json") << KoordletFile(
      std::filesystem::path(Path("x")).parent_path(), ",\n\t\t\"PreRemoveRunPodSandbox\"");
  AwaitServers(1);
  EXPECT_TRUE(Logged("PreRemoveRunPodSandbox"));
  CriClient client = Relayed();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  EXPECT_THAT(client.StopPod(pod), IsOk());
  EXPECT_THAT(client.RemovePod(pod), IsOk());
  EXPECT_THAT(Calls("koordlet", "PreRunPodSandbox"), SizeIs(1));
  EXPECT_THAT(Calls("koordlet", "PreRemoveRunPodSandbox"), SizeIs(0));
}

TEST_F(HookRowsTest, K03AnEmptyFileIsReportedAndNothingElse) {
  StartNode();
  const pid_t before = pid();
  std::ofstream(HookDirectory() + "/new.json").close();
  EXPECT_TRUE(Logged("hook file new.json is ignored"));
  CriClient client = Relayed();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("g")), IsOk());
  EXPECT_EQ(pid(), before);
  EXPECT_TRUE(daemon_->process().Running());
}

// The first 64 by name are used. The failure policy of the others counts all the same.
TEST_F(HookRowsTest, TheFileBeyondTheLimitRefusesWhereItSaysFail) {
  const auto write = [this](const std::string& name, const std::string& policy) {
    std::ofstream(HookDirectory() + "/" + name)
        << R"({"remote-endpoint": "/nowhere", "failure-policy": ")" << policy
        << R"(", "runtime-hooks": ["PreRunPodSandbox"]})";
  };
  StartNode();
  for (int i = 0; i < 63; ++i)
    write(std::to_string(100 + i) + ".json", "Ignore");
  ASSERT_TRUE(Logged("hook file 162.json: server /nowhere"));
  CriClient client = Relayed();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("before")), IsOk());
  write("y.json", "Ignore");
  write("z.json", "Fail");
  ASSERT_TRUE(
      Logged("hook file z.json is not used, and the calls that its server would be asked "
             "about are refused, since it says Fail: the directory has more than 64 hook "
             "files"))
      << daemon_->Log();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("refused")),
              Fails(StatusCode::kUnavailable,
                    AllOf(HasSubstr("z.json"), HasSubstr("more than 64 hook files"))));
  EXPECT_THAT(Ctl({"plugins"}), HasSubstr("z.json"));
  std::filesystem::remove(HookDirectory() + "/100.json");
  // Now it is the 64th: its server is not there.
  ASSERT_TRUE(Logged("hook file z.json: server /nowhere"));
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("refused")),
              Fails(StatusCode::kUnavailable, testing::Not(HasSubstr("more than 64"))));
  std::filesystem::remove(HookDirectory() + "/z.json");
  ASSERT_TRUE(Logged("hook file z.json is gone"));
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("after")), IsOk());
}

// Two versions of the file name two servers, each of which leaves its mark. A creation that has
// none or both was decided by half a configuration.
TEST_F(HookRowsTest, K04AThousandReplacementsUnderLoadFailNoCallAndAreAlwaysWhole) {
  constexpr int kReplacements = 1000;
  const auto one = Serve("one", {"-env", "ONE=1"});
  const auto two = Serve("two", {"-env", "TWO=1"});
  const std::string versions[] = {
      FileText(Path("one.sock"), kCreatePoint, R"(, "failure-policy": "Fail")"),
      FileText(Path("two.sock"), std::string(kRunPodPoint) + ", " + kCreatePoint,
               R"(, "failure-policy": "Fail", "timeout": "30s")")};
  PutFile("10.json", versions[0]);
  StartNode();
  AwaitServers(1);
  const std::string pod = Ok(Relayed().RunPod(MakeGuaranteedPod("g")));

  std::atomic<bool> end{false};
  std::atomic<int> calls{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> load;
  for (int i = 0; i < 4; ++i) {
    load.emplace_back([&, i] {
      CriClient client = Relayed();
      for (int n = 0; !end; ++n) {
        cri::ContainerConfig config =
            MakeGuaranteedContainer("c" + std::to_string(i) + "-" + std::to_string(n), 1);
        const auto id = client.CreateContainer(pod, MakeGuaranteedPod("g"), config);
        if (!id.ok()) std::printf("%s\n", Describe(id.status()).c_str());
        failed += id.ok() ? 0 : 1;
        if (id.ok() && !client.RemoveContainer(*id).ok()) ++failed;
        ++calls;
      }
    });
  }
  for (int i = 1; i <= kReplacements; ++i) {
    PutFile("10.json", versions[i % 2]);
    // Changes within a few milliseconds count as one, so pauses let both versions come into force
    // sometimes.
    if (i % 21 == 0) std::this_thread::sleep_for(milliseconds(60));
  }
  ASSERT_TRUE(Eventually([&] { return calls > 200; }));
  end = true;
  for (std::thread& thread : load)
    thread.join();
  EXPECT_EQ(failed, 0);
  int ones = 0;
  int twos = 0;
  for (const RecordedCall& call : runtime_.Calls("CreateContainer")) {
    cri::CreateContainerRequest request;
    ASSERT_TRUE(request.ParseFromString(call.messages.at(0)));
    int marks = 0;
    for (const auto& variable : request.config().envs()) {
      ones += variable.key() == "ONE" ? 1 : 0;
      twos += variable.key() == "TWO" ? 1 : 0;
      marks += variable.key() == "ONE" || variable.key() == "TWO" ? 1 : 0;
    }
    EXPECT_EQ(marks, 1);
  }
  EXPECT_GT(ones, 0);
  EXPECT_GT(twos, 0);
}

// How soon is a matter of HookDirectoryWatch's own test: a busy machine may take longer.
TEST_F(HookRowsTest, K05ADeletedFilesServerIsNotAskedAnyMore) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), kRunPodPoint));
  CriClient client = StartNodeWith(1);
  ASSERT_THAT(client.RunPod(MakeGuaranteedPod("one")), IsOk());
  std::filesystem::remove(HookDirectory() + "/10.json");
  ASSERT_TRUE(Logged("hook file 10.json is gone"));
  ASSERT_THAT(client.RunPod(MakeGuaranteedPod("two")), IsOk());
  EXPECT_THAT(Calls("a", "PreRunPodSandbox"), SizeIs(1));
}

TEST_F(HookRowsTest, AnotherConfigurationChangesDirectoryAndSkipKeyWhileItRuns) {
  const auto server = Serve("a", {"-env", "ADDED=1"});
  PutFile("10.json", FileText(Path("a.sock"), std::string(kRunPodPoint) + ", " + kCreatePoint));
  StartRuntime();
  StartDaemon(Flags({}));
  CriClient client = Relayed();
  const std::string early = Ok(client.RunPod(MakeGuaranteedPod("early")));
  const std::string hooks = "{Directory: " + HookDirectory() + ", SkipKey: example.com/skip}";
  ASSERT_THAT(SetConfig("policy: {Active: null}\nhooks: " + hooks), IsOk());
  AwaitServers(1);
  // The pod of before is known, too.
  ASSERT_THAT(
      client.CreateContainer(early, MakeGuaranteedPod("early"), MakeGuaranteedContainer("m", 1)),
      IsOk());
  EXPECT_EQ(Created().envs().rbegin()->key(), "ADDED");
  cri::PodSandboxConfig skipped = MakeGuaranteedPod("skipped");
  (*skipped.mutable_labels())["example.com/skip"] = "true";
  ASSERT_THAT(client.RunPod(skipped), IsOk());
  EXPECT_THAT(Calls("a", "PreRunPodSandbox"), SizeIs(0));

  // The configuration was delivered, so it counts after a restart.
  daemon_->Kill();
  StartDaemon(Flags({}));
  AwaitServers(1);
  CriClient again = Relayed();
  ASSERT_THAT(again.RunPod(MakeGuaranteedPod("hooked")), IsOk());
  EXPECT_THAT(Calls("a", "PreRunPodSandbox"), SizeIs(1));

  ASSERT_THAT(SetConfig("policy: {Active: null}\nhooks: {Directory: disabled}"), IsOk());
  ASSERT_THAT(again.RunPod(MakeGuaranteedPod("free")), IsOk());
  EXPECT_THAT(Calls("a", "PreRunPodSandbox"), SizeIs(1));
  EXPECT_EQ(Ctl({"plugins"}).find("10.json"), std::string::npos);
  EXPECT_THAT(SetConfig("hooks: {Directory: relative}"), testing::Not(IsOk()));
}

TEST_F(HookRowsTest, K16ARuntimeThatComesLateIsServedWithItsHooks) {
  const auto server = Serve("a", {"-env", "ADDED=1"});
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint, R"(, "failure-policy": "Fail")"));
  StartDaemonWithHooks();
  AwaitServers(1);
  CriClient client = Relayed();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("g")),
              Fails(StatusCode::kUnavailable, HasSubstr("runtime.sock")));
  StartRuntime();
  EXPECT_TRUE(Eventually([&] { return client.RunPod(MakeGuaranteedPod("g")).ok(); }));
  const Running pod = Run(client, MakeGuaranteedPod("h"), MakeGuaranteedContainer("main", 1));
  EXPECT_THAT(Created().envs().rbegin()->key(), "ADDED");
  EXPECT_THAT(Asked<hook_api::ContainerResourceHookRequest>("a", "PreCreateContainer"), SizeIs(1));
}

}  // namespace
}  // namespace resmgr::test
