// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "pkg/base/utf8.h"
#include "test/integration/control_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// A running daemon changes its configuration, for an agent, cri-resmgr-ctl and SIGHUP, under
// containers that run on a fake runtime.
class LiveChangesTest : public ControlTest {};

TEST_F(LiveChangesTest, AnAgentsConfigurationTakesRunningContainersOver) {
  StartRuntime();
  StartDaemon(Flags({}));
  CriClient client = Relayed();
  const Running guaranteed =
      Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  EXPECT_THAT(CpusAtRuntime(guaranteed.container), IsEmpty());

  ASSERT_EQ(SetConfig({{"policy", kStatic}}), "");
  // In force when the answer comes.
  const CpuSet own = CpusAtRuntime(guaranteed.container);
  EXPECT_EQ(own.size(), 2);
  EXPECT_EQ(CpusAtRuntime(shared.container).size(), kCpus - 2);
  EXPECT_FALSE(CpusAtRuntime(shared.container).Intersects(own));
  EXPECT_EQ(PolicyInForce(), "static");

  const Running later = Run(client, MakeGuaranteedPod("l"), MakeGuaranteedContainer("main", 3));
  EXPECT_EQ(CpusAtRuntime(later.container).size(), 3);

  ASSERT_EQ(SetConfig({{"policy", "Active: null"}}), "");
  EXPECT_EQ(PolicyInForce(), "null");
  for (const Running& running : {guaranteed, shared, later})
    EXPECT_EQ(CpusAtRuntime(running.container).size(), kCpus) << "let go";

  ASSERT_EQ(SetConfig({{"policy", kStatic}}), "");
  EXPECT_EQ(CpusAtRuntime(guaranteed.container).size(), 2);
  EXPECT_EQ(CpusAtRuntime(later.container).size(), 3);
  EXPECT_EQ(CpusAtRuntime(shared.container).size(), kCpus - 5);
}

TEST_F(LiveChangesTest, ABadConfigurationChangesNothingAndSaysWhy) {
  CriClient client = Started();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const CpuSet before = CpusAtRuntime(running.container);
  EXPECT_THAT(SetConfig({{"polcy", "x"}}), HasSubstr("polcy"));
  EXPECT_THAT(SetConfig({{"policy", "Active: static\nAvailableResources: {CPU: 'cpuset:99'}"}}),
              HasSubstr("99"));
  EXPECT_THAT(SetConfig({{"policy", "Active: [static"}}), HasSubstr("agent key policy:"));
  EXPECT_THAT(SetConfig({{"dump", "File: /no/such/directory/dump"}}), HasSubstr("/no/such"));
  EXPECT_EQ(PolicyInForce(), "static");
  EXPECT_EQ(CpusAtRuntime(running.container), before);
  EXPECT_EQ(Ctl({"status", "-o", "json"}).json().value("config", ""), "the command line");
}

TEST_F(LiveChangesTest, AllMistakesOfADeliveryAreTold) {
  StartRuntime();
  StartDaemon(Flags({}));
  EXPECT_THAT(SetConfig({{"policy", "Active: sttic\nReservedResources: {CPU: 5K}"},
                         {"logger", "Level: [loud"},
                         {"dmp", "{}"}}),
              AllOf(HasSubstr("agent key policy:1: policy.Active"),
                    HasSubstr("agent key policy:2: policy.ReservedResources.CPU"),
                    HasSubstr("agent key logger:"), HasSubstr("agent key dmp:1: dmp")));
}

TEST_F(LiveChangesTest, WarnsOfWhatIsValidButWithoutEffect) {
  StartRuntime();
  StartDaemon(Flags({"-reserved-resources", "CPU=cpuset:0", "-logger-level", "info"}));
  const std::string file =
      WriteFile("next.yaml",
                "policy:\n  Active: static\n  ReservedResources: {CPU: '1'}\n"
                "  AvailableResources: {CPU: 'cpuset:0'}\nlogger: {Level: warn}\n");
  for (const char* command : {"check", "set"}) {
    EXPECT_THAT(Ctl({"config", command, file}).out,
                AllOf(HasSubstr("warning: no container can get exclusive CPUs"),
                      HasSubstr("warning: policy.ReservedResources has no effect"),
                      HasSubstr("warning: logger.Level has no effect")));
  }
  EXPECT_THAT(Ctl({"config", "show"}).out, HasSubstr("full-pcpus-only: false"));
}

