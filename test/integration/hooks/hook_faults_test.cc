// SPDX-License-Identifier: Apache-2.0
// Rows about servers that hang, die or are not there, and about calls that fail.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/hooks/hook_rows_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

// Beside a server's time, on a busy machine; less than the time of a server that is waited for.
constexpr seconds kMargin{15};

TEST_F(HookRowsTest, K07AServerThatHangsIsPassedOverWithinItsTime) {
  const auto server = Serve("a", {"-hang", "PreCreateContainer"});
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint));
  CriClient client = StartNodeWith(1);
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const auto begin = Clock::now();
  EXPECT_THAT(
      client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1)),
      IsOk());
  EXPECT_GE(Clock::now() - begin, seconds(2));
  EXPECT_LT(Clock::now() - begin, seconds(2) + kMargin);
}

TEST_F(HookRowsTest, AServerThatHangsDelaysOnlyItsHooks) {
  const auto server = Serve("a", {"-hang", "PreCreateContainer"});
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint, R"(, "timeout": "20s")"));
  CriClient client = StartNodeWith(1);
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const auto held =
      client.Start("CreateContainer",
                   CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1)));
  ASSERT_TRUE(AskedWithin("a", "PreCreateContainer", 1));
  const auto begin = Clock::now();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("other")), IsOk());
  EXPECT_THAT(client.StopPod(pod), IsOk());
  cri::ListContainersResponse list;
  EXPECT_TRUE(client.Unary("ListContainers", cri::ListContainersRequest(), &list).ok());
  EXPECT_LT(Clock::now() - begin, kMargin);
  EXPECT_FALSE(held->Wait(milliseconds(0)));
}

TEST_F(HookRowsTest, K08AServerThatHangsAndMayNotFailRefusesAndTheRuntimeIsNotAsked) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint,
                              R"(, "failure-policy": "Fail", "timeout": "300ms")"));
  CriClient client = StartNodeWith(1);
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  // The stopped server does not even end its connection.
  Stop(*server);
  EXPECT_THAT(
      client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1)),
      Fails(StatusCode::kDeadlineExceeded,
            AllOf(HasSubstr("PreCreateContainer"), HasSubstr("10.json"))));
  EXPECT_THAT(runtime_.Calls("CreateContainer"), SizeIs(0));
}

TEST_F(HookRowsTest, K09WithoutTheServerPodsAreRefusedUnlessTheyAreToBeSkipped) {
  PutFile("10.json", FileText(Path("nowhere.sock"), kRunPodPoint, R"(, "failure-policy": "Fail")"));
  StartNode();
  CriClient client = Relayed();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("g")),
              Fails(StatusCode::kUnavailable, HasSubstr("PreRunPodSandbox of 10.json")));
  cri::PodSandboxConfig skipped = MakeGuaranteedPod("s");
  (*skipped.mutable_labels())["runtimeproxy.koordinator.sh/skip-hookserver"] = "true";
  EXPECT_THAT(client.RunPod(skipped), IsOk());
}

TEST_F(HookRowsTest, K10AServerThatWasKilledIsAskedASecondAfterItIsBack) {
  auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), kRunPodPoint, R"(, "failure-policy": "Fail")"));
  CriClient client = StartNodeWith(1);
  ASSERT_THAT(client.RunPod(MakeGuaranteedPod("one")), IsOk());
  server.reset();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("two")),
              Fails(StatusCode::kUnavailable, HasSubstr("PreRunPodSandbox")));
  // Long enough for pauses that grow without a bound.
  std::this_thread::sleep_for(seconds(4));
  server = Serve("a");
  std::this_thread::sleep_for(seconds(1));
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("three")), IsOk());
}

