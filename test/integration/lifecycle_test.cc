// SPDX-License-Identifier: Apache-2.0
// The daemon as a process: its socket, its end, its options that only print, its exit codes.
#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "test/integration/daemon_fixture.h"
#include "test/support/programs/programs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class LifecycleTest : public DaemonTest {
 protected:
  struct Outcome {
    int code = -1;
    std::string output;
  };
  // Runs the program with these flags to its end.
  Outcome RunToEnd(std::vector<std::string> flags) {
    const std::string log = Path("run-" + std::to_string(runs_++) + ".log");
    flags.insert(flags.begin(), Program("cri-resmgr"));
    auto process = ChildProcess::Start(flags, log);
    EXPECT_THAT(process, IsOk());
    if (!process.ok()) return {};
    const auto code = (*process)->Wait(kPatience);
    EXPECT_THAT(code, IsOk());
    return {code.value_or(-1), TextOf(log)};
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }

  int runs_ = 0;
};

TEST_F(LifecycleTest, SecondInstanceDoesNotStealTheSocket) {
  CriClient client = Started();
  ASSERT_TRUE(client.Call(kVersion, {""}).status.ok());
  const Outcome second = RunToEnd(StaticFlags());
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.output, HasSubstr(RelaySocket()));
  EXPECT_TRUE(client.Call(kVersion, {""}).status.ok());
  EXPECT_TRUE(Relayed().Call(kVersion, {""}).status.ok()) << "new clients still reach the first";
}

TEST_F(LifecycleTest, SecondInstanceLeavesTheFilesOfTheFirstAlone) {
  StartRuntime();
  const std::string dump = Path("dump");
  const std::string record = Path("record");
  const std::vector<std::string> flags =
      StaticFlags({"-dump", "reset,full:.*", "-dump-file", dump, "-dump", "record:" + record});
  StartDaemon(flags);
  CriClient client = Relayed();
  ASSERT_THAT(client.RunPod(MakeGuaranteedPod("a")), IsOk());
  const auto has = [](const std::string& file, std::string_view text) {
    return Eventually([&] { return TextOf(file).find(text) != std::string::npos; });
  };
  ASSERT_TRUE(has(dump, "RunPodSandbox") && has(record, "RunPodSandbox"));
  EXPECT_EQ(RunToEnd(flags).code, 2);
  EXPECT_TRUE(has(dump, "RunPodSandbox") && has(record, "RunPodSandbox"));
}

TEST_F(LifecycleTest, WarnsWhereAnotherInstanceKeepsItsState) {
  StartBoth();
  const auto first = std::move(daemon_);
  StartDaemon(StaticFlags({"-relay-socket", Path("other.sock"), "-config-socket", "disabled",
                           "-admin-socket", "disabled"}));
  EXPECT_TRUE(Logged("another process uses"));
}

TEST_F(LifecycleTest, ShowsDebugMessagesFromOneSignalToTheNext) {
  StartRuntime();
  StartDaemon(StaticFlags({"-logger-level", "info"}));
  daemon_->process().Signal(SIGUSR1);
  EXPECT_TRUE(Logged("debug messages are on"));
  daemon_->process().Signal(SIGUSR1);
  EXPECT_TRUE(Logged("debug messages are as configured"));
  EXPECT_TRUE(Relayed().Call(kVersion, {""}).status.ok());
}

TEST_F(LifecycleTest, DebugMessagesOutlastAConfiguration) {
  StartRuntime();
  const std::string file = Write("node.yaml", "logger: {Level: warn}");
  StartDaemon(StaticFlags({"-config", file}));
  daemon_->process().Signal(SIGUSR1);
  EXPECT_TRUE(Logged("debug messages are on"));
  daemon_->process().Signal(SIGHUP);
  EXPECT_TRUE(Logged("is in force")) << "an info message";
}

TEST_F(LifecycleTest, OutputThatCannotBeWrittenIsAnError) {
  // Shorter and longer than a buffer of the C library.
  for (const char* const words :
       {"cri-resmgr -version", "cri-resmgr -print-config", "cri-resmgr -help",
        "cri-resmgr -print-schema", "cri-resmgr -print-config-page", "cri-resmgr -list-policies",
        "cri-resmgr-agent -help", "cri-resmgr-agent -version", "cri-resmgr-webhook -help",
        "cri-resmgr-webhook -help=man", "cri-resmgr-webhook -version", "cri-resmgr-ctl -help"}) {
    SCOPED_TRACE(words);
    const std::string_view line = words;
    const size_t space = line.find(' ');
    const std::string command =
        fmt::format("{} {} >/dev/full", Program(line.substr(0, space)), line.substr(space + 1));
    const auto process = Must(ChildProcess::Start({"/bin/sh", "-c", command}, Path("full.log")));
    EXPECT_EQ(process->Wait(kPatience).value_or(-1), 2);
    EXPECT_THAT(TextOf(Path("full.log")), HasSubstr("the output cannot be written"));
  }
}

