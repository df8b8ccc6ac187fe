// SPDX-License-Identifier: Apache-2.0
// The outside contracts as other programs see them: the members and types of each command's JSON,
// the modules and keys of a configuration, the names and types of the metrics.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "test/integration/control_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// "name:type ..." of an object. Types: s text, i whole number, n number, b bool, o object, a list,
// S list of texts; ? before them: or null.
std::string Mismatch(const Json& object, std::string_view members) {
  if (!object.is_object()) return "no object: " + object.dump();
  for (const std::string_view member : Split(members, ' ')) {
    if (member.empty()) continue;
    const size_t colon = member.find(':');
    const std::string name(member.substr(0, colon));
    std::string_view type = member.substr(colon + 1);
    const auto found = object.find(name);
    if (found == object.end()) return fmt::format("{} is missing: {}", name, object.dump());
    if (type.starts_with('?')) {
      type.remove_prefix(1);
      if (found->is_null()) continue;
    }
    const bool texts = found->is_array() && std::ranges::all_of(*found, [](const Json& each) {
                         return each.is_string();
                       });
    const bool right =
        (type == "s" && found->is_string()) || (type == "i" && found->is_number_integer()) ||
        (type == "n" && found->is_number()) || (type == "b" && found->is_boolean()) ||
        (type == "o" && found->is_object()) || (type == "a" && found->is_array()) ||
        (type == "S" && texts);
    if (!right) return fmt::format("{} is not of type {}: {}", name, type, object.dump());
  }
  return "";
}

constexpr std::string_view kContainer =
    "id:s pod:s namespace:s name:s qos:s state:s cpus:s mems:s exclusive:s shared:s shares:i "
    "quota:i period:i memoryLimit:i pool:s policy:s reason:s";

class ContractsTest : public ControlTest {
 protected:
  // A daemon with an exclusive, a shared and a refused container, a hook server that is away, and a
  // class that the machine lacks.
  void StartWithAll() {
    std::filesystem::create_directories(Path("hooks"));
    WriteFile("hooks/a.json", fmt::format(R"({{"remote-endpoint":"{}","runtime-hooks":)"
                                          R"(["PreRunPodSandbox"]}})",
                                          Path("hook.sock")));
    const std::string file = WriteFile("node.yaml",
                                       "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
                                       "classes: {isolation: {Interrupts: isolate}}\n");
    StartRuntime();
    StartDaemon(Flags({"-config", file, "-metrics-address", "127.0.0.1:0", "-hook-dir",
                       Path("hooks"), "-host-root", Path("root")}));
    ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
    CriClient client = Relayed();
    Run(client, MakeGuaranteedPod("own"), MakeGuaranteedContainer("main", 2));
    Run(client, MakeBurstablePod("web"), MakeBurstableContainer("main", {300}));
    const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("large")));
    EXPECT_FALSE(
        client.CreateContainer(pod, MakeGuaranteedPod("large"), MakeGuaranteedContainer("main", 20))
            .ok());
  }
  Json Answer(std::vector<std::string> command) const {
    command.insert(command.end(), {"-o", "json"});
    const Shown shown = Ctl(command);
    EXPECT_EQ(shown.exit_code, 0) << command.front() << ": " << shown.err;
    return shown.json();
  }
  void ExpectList(const std::vector<std::string>& command, std::string_view members) const {
    const Json list = Answer(command);
    EXPECT_TRUE(list.is_array() && !list.empty()) << command.front() << ": " << list;
    for (const Json& each : list)
      EXPECT_EQ(Mismatch(each, members), "") << command.front();
  }
  void ExpectObject(const std::vector<std::string>& command, std::string_view members) const {
    EXPECT_EQ(Mismatch(Answer(command), members), "") << command.front();
  }

  struct Ended {
    int code = -1;
    std::string output;
  };
  Ended RunDaemon(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), Program("cri-resmgr"));
    auto process = ChildProcess::Start(flags, Path("run.log"));
    EXPECT_THAT(process, IsOk());
    if (!process.ok()) return {};
    return {(*process)->Wait(kPatience).value_or(-1), TextOf(Path("run.log"))};
  }
};