TEST_F(LiveChangesTest, TheConfigurationThatIsPrintedIsTheOneThatWasDelivered) {
  StartRuntime();
  const std::vector<std::string> flags = Flags({});
  StartDaemon(flags);
  ASSERT_EQ(SetConfig({{"policy", kStatic}}), "");
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(Path("state/config")); }));
  std::vector<std::string> print = {Program("cri-resmgr"), "-print-config"};
  print.insert(print.end(), flags.begin(), flags.end());
  const auto process = ChildProcess::Start(print, Path("printed"));
  ASSERT_THAT(process, IsOk());
  EXPECT_EQ((*process)->Wait(kPatience).value_or(-1), 0);
  EXPECT_THAT(TextOf(Path("printed")), AllOf(HasSubstr("Active: static"), HasSubstr("# From ")));
}

TEST_F(LiveChangesTest, AMoveThatTheRuntimeRefusesBringsTheFormerConfigurationBack) {
  StartRuntime();
  StartDaemon(Flags({}));
  CriClient client = Relayed();
  const Running one = Run(client, MakeBestEffortPod("one"), MakeBestEffortContainer("main"));
  Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(SetConfig({{"policy", kStatic}}), "");
  const CpuSet before = CpusAtRuntime(one.container);
  runtime_.Script("UpdateContainerResources",
                  {.times = 1, .error = grpc::Status(grpc::StatusCode::UNKNOWN, "disk on fire")});
  const std::string error = SetConfig({{"policy",
                                        "Active: static\nReservedResources: {CPU: 1}\n"
                                        "AvailableResources: {CPU: 'cpuset:0-4'}"}});
  EXPECT_THAT(error, HasSubstr("disk on fire"));
  EXPECT_THAT(error, HasSubstr("default/"));
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(one.container) == before; }));
  EXPECT_THAT(Ctl({"config", "show"}).out, testing::Not(HasSubstr("0-4")));
}

TEST_F(LiveChangesTest, ACheckTellsTheMovesAndMakesNone) {
  CriClient client = Started();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const CpuSet before = CpusAtRuntime(shared.container);
  const std::string file =
      WriteFile("next.yaml", "policy: {Active: static, AvailableResources: {CPU: 'cpuset:0-3'}}");
  const Json preview = Ctl({"config", "check", file, "-o", "json"}).json();
  ASSERT_EQ(preview.at("moves").size(), 1u);
  EXPECT_EQ(preview.at("moves")[0].at("container"), "default/s/main");
  EXPECT_EQ(preview.at("moves")[0].at("to").at("cpus"), "0-3");
  EXPECT_EQ(CpusAtRuntime(shared.container), before);

  const Shown set = Ctl({"config", "set", file});
  EXPECT_EQ(set.exit_code, 0) << set.err;
  EXPECT_EQ(CpusAtRuntime(shared.container).ToString(), "0-3");

  WriteFile("next.yaml", "policy: {Active: statc}");
  const Shown wrong = Ctl({"config", "set", file});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("next.yaml:1"));
}