TEST_F(LifecycleTest, SocketOfADeadInstanceIsReplaced) {
  StartBoth();
  daemon_->Kill();
  ASSERT_TRUE(std::filesystem::exists(RelaySocket()));
  StartDaemon(StaticFlags());
  EXPECT_TRUE(Relayed().Call(kVersion, {""}).status.ok());
}

TEST_F(LifecycleTest, FileInPlaceOfTheSocketIsKept) {
  Write("relay.sock", "precious");
  EXPECT_EQ(RunToEnd(StaticFlags()).code, 2);
  EXPECT_EQ(TextOf(RelaySocket()), "precious");
}

TEST_F(LifecycleTest, TerminationLetsCallsInFlightFinish) {
  CriClient client = Started();
  runtime_.Script("ListContainerStats", {.hold = true});
  runtime_.Script("CreateContainer", {.hold = true});
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerRequest create;
  create.set_pod_sandbox_id(pod);
  *create.mutable_config() = MakeGuaranteedContainer("main", 2);
  *create.mutable_sandbox_config() = MakeGuaranteedPod("g");
  const auto list = client.Start("ListContainerStats", cri::ListContainerStatsRequest());
  const auto created = client.Start("CreateContainer", create);
  ASSERT_TRUE(runtime_.WaitForHeld("ListContainerStats", 1));
  ASSERT_TRUE(runtime_.WaitForHeld("CreateContainer", 1));

  daemon_->process().Signal(SIGTERM);
  // New calls are refused, on the connection that stands and on others.
  EXPECT_TRUE(Eventually([&] {
    return client.Call(kVersion, {""}).status.error_code() == grpc::StatusCode::UNAVAILABLE;
  }));
  EXPECT_EQ(Relayed().Call(kVersion, {""}).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(daemon_->process().Running());

  runtime_.Release("ListContainerStats");
  runtime_.Release("CreateContainer");
  for (PendingCall* call : {list.get(), created.get()}) {
    const auto result = call->Wait(kPatience);
    ASSERT_TRUE(result.has_value());
    EXPECT_TRUE(result->status.ok()) << result->status.error_message();
  }
  const auto code = Must(daemon_->process().Wait(kPatience));
  EXPECT_EQ(code, 0);
  EXPECT_FALSE(std::filesystem::exists(RelaySocket()));
}

TEST_F(LifecycleTest, TerminationWithoutCallsIsImmediate) {
  CriClient client = Started();
  ASSERT_TRUE(client.Call(kVersion, {""}).status.ok());
  daemon_->process().Signal(SIGTERM);
  const auto code = Must(daemon_->process().Wait(kAtOnce));
  EXPECT_EQ(code, 0);
}

TEST_F(LifecycleTest, TerminationAbandonsACallOnTheSecondSignal) {
  CriClient client = Started();
  runtime_.Script("ListContainers", {.hold = true});
  const auto call = client.Start("ListContainers", cri::ListContainersRequest());
  ASSERT_TRUE(runtime_.WaitForHeld("ListContainers", 1));
  daemon_->process().Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] {
    return client.Call(kVersion, {""}).status.error_code() == grpc::StatusCode::UNAVAILABLE;
  }));
  daemon_->process().Signal(SIGTERM);
  EXPECT_THAT(daemon_->process().Wait(kAtOnce), IsOk());
  const auto result = call->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(LifecycleTest, ListsPolicies) {
  const Outcome outcome = RunToEnd({"-list-policies"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("null"), HasSubstr("static")));
}