TEST_F(ContractsTest, EachCommandsJsonHasItsMembersAndTypes) {
  ASSERT_NO_FATAL_FAILURE(StartWithAll());
  ExpectObject({"status"},
               "policy:s config:s runtime:s runtimeSocket:s pods:i containers:i online:s "
               "exclusive:s shared:s reserved:s state:s problems:a version:s uptimeSeconds:i");
  for (const Json& problem : Answer({"status"})["problems"])
    EXPECT_EQ(Mismatch(problem, "kind:s since:s message:s objects:S next:s"), "");
  ExpectList({"containers"}, kContainer);
  ExpectList({"explain", "own"}, fmt::format("{} request:i limit:i settled:b owners:a hints:a "
                                             "candidates:S",
                                             kContainer));
  ExpectList({"explain", "large"}, "namespace:s pod:s name:s state:s reason:s refused:s");
  ExpectList({"history"}, "time:s event:s container:s cpus:s mems:s exclusive:s reason:s error:s");
  ExpectList({"plugins"},
             "kind:s name:s index:s state:s events:S calls:i failures:i lastError:s p50Micros:i");
  ExpectList({"runtimes"}, "name:s socket:s version:s state:s handlers:S pods:i containers:i");
  ExpectList({"cpus"}, "id:i state:s containers:S busyPercent:?n");
  ExpectList({"top"},
             "namespace:s pod:s container:s id:s cpus:s granted:n cpuUsed:?n throttledPercent:?n "
             "cpuPressure10:?n cpuPressure60:?n memoryBytes:?i memoryByNode:o remotePercent:?n "
             "pool:s since:s");
  ExpectList({"top", "cpus"}, "id:i state:s containers:S busyPercent:?n");
  ExpectList({"pools"}, "name:s parent:s kind:s cpus:s exclusive:s shared:s mems:s containers:S");
  ExpectList({"policies"}, "name:s description:s active:b");
  ExpectObject({"topology"}, "cpus:a numa:a");
  ExpectObject({"audit"}, "checked:i drifted:i containers:a");
  ExpectObject({"rebalance"}, "moves:a");
  ExpectObject({"uninstall", "-dry-run"}, "moves:a done:b");
  ExpectObject({"config", "show"}, "source:s yaml:s");
  EXPECT_TRUE(Eventually([this] { return !Answer({"classes"}).empty(); }));
  ExpectList({"classes"}, "kind:s name:s state:s reason:s containers:S");
  const std::string next =
      WriteFile("next.yaml", "policy: {Active: static, ReservedResources: {CPU: 2}}\n");
  ExpectObject({"config", "check", next}, "policy:s moves:a losses:a warnings:S");
  ExpectObject({"config", "set", next}, "policy:s");
  ExpectObject({"log", "info"}, "");
  ExpectObject({"version"}, "ctl:s daemon:s");
}

TEST_F(ContractsTest, WordsInJsonAreThoseOfTheContract) {
  ASSERT_NO_FATAL_FAILURE(StartWithAll());
  std::set<std::string> states;
  for (const Json& cpu : Answer({"cpus"}))
    states.insert(cpu["state"]);
  EXPECT_EQ(states, (std::set<std::string>{"exclusive", "reserved", "shared"}));
  EXPECT_EQ(Answer({"cpus", "0-1"}).size(), 2U);
  EXPECT_EQ(Answer({"plugins"})[0]["kind"], "hook");
  EXPECT_EQ(Answer({"plugins"})[0]["state"], "disconnected");
  EXPECT_EQ(Answer({"runtimes"})[0]["name"], "default");
  const Json history = Answer({"history"});
  EXPECT_EQ(history.back()["event"], "refused") << "the newest is the last";
  EXPECT_EQ(history.back()["container"], "default/large/main");
  EXPECT_THAT(history.back()["error"].get<std::string>(), HasSubstr("needs 20 exclusive CPUs"));
  EXPECT_THAT(history.back()["time"].get<std::string>(),
              MatchesRegex("20..-..-..T..:..:..\\....Z"));
  EXPECT_EQ(Answer({"history", "-n", "1"}).size(), 1U);
  const Json problems = Answer({"status"})["problems"];
  const auto of_kind = [&problems](std::string_view kind) {
    return std::ranges::count_if(problems, [kind](const Json& one) { return one["kind"] == kind; });
  };
  EXPECT_EQ(of_kind("refused"), 1) << problems;
  EXPECT_EQ(of_kind("plugin"), 1) << problems;
  EXPECT_EQ(Ctl({"status", "-check"}).exit_code, 1);
  EXPECT_EQ(Ctl({"status"}).exit_code, 0);
}