TEST_F(LiveChangesTest, TheHistoryHasWhatWasDoneAndWhatWasRefused) {
  CriClient client = Started();
  Run(client, MakeGuaranteedPod("dsp"), MakeGuaranteedContainer("main", 2));
  const auto pod = Ok(client.RunPod(MakeGuaranteedPod("large")));
  const auto refused =
      client.CreateContainer(pod, MakeGuaranteedPod("large"), MakeGuaranteedContainer("main", 20));
  ASSERT_FALSE(refused.ok());
  const std::string message(Message(refused.status()));
  EXPECT_THAT(message, testing::StartsWith("cri-resmgr (static): needs 20 exclusive CPUs, "));
  EXPECT_THAT(message, HasSubstr("CPU 0 reserved"));
  EXPECT_THAT(message, HasSubstr("held by default/dsp/main"));
  EXPECT_THAT(message, HasSubstr("container default/large/main: change what its pod asks for"));

  const Json history = Ctl({"history", "-o", "json"}).json();
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history[0].at("event"), "placed");
  EXPECT_EQ(history[0].at("container"), "default/dsp/main");
  EXPECT_EQ(history[0].at("cpus"), history[0].at("exclusive"));
  EXPECT_EQ(history[1].at("event"), "refused");
  EXPECT_EQ(history[1].at("container"), "default/large/main");
  EXPECT_THAT(history[1].at("error").get<std::string>(), HasSubstr("held by default/dsp/main"));
  EXPECT_EQ(Ctl({"history", "-n", "1", "-o", "json"}).json().size(), 1u);
  EXPECT_THAT(Ctl({"history"}).out,
              AllOf(HasSubstr("refused"), HasSubstr("needs 20 exclusive CPUs")));
  EXPECT_EQ(Ctl({"history", "-n", "-1"}).exit_code, 1);

  const Json explained = Ctl({"explain", "large/main", "-o", "json"}).json();
  ASSERT_EQ(explained.size(), 1u);
  EXPECT_EQ(explained[0].at("state"), "refused");
  EXPECT_THAT(Ctl({"explain", "large/main"}).out, HasSubstr("needs 20 exclusive CPUs"));
  EXPECT_TRUE(Logged("placed default/dsp/main: CPUs "));
  EXPECT_TRUE(Logged("refused default/large/main: needs 20 exclusive CPUs"));
}

TEST_F(LiveChangesTest, LossesOfExclusiveCpusAreShownFirst) {
  StartRuntime();
  StartDaemon(Flags({}));
  ASSERT_EQ(SetConfig({{"policy", kStatic}}), "");
  CriClient client = Relayed();
  const Running dsp = Run(client, MakeGuaranteedPod("dsp"), MakeGuaranteedContainer("main", 2));
  const std::string own = CpusAtRuntime(dsp.container).ToString();
  const std::string file = WriteFile("next.yaml", "policy: {Active: 'null'}");

  const Shown checked = Ctl({"config", "check", file});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, testing::StartsWith("these containers lose exclusive CPUs"));
  EXPECT_LT(checked.out.find("default/dsp/main"), checked.out.find("valid: policy null"));

  const Shown refused = Ctl({"config", "set", file});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("default/dsp/main"), HasSubstr("-force")));
  EXPECT_EQ(PolicyInForce(), "static");
  EXPECT_EQ(CpusAtRuntime(dsp.container).ToString(), own);

  EXPECT_EQ(Ctl({"config", "set", "-force", file}).exit_code, 0);
  EXPECT_EQ(PolicyInForce(), "null");
  EXPECT_NE(CpusAtRuntime(dsp.container).ToString(), own);
  EXPECT_TRUE(Logged("takes exclusive CPUs away: default/dsp/main"));
}

// A daemon that has just started, or taken over, has not listed the runtime's containers yet.
TEST_F(LiveChangesTest, LossesAreShownAlsoDuringTheFirstLookAtTheRuntime) {
  StartRuntime();
  StartDaemon(Flags({}));
  ASSERT_EQ(SetConfig({{"policy", kStatic}}), "");
  CriClient client = Relayed();
  Run(client, MakeGuaranteedPod("dsp"), MakeGuaranteedContainer("main", 2));
  const std::string file = WriteFile("next.yaml", "policy: {Active: 'null'}");
  DuringFirstLook(Flags({}), [&](const std::function<bool()>& in_time) {
    auto set = std::async(std::launch::async, [&] { return Ctl({"config", "set", file}); });
    const bool waits = set.wait_for(milliseconds(100)) == std::future_status::timeout;
    runtime_.Release("ListPodSandbox");
    const Shown refused = set.get();
    if (!in_time()) {
      // It may be in force.
      EXPECT_EQ(SetConfig({{"policy", kStatic}}), "");
      return false;
    }
    EXPECT_TRUE(waits);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("default/dsp/main"));
    EXPECT_EQ(PolicyInForce(), "static");
    return true;
  });
}