TEST_F(LifecycleTest, PrintsVersionAndHelp) {
  EXPECT_EQ(RunToEnd({"-version"}).code, 0);
  const Outcome help = RunToEnd({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, AllOf(HasSubstr("relay-socket"), HasSubstr("reserved-resources"),
                                 HasSubstr("dump-file")));
}

TEST_F(LifecycleTest, PrintsEveryOptionWithItsDefault) {
  const std::map<std::string, std::vector<std::string>> options = {
      {"static",
       {"full-pcpus-only: false", "distribute-cpus-across-numa: false",
        "distribute-cpus-across-cores: false", "align-by-socket: false",
        "prefer-align-cpus-by-uncorecache: false", "strict-cpu-reservation: false",
        "cpu-quota: lift", "RelaxedIsolation: false"}},
      {"static-plus",
       {"full-pcpus-only: false", "PreferIsolatedCPUs: true", "ExclusiveCPUs: always",
        "ReservedPoolNamespaces: []", "PrivilegedNamespaces:\n      - kube-system"}},
      {"topology-aware",
       {"PinCPU: true", "PinMemory: true", "PreferIsolatedCPUs: true", "PreferSharedCPUs: false",
        "ColocatePods: false", "ColocateNamespaces: false", "ReservedPoolNamespaces: []",
        "PrivilegedNamespaces:\n      - kube-system", "DefaultCPUPriority: none",
        "UnlimitedBurstable: package", "CPUQuota: lift"}}};
  for (const auto& [policy, lines] : options) {
    const Outcome printed = RunToEnd({"-print-config", "-policy", policy});
    EXPECT_EQ(printed.code, 0);
    const size_t others = printed.output.find("\n# ");
    ASSERT_NE(others, std::string::npos) << printed.output;
    for (const std::string& line : lines)
      EXPECT_THAT(printed.output.substr(0, others), HasSubstr(" " + line + "\n")) << policy;
    for (const auto& [other, unused] : options) {
      const std::string comment = "#   " + other + ":\n";
      EXPECT_EQ(printed.output.find(comment) == std::string::npos, other == policy) << other;
    }
  }
  const std::string file =
      Write("some.yaml", "policy: {Active: static, static: {Options: {full-pcpus-only: true}}}");
  EXPECT_THAT(RunToEnd({"-print-config", "-config", file}).output,
              AllOf(HasSubstr("full-pcpus-only: true\n"), HasSubstr("cpu-quota: lift\n")));
}

TEST_F(LifecycleTest, TellsAllMistakesOfAConfiguration) {
  const std::string yaml = Write("bad.yaml",
                                 "policy:\n  Actve: static\n  AvailableResources: {CPU: 5K}\n"
                                 "  static:\n    Options: {full-pcpus-only: perhaps, x: 1}\n"
                                 "logger: {Level: loud}\ndmp: {}\n");
  const Outcome outcome = RunToEnd({"-check-config", "-config", yaml});
  EXPECT_EQ(outcome.code, 1);
  for (const char* place :
       {"bad.yaml:2: policy.Actve", "bad.yaml:3: policy.AvailableResources.CPU",
        "bad.yaml:5: policy.static.Options.full-pcpus-only", "bad.yaml:5: policy.static.Options.x",
        "bad.yaml:6: logger.Level", "bad.yaml:7: dmp"}) {
    EXPECT_THAT(outcome.output, HasSubstr(place));
  }
  const std::string options = Write("bad.options", "polcy static\nlogger-level loud\n-x\n");
  EXPECT_THAT(
      RunToEnd({"-check-config", "-config", options}).output,
      AllOf(HasSubstr("bad.options:1"), HasSubstr("bad.options:2"), HasSubstr("bad.options:3")));
}

TEST_F(LifecycleTest, WarnsOfAValidConfigurationThatPlacesNoContainer) {
  const auto check = [this](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"-check-config", "-topology", "synthetic:core:4 pu:1"});
    const Outcome outcome = RunToEnd(flags);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return outcome.output;
  };
  EXPECT_THAT(check({}),
              AllOf(HasSubstr("warning: no policy is chosen"), HasSubstr("static-plus")));
  EXPECT_THAT(check({"-policy", "null"}), Not(HasSubstr("warning")));
  EXPECT_THAT(check({"-policy", "static", "-reserved-resources", "CPU=0-3"}),
              HasSubstr("warning: no container can get exclusive CPUs"));
  EXPECT_THAT(check({"-policy", "static", "-available-resources", "CPU=1", "-reserved-resources",
                     "CPU=500m"}),
              HasSubstr("warning: no container can get exclusive CPUs"));
  EXPECT_THAT(check({"-policy", "static", "-reserved-resources", "CPU=0-2"}),
              Not(HasSubstr("warning")));
  EXPECT_THAT(check({"-policy", "null", "-dump-file", Path("no/such/dump")}),
              HasSubstr("warning: dump: cannot open"));
  StartRuntime();
  StartDaemon(Flags({"-policy", "static", "-available-resources", "CPU=cpuset:0",
                     "-reserved-resources", "CPU=cpuset:0"}));
  EXPECT_TRUE(Logged("no container can get exclusive CPUs"));
}