// Each module as the documentation shows it, and keys in other spellings.
TEST_F(ContractsTest, ConfigurationsOfAllModulesAreTaken) {
  const std::vector<std::string> texts = {
      "hooks: {Directory: /etc/runtime/hookserver.d, Timeout: 2s, SkipKey: "
      "runtimeproxy.koordinator.sh/skip-hookserver, SkipValue: \"true\"}\n",
      "nri:\n"
      "  Host: {Socket: /var/run/nri/nri.sock, PluginPath: /opt/nri/plugins, PluginConfigPath: "
      "/etc/nri/conf.d, ExternalPlugins: true,\n"
      "         RegistrationTimeout: 5s, RequestTimeout: 2s, Plugins: {\"10-logger\": "
      "{FailurePolicy: ignore, RequestTimeout: 1s, Required: false}}}\n",
      "runtimes:\n"
      "  kata: {Socket: /run/kata/cri.sock}\n"
      "runtimeClasses:\n"
      "  kata: {Runtime: kata, Pinning: sandbox, Hooks: true, Overhead: {cpu: 250m, memory: "
      "160Mi}}\n"
      "  gvisor: {Pinning: none}\n"
      "  \"\": {Pinning: container}\n",
      "policy: {Active: balloons, ReservedResources: {CPU: 1}, balloons: {balloonTypes: [{name: a, "
      "minCPUs: 1}]}}\n",
      "usage: {Interval: 10s, PerContainerMetrics: false}\n",
      "classes: {rdt: {}, blockio: {}, cpu: [], scheduling: [], memory: [], irq: {}, isolation: "
      "{}, "
      "AllowedNamespaces: {}, Unknown: refuse, Absent: warn}\n",
      "classes:\n"
      "  rdt: {Enable: true, Prefix: cri-resmgr., Assign: auto, DefaultByQoS: true, Monitoring: "
      "container, options: {}, partitions: {p: {classes: {gold: {}}}}}\n"
      "  irq: {Controllable: [\"*\"], Balance: detect}\n"
      "  AllowedNamespaces: {gold: [\"*\"]}\n"
      "  Unknown: note\n"
      "  Absent: refuse\n",
      "nrt: {Publish: true, Alignment: prefer}\n",
      "dra: {Enable: false, Driver: cpu.cri-resmgr.intel.com, Compatible: false}\n",
      "POLICY: {active: static, reservedresources: {cpu: 1}}\n"
      "UsAgE: {INTERVAL: 10s}\nDump: {config: 'off:.*'}\nLOGGER: {level: INFO}\n"};
  for (const std::string& text : texts) {
    const Ended checked =
        RunDaemon(Flags({"-check-config", "-config", WriteFile("some.yaml", text)}));
    EXPECT_EQ(checked.code, 0) << text << checked.output;
  }
  for (const char* const wrong : {"polici: {Active: static}\n", "policy: {Actve: static}\n",
                                  "hooks: {Directory: /x, Tiemout: 1s}\n"}) {
    const Ended checked =
        RunDaemon(Flags({"-check-config", "-config", WriteFile("some.yaml", wrong)}));
    EXPECT_EQ(checked.code, 1) << wrong << checked.output;
    EXPECT_THAT(checked.output, HasSubstr("unknown key"));
  }
}

TEST_F(ContractsTest, KeysOfAConfigMapAreModulesInAnyCase) {
  StartRuntime();
  StartDaemon(Flags({"-config", WriteFile("node.yaml", "policy: {Active: static}\n")}));
  EXPECT_EQ(SetConfig({{"Policy", "ACTIVE: static\nreservedResources: {cpu: 2}\n"},
                       {"LOGGER", "Level: debug\n"},
                       {"usage", "Interval: 20s\n"}}),
            "");
  const std::string yaml = Answer({"config", "show"})["yaml"];
  EXPECT_THAT(yaml, testing::AllOf(HasSubstr("CPU: 2"), HasSubstr("Level: debug"),
                                   HasSubstr("Interval: 20s")));
  EXPECT_THAT(SetConfig({{"policy", kStatic}, {"polcy2", ""}}), HasSubstr("polcy2"));
  EXPECT_THAT(SetConfig({{"policy", "Active: static\nNoSuchKey: 1\n"}}), HasSubstr("NoSuchKey"));
}

TEST_F(ContractsTest, MetricsOfARealDaemonAreDocumentedAndNamedByTheirTypes) {
  ASSERT_NO_FATAL_FAILURE(StartWithAll());
  std::ifstream file(RESMGR_SOURCE_DIR "/docs/metrics.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  ASSERT_TRUE(Eventually([this] {
    return Counts().find("cri_resmgr_cpus{class=\"exclusive\"} 2") != std::string::npos;
  })) << Counts();
  std::istringstream lines(Counts());
  const std::regex type_line("# TYPE (\\S+) (\\S+)");
  int families = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, type_line)) continue;
    const std::string name = found[1];
    ASSERT_TRUE(name.starts_with("cri_resmgr_")) << name;
    const std::string documented = "`" + name.substr(std::string_view("cri_resmgr_").size());
    EXPECT_THAT(page, testing::AnyOf(HasSubstr(documented + "`"), HasSubstr(documented + "{")));
    EXPECT_EQ(name.ends_with("_total"), found[2] == "counter") << name;
    ++families;
  }
  EXPECT_GE(families, 50);
}

}  // namespace
}  // namespace resmgr::test