TEST_F(LiveChangesTest, AnAgentsConfigurationTakesExclusiveCpusWithAWarning) {
  StartRuntime();
  StartDaemon(Flags({}));
  ASSERT_EQ(SetConfig({{"policy", kStatic}}), "");
  CriClient client = Relayed();
  Run(client, MakeGuaranteedPod("dsp"), MakeGuaranteedContainer("main", 2));
  EXPECT_EQ(SetConfig({{"policy", "Active: 'null'"}}), "");
  EXPECT_EQ(PolicyInForce(), "null");
  EXPECT_TRUE(Logged("takes exclusive CPUs away: default/dsp/main"));
}

TEST_F(LiveChangesTest, AForcedConfigurationIsNotReplaced) {
  StartRuntime();
  const std::string file = WriteFile("forced.yaml", "policy: {Active: static}");
  StartDaemon(Flags({"-force-config", file}));
  EXPECT_THAT(SetConfig({{"policy", "Active: null"}}), HasSubstr("-force-config"));
  EXPECT_EQ(PolicyInForce(), "static");
}

TEST_F(LiveChangesTest, AnotherPolicyThanTheCommandLinesIsRefused) {
  StartRuntime();
  StartDaemon(Flags({"-policy", "static"}));
  EXPECT_THAT(SetConfig({{"policy", "Active: null"}}),
              AllOf(HasSubstr("agent key policy:1: policy.Active"), HasSubstr("-policy static")));
  const std::string file = WriteFile("next.yaml", "policy:\n  Active: null\n");
  for (const char* command : {"check", "set"}) {
    const Shown shown = Ctl({"config", command, file});
    EXPECT_EQ(shown.exit_code, 1) << command;
    EXPECT_THAT(shown.err, AllOf(HasSubstr("next.yaml:2"), HasSubstr("-policy static")));
  }
  EXPECT_EQ(PolicyInForce(), "static");
  EXPECT_EQ(SetConfig({{"policy", "static: {Options: {full-pcpus-only: false}}"}}), "");
  EXPECT_EQ(Ctl({"status", "-o", "json"}).json().value("config", ""), "agent");
}

TEST_F(LiveChangesTest, ARefusedConfigurationLeavesEveryFileAsItWas) {
  StartRuntime();
  const std::string file = WriteFile("node.yaml",
                                     "policy: {Active: static}\n"
                                     "dump: {Config: 'reset,name:Version', File: " +
                                         Path("calls") + "}\n");
  StartDaemon(Flags({"-config", file}));
  CriClient client = Relayed();
  const Running one = Run(client, MakeBestEffortPod("one"), MakeBestEffortContainer("main"));
  ASSERT_TRUE(client.Call(kVersion, {""}).status.ok());
  // Another thread writes the line; a call that passes unread has no other.
  ASSERT_TRUE(Eventually([&] {
    const std::string text = TextOf(Path("calls"));
    return text.find("REQUEST Version") != std::string::npos && text.ends_with('\n');
  })) << TextOf(Path("calls"));
  const std::string before = TextOf(Path("calls"));
  const std::string precious = WriteFile("precious", "precious");
  const std::string other = "dump: {Config: 'record:" + Path("state/dump/recording") +
                            "', File: " + Path("state/dump/calls") + "}\n";

  EXPECT_THAT(SetConfig({{"dump", "File: " + precious}}), HasSubstr("-dump-dir"));
  runtime_.Script("UpdateContainerResources",
                  {.times = 1, .error = grpc::Status(grpc::StatusCode::UNKNOWN, "disk on fire")});
  const std::string next = WriteFile(
      "next.yaml", "policy: {Active: static, AvailableResources: {CPU: 'cpuset:0-4'}}\n" + other);
  const Shown refused = Ctl({"config", "set", next});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("disk on fire"));
  EXPECT_EQ(TextOf(Path("calls")), before);
  EXPECT_EQ(TextOf(precious), "precious");
  EXPECT_FALSE(std::filesystem::exists(Path("state/dump")));

  EXPECT_EQ(Ctl({"config", "set", next}).exit_code, 0);
  EXPECT_TRUE(Eventually([&] {
    return std::filesystem::exists(Path("state/dump/calls")) &&
           std::filesystem::exists(Path("state/dump/recording"));
  }));
  EXPECT_EQ(TextOf(Path("calls")), before) << "what was written stays";
}