TEST_F(HookRowsTest, K17OddCreationsEndAsWithoutHooks) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), kCreatePoint, R"(, "failure-policy": "Fail")"));
  CriClient client = StartNodeWith(1);
  CriClient direct = Direct();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));

  cri::CreateContainerRequest no_linux =
      CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  no_linux.mutable_config()->clear_linux();
  cri::CreateContainerRequest no_sandbox = no_linux;
  no_sandbox.mutable_config()->mutable_metadata()->set_name("second");
  no_sandbox.clear_sandbox_config();
  cri::CreateContainerRequest no_pod = no_linux;
  no_pod.set_pod_sandbox_id("unknown");
  cri::CreateContainerRequest nothing;
  for (const auto* request : {&no_linux, &no_sandbox, &no_pod, &nothing}) {
    SCOPED_TRACE(request->ShortDebugString());
    cri::CreateContainerResponse relayed_reply;
    const grpc::Status relayed = client.Unary("CreateContainer", *request, &relayed_reply);
    if (relayed.ok()) {
      EXPECT_THAT(direct.RemoveContainer(relayed_reply.container_id()), IsOk());
    }
    cri::CreateContainerResponse direct_reply;
    const grpc::Status own = direct.Unary("CreateContainer", *request, &direct_reply);
    if (own.ok()) {
      EXPECT_THAT(direct.RemoveContainer(direct_reply.container_id()), IsOk());
    }
    EXPECT_EQ(relayed.error_code(), own.error_code());
    EXPECT_EQ(relayed.error_message(), own.error_message());
  }
  // Fields that the client left out are still left out.
  EXPECT_FALSE(Created().has_linux());
  EXPECT_TRUE(daemon_->process().Running());
}

TEST_F(HookRowsTest, K18AStopThatFailsIsToldWhenItSucceedsAndOnce) {
  const auto server = Serve("a");
  PutFile("10.json", FileText(Path("a.sock"), "\"PostStopContainer\""));
  CriClient client = StartNodeWith(1);
  const Running pod = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  runtime_.Script("StopContainer", {.times = 1, .error = grpc::Status(grpc::INTERNAL, "no")});
  EXPECT_FALSE(client.StopContainer(pod.container).ok());
  EXPECT_THAT(client.StopContainer(pod.container), IsOk());
  EXPECT_THAT(client.StopContainer(pod.container), IsOk());
  ASSERT_TRUE(AskedWithin("a", "PostStopContainer", 1));
  std::this_thread::sleep_for(milliseconds(300));
  const auto told = Asked<hook_api::ContainerResourceHookRequest>("a", "PostStopContainer");
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].container_meta().id(), pod.container);
  EXPECT_EQ(told[0].pod_meta().name(), "g");
}

TEST_F(HookRowsTest, K19ContainersThatAreRemovedAreForgotten) {
  const int containers = SanitizedPrograms() ? 1'000 : 4'000;
  constexpr int64_t kMostGrowth = int64_t{4} << 10;  // KiB; kept, they would take some 16 MiB
  PutFile("10.json", FileText(Path("nowhere.sock"), "\"PostStopContainer\""));
  StartNode();
  CriClient client = Relayed();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::ContainerConfig config = MakeGuaranteedContainer("main", 1);
  (*config.mutable_annotations())["large"] = std::string(2048, 'x');
  int64_t early = 0;
  for (int i = 0; i < containers; ++i) {
    config.mutable_metadata()->set_attempt(static_cast<uint32_t>(i));
    const std::string id = Ok(client.CreateContainer(pod, MakeGuaranteedPod("g"), config));
    if (i % 500 == 0) {
      runtime_.ForgetCalls();
      EXPECT_EQ(KnownContainers(), 1u) << i;
    }
    ASSERT_THAT(client.RemoveContainer(id), IsOk());
    if (i == containers / 10) early = ProcStatus("VmRSS:");
  }
  EXPECT_EQ(KnownContainers(), 0u);
  // A sanitizer keeps what was freed.
  if (!SanitizedPrograms()) {
    EXPECT_LT(ProcStatus("VmRSS:") - early, kMostGrowth);
  }
}

// Rows about the hook directory and the start, with servers that are processes.

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

  // The configuration was delivered, so it counts after a restart. It is in force before it is on
  // the disk.
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(Path("state/config")); }));
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