TEST_F(LifecycleTest, PrintedConfigurationIsOneThatCanBeRead) {
  const Outcome printed =
      RunToEnd({"-print-config", "-policy=static", "--reserved-resources", "CPU=750m"});
  EXPECT_EQ(printed.code, 0);
  EXPECT_THAT(printed.output, AllOf(HasSubstr("static"), HasSubstr("750m")));
  const std::string file = Write("printed.yaml", printed.output);
  const Outcome again = RunToEnd({"-print-config", "-config", file});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.output, printed.output);
}

TEST_F(LifecycleTest, SaysThatItIsReadyHoweverLittleIsLogged) {
  StartRuntime();
  // Returns with that line.
  StartDaemon(Flags({"-logger-level", "error"}));
  daemon_.reset();
  StartDaemon(Flags({"-logger-source", "no-such-source"}));
}

TEST_F(LifecycleTest, SaysAtOnceThatTheStateCannotBeKept) {
  StartRuntime();
  Write("file", "");
  StartDaemon(StaticFlags({"-relay-dir", Path("file") + "/state"}));
  EXPECT_TRUE(Logged("the state will be lost at a restart"));
  EXPECT_TRUE(Relayed().Call(kVersion, {""}).status.ok()) << "the node goes on";
}

TEST_F(LifecycleTest, ChecksConfigurationOfBothFormats) {
  const std::string yaml = Write("good.yaml",
                                 "policy:\n"
                                 "  Active: static\n"
                                 "  ReservedResources: {CPU: 1}\n"
                                 "logger: {Debug: '*'}\n");
  EXPECT_EQ(RunToEnd(Flags({"-check-config", "-config", yaml})).code, 0);
  const std::string options = Write("good.cfg",
                                    "# as the flags, without dashes\n"
                                    "policy static\n"
                                    "reserved-resources = CPU=1\n"
                                    "dump: reset,full:.*\n");
  EXPECT_EQ(RunToEnd(Flags({"-check-config", "-config", options})).code, 0);
}

TEST_F(LifecycleTest, MistakesAreOneLineAndExitCodeOne) {
  struct Mistake {
    std::vector<std::string> flags;
    std::string names;
  };
  const std::vector<Mistake> mistakes = {
      {{"-no-such-flag"}, "no-such-flag"},
      {{"-policy", "no-such-policy"}, "no-such-policy"},
      {{"-policy", "static", "-reserved-resources", "CPU=many"}, "many"},
      {{"-policy", "static", "-reserved-resources", "CPU=1000"}, "1000"},
      {{"-config", Path("missing.yaml")}, Path("missing.yaml")},
      {{"-config", Write("key.yaml", "policy:\n  Active: static\n  NoSuchKey: 1\n")},
       Path("key.yaml") + ":3"},
      {{"-config", Write("type.yaml", "policy:\n  Active: [static]\n")}, Path("type.yaml") + ":2"},
      {{"-config", Write("syntax.yaml", "policy: {Active: static\n")}, Path("syntax.yaml")},
      {{"-config", Write("flag.cfg", "policy static\nno-such-flag x\n")}, Path("flag.cfg") + ":2"},
      {{"-dump", "a:b:c"}, "a:b:c"},
      {{"-topology", "synthetic:nonsense"}, "nonsense"},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.names);
    const Outcome outcome = RunToEnd(Flags(mistake.flags));
    EXPECT_EQ(outcome.code, 1) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(mistake.names));
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  }
}

TEST_F(LifecycleTest, MachineThatCannotBeReadIsExitCodeTwo) {
  const Outcome outcome = RunToEnd(StaticFlags({"-topology", Path("missing.xml")}));
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(Path("missing.xml")));
}

TEST_F(LifecycleTest, FlagWinsOverFile) {
  const std::string file = Write("file.yaml", "policy: {Active: static}\n");
  const Outcome outcome = RunToEnd({"-print-config", "-config", file, "-policy", "null"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output, testing::Not(HasSubstr("Active: static")));
}

}  // namespace
}  // namespace resmgr::test