TEST_F(LiveChangesTest, ACheckTriesTheFilesOfTheDump) {
  StartRuntime();
  StartDaemon(Flags({}));
  std::filesystem::create_directories(Path("state/dump/a-directory"));
  std::filesystem::create_symlink(Path("else"), Path("state/dump/link"));
  for (const char* name : {"a-directory", "link", "no/such"}) {
    const std::string file =
        WriteFile("next.yaml", "dump:\n  File: " + Path("state/dump/") + name + "\n");
    const Shown checked = Ctl({"config", "check", file});
    const Shown set = Ctl({"config", "set", file});
    EXPECT_EQ(checked.exit_code, 1) << name;
    EXPECT_EQ(set.exit_code, 1) << name;
    EXPECT_EQ(checked.err, set.err);
    EXPECT_THAT(set.err, HasSubstr(name));
  }
}

TEST_F(LiveChangesTest, AKeptDumpFileThatCannotBeOpenedIsAWarning) {
  StartRuntime();
  std::filesystem::create_directories(Path("state"));
  WriteFile("state/dump", "a file where the directory should be");
  const std::string precious = WriteFile("precious", "precious");
  for (const std::string& file : {Path("state/dump/calls"), precious}) {
    WriteFile("state/config", R"({"version":1,"name":"agent","data":{"policy":"Active: static",)"
                              R"("dump":"File: )" +
                                  file + R"("}})");
    StartDaemon(Flags({}));
    EXPECT_EQ(PolicyInForce(), "static");
    EXPECT_TRUE(Logged(file)) << daemon_->Log();
    daemon_->Kill();
  }
  EXPECT_EQ(TextOf(precious), "precious");
}

TEST_F(LiveChangesTest, SighupReadsTheFileAgain) {
  StartRuntime();
  const std::string file = WriteFile("node.yaml", "policy: {Active: null}");
  StartDaemon(Flags({"-config", file}));
  WriteFile("node.yaml", "policy: {Active: static}");
  ::kill(pid(), SIGHUP);
  EXPECT_TRUE(Eventually([&] { return PolicyInForce() == "static"; }));
  WriteFile("node.yaml", "policy: {Active: sttic}");
  ::kill(pid(), SIGHUP);
  EXPECT_TRUE(Logged("the configuration is unchanged"));
  EXPECT_EQ(PolicyInForce(), "static");
}

// The reason of a rejection reaches the agent for any configuration.

// The limit of the text that the agent writes into an annotation.
constexpr size_t kMostOfAnError = 8192;

class ConfigErrorsTest : public ControlTest {};

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += text;
  return all;
}

TEST_F(ConfigErrorsTest, AreUtf8AndBounded) {
  StartBoth();
  // Characters of two, three and four bytes, and one that is escaped as twelve, cut at any place.
  for (const std::string character : {"\u00e4", "\u20ac", "\U0001f600", "\u202e"}) {
    for (int shift = 0; shift < 4; ++shift) {
      const std::string text =
          std::string(static_cast<size_t>(shift), 'x') + Repeated(character, 5000);
      std::string keys;
      for (int i = 0; i < 100; ++i)
        keys += text.substr(0, static_cast<size_t>(shift)) + Repeated(character, 100) +
                std::to_string(i) + ": 1\n";
      const std::vector<std::map<std::string, std::string>> cases = {
          {{text, "x"}},
          {{text, "[" + text}},
          {{"policy", "[" + text}},
          {{"policy", text + ": 1"}},
          {{"policy", keys}},
          {{"policy", "Active: " + text}},
          {{"policy", "Active: static\nReservedResources: {" + text + ": 1}"}},
          {{"policy", "Active: static\nReservedResources: {CPU: " + text + "}"}},
          {{"policy", "Active: static\nReservedResources: {CPU: 'cpuset:" + text + "'}"}},
          {{"policy", "Active: !" + text + " static"}},
          {{"policy", "Active: *" + text}},
          {{"policy." + text + "." + text, "1"}},
          {{"dump", "File: /" + text}},
          {{"dump", "Config: 'full:" + text + "[('"}},
          {{"logger", "Level: " + text}},
          {{"logger", "Debug: {" + text + ": 1}"}},
          {{"policy", "Active: static\nReservedResources: {CPU: 1}\nstatic: {" + text + ": 1}"}},
          {{"policy",
            "Active: topology-aware\ntopology-aware: {" + Repeated(character, 100) + ": 1}"}},
      };
      for (size_t i = 0; i < cases.size(); ++i) {
        const std::string error = SetConfig(cases[i]);
        EXPECT_NE(error, "") << i;
        EXPECT_THAT(error, testing::Not(testing::StartsWith("no answer"))) << i;
        EXPECT_TRUE(IsUtf8(error)) << i << ": " << error;
        EXPECT_LE(error.size(), kMostOfAnError) << i << ": " << error.substr(0, 200);
      }
    }
  }
}

TEST_F(ConfigErrorsTest, WhatIsNoUtf8IsRefusedWithAReason) {
  StartBoth();
  for (const std::string text : {"\xff", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80"}) {
    EXPECT_THAT(SetConfig({{"policy", "Active: " + text}}), testing::HasSubstr("UTF-8"));
    EXPECT_THAT(SetConfig({{text, "Active: static"}}), testing::HasSubstr("UTF-8"));
  }
}

// The use of an earlier daemon's delivered configuration by a daemon that starts.
class KeptConfigTest : public ControlTest {};

TEST_F(KeptConfigTest, WhatWasDeliveredIsInForceAfterARestart) {
  StartRuntime();
  const std::string file = WriteFile("node.yaml", "policy: {Active: null}");
  StartDaemon(Flags({"-config", file}));
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(SetConfig({{"policy", kStatic}}), "");
  const CpuSet before = CpusAtRuntime(running.container);
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(Path("state/config")); }));
  daemon_->Kill();
  StartDaemon(Flags({"-config", file}));
  EXPECT_EQ(PolicyInForce(), "static");
  EXPECT_EQ(Ctl({"status", "-o", "json"}).json().value("config", ""), "agent");
  EXPECT_TRUE(Eventually([&] { return Ctl({"containers", "-o", "json"}).json().size() == 1; }));
  EXPECT_EQ(CpusAtRuntime(running.container), before);

  daemon_->Kill();
  StartDaemon(Flags({"-force-config", file}));
  EXPECT_EQ(PolicyInForce(), "null");
}

TEST_F(KeptConfigTest, AKeptConfigurationThatNoLongerFitsIsLeftAside) {
  StartRuntime();
  std::filesystem::create_directories(Path("state"));
  WriteFile("state/config", R"({"version":1,"name":"agent","data":{"policy":"Active: gone"}})");
  StartDaemon(Flags({"-policy", "null"}));
  EXPECT_EQ(PolicyInForce(), "null");
  EXPECT_TRUE(Logged("earlier run is ignored"));
  daemon_->Kill();
  WriteFile("state/config", R"({"version":1,"name":"agent","data":{"policy":"Active: static"}})");
  StartDaemon(Flags({"-policy", "null"}));
  EXPECT_EQ(PolicyInForce(), "null");
  EXPECT_TRUE(Logged("has no effect, since -policy says null"));
  daemon_->Kill();
  WriteFile("state/config", "{");
  StartDaemon(Flags({}));
  EXPECT_TRUE(Logged("cannot be read"));
}

TEST_F(KeptConfigTest, ADaemonStartsWithDamagedState) {
  CriClient client = Started();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const CpuSet before = CpusAtRuntime(running.container);
  EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(Path("state/state/state")); }));
  daemon_->Kill();
  WriteFile("state/state/state", "rubbish");
  StartDaemon(StaticFlags());
  EXPECT_TRUE(Logged("not a state file"));
  EXPECT_TRUE(Eventually([&] { return Ctl({"containers", "-o", "json"}).json().size() == 1; }));
  EXPECT_EQ(CpusAtRuntime(running.container), before);
}

TEST_F(KeptConfigTest, CallsGoOnWithAFullDisk) {
  StartRuntime();
  WriteFile("state", "a file where the directory should be");
  StartDaemon(StaticFlags());
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  EXPECT_EQ(CpusAtRuntime(running.container).size(), 2);
  EXPECT_TRUE(Logged("is not saved"));
}

}  // namespace
}  // namespace resmgr::test
