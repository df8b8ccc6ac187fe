// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cmd/cri-resmgr-ctl/testing/ctl_runner.h"
#include "pkg/base/parse.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using resmgr::test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using nlohmann::json;

const std::string kSamples = RESMGR_SOURCE_DIR "/sample-configs/simulate/";

Outcome Simulate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "simulate");
  return test::Ctl(arguments);
}

// The output of a simulation that succeeds.
std::string OutputOf(const std::vector<std::string>& arguments) {
  const Outcome outcome = Simulate(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  return outcome.out;
}

// The objects that it prints with "-o json", one in each line.
std::vector<json> Parsed(std::string_view lines) {
  std::vector<json> objects;
  for (const std::string_view line : Split(lines, '\n'))
    if (!line.empty()) objects.push_back(json::parse(line));
  return objects;
}

constexpr char kFourCpus[] = "synthetic:core:4 pu:1";
constexpr char kTwoCpus[] = "synthetic:core:2 pu:1";
constexpr char kPod[] = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n";

class SimulateTest : public testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& text) {
    EXPECT_TRUE(AtomicWriteFile(directory_.File(name), text, 0644).ok());
    return directory_.File(name);
  }

  // A configuration with these keys of the policy.
  std::string PolicyFile(const std::string& keys) {
    return File("c.yaml", fmt::format("policy: {{{}}}\n", keys));
  }

  void ExpectError(const std::vector<std::string>& arguments, const std::string& part) {
    const Outcome outcome = Simulate(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  }

  TempDir directory_;
};

// As with the daemon's flag.
TEST_F(SimulateTest, PoliciesHaveTheNamesOfCriResourceManagerToo) {
  const std::string pod = File("pod.yaml",
                               "kind: Pod\nmetadata: {name: a}\n"
                               "spec: {containers: [{name: c, resources: {limits: {cpu: 2}}}]}\n");
  const std::string machine = "synthetic:core:4 pu:1";
  EXPECT_EQ(Simulate({"-topology", machine, "-policy", "memtier", pod}).out,
            Simulate({"-topology", machine, "-policy", "topology-aware", pod}).out);
  EXPECT_THAT(Simulate({"-topology", machine, "-policy", "none", pod}).out,
              HasSubstr("policy         null, which places nothing"));
  ExpectError({"-topology", machine, "-policy", "statik", pod},
              "-policy: there is no policy \"statik\"; did you mean static?");
}

// The expected output for the sample on machines of different kinds is stored beside this file;
// with RESMGR_UPDATE_GOLDEN set it is written anew.
struct Golden {
  const char* name;
  const char* topology;
};

void ExpectGolden(const Golden& golden) {
  const std::string topology = golden.topology;
  const Outcome outcome = Simulate(
      {"-topology", topology, "-config", kSamples + "config.yaml", kSamples + "pods.yaml"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string file =
      fmt::format("{}/cmd/cri-resmgr-ctl/testdata/simulate-{}.txt", RESMGR_SOURCE_DIR, golden.name);
  const std::string text = fmt::format("# {}\n{}", topology, outcome.out);
  if (std::getenv("RESMGR_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << text;
  EXPECT_EQ(ReadFile(file, size_t{1} << 20).value_or(""), text) << golden.name;
}

TEST(SampleTest, IsPlacedAsBefore) {
  ExpectGolden({"laptop", "synthetic:package:1 numa:1 l3:1 core:4 pu:2"});
  ExpectGolden({"two-sockets", "synthetic:package:2 numa:1 l3:1 core:10 pu:2"});
  ExpectGolden({"chiplets", "synthetic:package:2 numa:4 l3:2 core:4 pu:2"});
  ExpectGolden({"no-smt", "synthetic:package:1 numa:2 l3:4 core:8 pu:1"});
}

TEST(SampleTest, IsInItsPageAsItIs) {
  const auto page = ReadFile(RESMGR_SOURCE_DIR "/docs/simulate.md", size_t{1} << 20);
  const auto golden = ReadFile(
      RESMGR_SOURCE_DIR "/cmd/cri-resmgr-ctl/testdata/simulate-two-sockets.txt", size_t{1} << 20);
  ASSERT_TRUE(page.ok() && golden.ok());
  // All but the first line, which names the machine, up to the summary.
  std::string expected;
  const std::string_view lines = std::string_view(*golden).substr(golden->find('\n') + 1);
  for (const std::string_view line : Split(lines, '\n')) {
    if (line.empty()) break;
    const size_t end = line.find_last_not_of(' ') + 1;
    expected += fmt::format("    {}\n", line.substr(0, end));
  }
  EXPECT_THAT(*page, HasSubstr(expected));
}

// The words of a command line, with double quotes as in a shell.
std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Each command of the page is run, and has what follows it there. Their number.
int ExpectCommandsOf(const std::string& file) {
  const std::string page =
      ReadFile(RESMGR_SOURCE_DIR "/docs/" + file, size_t{1} << 20).value_or("");
  constexpr std::string_view kPrompt = "    $ cri-resmgr-ctl simulate";
  int commands = 0;
  for (size_t at = page.find(kPrompt); at != std::string::npos; at = page.find(kPrompt, at + 1)) {
    std::istringstream lines(page.substr(at));
    std::string line;
    std::string command;
    while (std::getline(lines, line)) {
      command += line;
      if (!command.ends_with('\\')) break;
      command.back() = ' ';
    }
    std::string expected;
    while (std::getline(lines, line) && line.starts_with("    "))
      expected += line.substr(4) + "\n";
    std::vector<std::string> words = WordsOf(command.substr(kPrompt.size()));
    for (std::string& word : words)
      if (word.starts_with("sample-configs/")) word.insert(0, RESMGR_SOURCE_DIR "/");
    const Outcome outcome = Simulate(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    // The summary is left out there.
    const size_t summary = outcome.out.find("\n\n");
    EXPECT_EQ(summary == std::string::npos ? outcome.out : outcome.out.substr(0, summary + 1),
              expected)
        << command;
    ++commands;
  }
  return commands;
}

TEST(SampleTest, CommandsInThePagesShowWhatTheseSay) {
  EXPECT_EQ(ExpectCommandsOf("classes.md"), 2);
  EXPECT_EQ(ExpectCommandsOf("simulate.md"), 1);
}

TEST_F(SimulateTest, JsonHasOneLinePerEffect) {
  const std::vector<json> effects =
      Parsed(OutputOf({"-topology", "synthetic:core:4 pu:2", "-config", kSamples + "config.yaml",
                       "-o", "json", kSamples + "pods.yaml"}));
  const std::set<std::string> keys = {"step",    "op",    "pod",    "container", "cpus",
                                      "mems",    "error", "shares", "quota",     "exclusive",
                                      "changed", "pool",  "reason"};
  int refused = 0;
  for (const json& effect : effects) {
    std::set<std::string> found;
    for (const auto& [key, value] : effect.items())
      found.insert(key);
    EXPECT_EQ(found, keys);
    refused += effect["error"].get<std::string>().empty() ? 0 : 1;
  }
  EXPECT_GT(effects.size(), 25U);
  EXPECT_GT(refused, 0) << "eight CPUs are not enough for all of them";
}

TEST_F(SimulateTest, ThePageGetsTheMachineReservedCpusQosAndLimits) {
  const std::vector<json> lines =
      Parsed(OutputOf({"-topology", "synthetic:package:2 numa:1 l3:1 core:10 pu:2", "-config",
                       kSamples + "config.yaml", "-o", "page", kSamples + "pods.yaml"}));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0]["cpus"].size(), 40U);
  std::map<std::string, json> placed;
  for (const json& line : lines) {
    if (line.value("op", "") == "create")
      placed[line["pod"].get<std::string>() + "/" + line["container"].get<std::string>()] = line;
  }
  const json database = placed["shop/users-db/database"];
  EXPECT_EQ(database["qos"], "Guaranteed");
  EXPECT_EQ(database["cpuLimit"], 2000);
  EXPECT_EQ(database["memoryLimit"], int64_t{4} << 30);
  EXPECT_EQ(database["reserved"], "0");
  EXPECT_EQ(database["changed"][0]["exclusive"], "");
  EXPECT_EQ(placed["kube-system/proxy/proxy"]["qos"], "BestEffort");
  EXPECT_EQ(placed["kube-system/proxy/proxy"]["cpuLimit"], 0);
}

TEST_F(SimulateTest, TakesAnOptionsFileAndSeveralScenarios) {
  const std::string config =
      File("options", "policy static\nreserved-resources CPU=1\nrelay-socket /run/x.sock\n");
  const auto pod = [](std::string_view name) {
    return fmt::format(
        "kind: Pod\nmetadata: {{name: {}}}\nspec: {{containers: [{{name: c, resources: "
        "{{limits: {{cpu: 1, memory: 1Gi}}}}}}]}}\n",
        name);
  };
  const std::string out = OutputOf({"-topology=synthetic:core:4 pu:1", "-config", config, "-o=json",
                                    File("a.yaml", pod("a")), File("b.yaml", pod("b"))});
  EXPECT_THAT(out, HasSubstr(R"({"step":1,"op":"create","pod":"default/a")"));
  EXPECT_THAT(out, HasSubstr(R"({"step":2,"op":"create","pod":"default/b")"));
  EXPECT_THAT(out, HasSubstr(R"("exclusive":"2")"));
}

TEST_F(SimulateTest, TimePassesOnlyWhenTheScenarioSaysSo) {
  const std::string config = PolicyFile("Active: topology-aware, ReservedResources: {CPU: 1}");
  const std::string scenario = File("s.yaml", R"(kind: Pod
metadata: {name: etl, annotations: {cold-start.resource-policy.nri.io: 'duration: 60s'}}
spec: {containers: [{name: load}]}
---
wait: 30s
---
restart: relay
---
wait: 30s
)");
  const std::string out =
      OutputOf({"-topology", RESMGR_SOURCE_DIR "/test/data/topology/xeon-2s-pmem.xml", "-config",
                config, "-o", "json", scenario});
  std::vector<std::string> mems;
  for (const json& effect : Parsed(out)) {
    for (const json& change : effect["changed"])
      mems.push_back(fmt::format("{}: {}", effect["step"].get<int>(), change["mems"].dump()));
  }
  EXPECT_THAT(out, HasSubstr(R"("mems":"3")"));
  EXPECT_THAT(mems, testing::ElementsAre(R"(4: "1,3")"));
  ExpectError({"-topology=synthetic:core:4 pu:1", File("w.yaml", "wait: soon\n")},
              "w.yaml:1: wait: must be a time of at most 24h");
}

TEST_F(SimulateTest, TheSummaryTellsOfOverheads) {
  const auto pod = [](std::string_view name, std::string_view overhead) {
    return fmt::format(
        "kind: Pod\nmetadata: {{name: {}}}\nspec: {{{}containers: [{{name: c}}]}}\n---\n", name,
        overhead);
  };
  const std::string kata = "runtimeClassName: kata, overhead: {cpu: 250m, memory: 120Mi}, ";
  const std::string file =
      File("s.yaml", pod("a", kata) + pod("b", kata) + pod("c", "") + pod("d", kata) +
                         "delete: default/b\n---\ndelete: default/d/c\n");
  const std::string out = OutputOf({"-topology", kTwoCpus, file});
  EXPECT_THAT(out,
              HasSubstr("pod overhead   250m CPU and 120 MiB of 1 pod, beside the containers"));
}

// The overhead is shown as by the daemon, also after its restart; a value in the pod has
// precedence.
TEST_F(SimulateTest, TheConfigurationTellsTheOverheadOfPodsThatStateNone) {
  const std::string config = File("c.yaml", R"(policy: {Active: static, ReservedResources: {CPU: 1}}
runtimeClasses: {kata: {Overhead: {cpu: 500m, memory: 64Mi}}}
)");
  const std::string scenario = File("s.yaml", R"(kind: Pod
metadata: {name: a}
spec: {runtimeClassName: kata, containers: [{name: c}]}
---
kind: Pod
metadata: {name: b}
spec: {runtimeClassName: kata, overhead: {cpu: 250m, memory: 120Mi}, containers: [{name: c}]}
---
kind: Pod
metadata: {name: c}
spec: {containers: [{name: c}]}
---
restart: relay
)");
  const std::string out = OutputOf({"-topology", kTwoCpus, "-config", config, scenario});
  EXPECT_THAT(out,
              HasSubstr("pod overhead   750m CPU and 184 MiB of 2 pods, beside the containers"));
}

// The scheduler counts 1250m of a node with two CPUs of which 750m are reserved.
TEST_F(SimulateTest, TheRestOfAFractionalReservationMayBeAskedFor) {
  const std::string pod = File("p.yaml", R"(kind: Pod
metadata: {name: a}
spec: {containers: [{name: c, resources: {limits: {cpu: 1200m, memory: 1Gi}}}]}
)");
  for (const std::string policy : {"static", "static-plus", "topology-aware", "balloons"}) {
    const std::string config =
        File("c.yaml", "policy: {Active: " + policy + ", ReservedResources: {CPU: 750m}}\n");
    const Outcome outcome = Simulate({"-topology", kTwoCpus, "-config", config, pod});
    EXPECT_EQ(outcome.exit_code, 0) << policy << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("refused        0")) << policy;
  }
}

// The limits come from the webhook's annotation.
TEST_F(SimulateTest, PodLevelResourcesMayExcludeExclusiveCpus) {
  const std::string pod = File("p.yaml", R"(kind: Pod
metadata:
  name: a
  annotations:
    intel.com/resources: '{"containers":{"c":{"limits":{"cpu":"2","memory":"64Mi"}},"d":{}}}'
spec:
  resources: {limits: {cpu: "4", memory: 1Gi}, requests: {cpu: "4", memory: 1Gi}}
  containers:
  - {name: c, resources: {limits: {cpu: "2", memory: 64Mi}}}
  - {name: d}
)");
  for (const std::string value : {"kubelet", "always"}) {
    const std::string config =
        File("c.yaml",
             "policy: {Active: static, ReservedResources: {CPU: 1}, static: {Options: "
             "{pod-level-exclusive: " +
                 value + "}}}\n");
    const std::string out =
        OutputOf({"-topology", "synthetic:core:8 pu:1", "-config", config, pod});
    EXPECT_THAT(out,
                HasSubstr(value == "kubelet" ? "exclusive      0 CPUs" : "exclusive      2 CPUs"));
  }
}

constexpr std::string_view kClaim =
    "kind: ResourceClaim\nmetadata: {name: fast}\nstatus: {allocation: {devices: {results: "
    "[{request: r, driver: cpu.cri-resmgr.intel.com, device: cpu-numa-0, pool: n1, "
    "consumedCapacity: {cpu: 3}}]}}}\n";

TEST_F(SimulateTest, ClaimsAreTriedWithoutAScenarioAndBeforeOne) {
  const std::string claims = File("claims.yaml", std::string(kClaim));
  const std::string pod = File("p.yaml", kPod);
  const std::vector<std::string> common = {"-topology", kFourCpus, "-config",
                                           kSamples + "config.yaml"};
  const auto with = [&common](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return Simulate(more);
  };
  const Outcome alone = with({"-claims", claims});
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.out, AllOf(HasSubstr("prepare  default/fast  1-3   1-3"),
                               HasSubstr("cpu-numa-0: CPUs 1-3"),
                               HasSubstr("claims         1 granted, 0 refused; 3 CPUs (1-3)")));
  const auto effects = Parsed(with({"-o", "json", "-claims", claims, pod}).out);
  ASSERT_GE(effects.size(), 2U);
  EXPECT_EQ(effects[0]["op"], "prepare");
  EXPECT_EQ(effects[0]["pod"], "default/fast");
  EXPECT_EQ(effects[0]["exclusive"], "1-3");
  EXPECT_EQ(effects[1]["cpus"], "0");
  const Outcome compared =
      with({"-policy", "static", "-policy", "null", "-o", "json", "-claims", claims});
  EXPECT_THAT(compared.out, AllOf(HasSubstr(R"("claims":1,"claimsRefused":0)"),
                                  HasSubstr(R"("claims":0,"claimsRefused":1)")));
  EXPECT_THAT(with({"-policy", "static", "-policy", "null", "-claims", claims}).out,
              AllOf(HasSubstr("POLICY  CLAIMS  PLACED"), HasSubstr("static  1 of 1"),
                    HasSubstr("null    0 of 1")));
}

TEST_F(SimulateTest, AFileOfClaimsHasClaimsAlone) {
  const std::string topology = "-topology=synthetic:core:4 pu:1";
  const std::string claims = File("claims.yaml", std::string(kClaim));
  ExpectError({topology, "-claims", File("e.yaml", "kind: Service\n")},
              "e.yaml: there is no ResourceClaim in it");
  ExpectError({topology, "-node", "n2", "-claims", claims},
              "claims.yaml: there is no ResourceClaim in it for node n2");
  ExpectError({topology, "-claims", File("w.yaml", std::string(kClaim) + "---\nwait: 1s\n")},
              "w.yaml:5: -claims takes ResourceClaims; give other documents as a SCENARIO");
  ExpectError({topology, "-claims", File("n.yaml", "{kind: ResourceClaim, metadata: {}}")},
              "n.yaml:1: metadata.name: a ResourceClaim needs a name");
  ExpectError({topology, "-claims", directory_.File("absent.yaml")}, "absent.yaml");
}

TEST_F(SimulateTest, ObjectsThatPlaceNothingAreNoted) {
  const std::string file = File("s.yaml", R"(kind: Service
metadata: {name: web}
---
kind: StatefulSet
metadata: {name: db}
spec: {replicas: 2, template: {spec: {containers: [{name: c}]}}}
)");
  const Outcome outcome = Simulate({"-topology", kTwoCpus, "-o", "json", file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr(R"("pod":"default/db-0")"),
                                 HasSubstr(R"({"step":2,"op":"create","pod":"default/db-1")")));
  EXPECT_EQ(outcome.err,
            "cri-resmgr-ctl: " + file + ": skipped 1 of kind Service, which places no pods here\n");
}

TEST_F(SimulateTest, ExplainsWhyAContainerIsThere) {
  const std::string config = PolicyFile("Active: topology-aware, ReservedResources: {CPU: 1}");
  const std::string pod = File("p.yaml", kPod);
  const std::vector<std::string> arguments = {"-topology", "synthetic:package:2 core:4 pu:2",
                                              "-config", config, pod};
  const Outcome plain = Simulate(arguments);
  std::vector<std::string> more = arguments;
  more.insert(more.begin(), "-explain");
  const Outcome explained = Simulate(more);
  EXPECT_THAT(plain.out, Not(HasSubstr(": the best")));
  EXPECT_THAT(explained.out, HasSubstr(": the best\n"));
  EXPECT_THAT(explained.out, Not(testing::ContainsRegex("\\(-?[0-9]+ against")));
  more.insert(more.begin(), {"-o", "json"});
  const json effect = json::parse(Simulate(more).out);
  EXPECT_NE(effect["pool"], "");
  EXPECT_THAT(explained.out, HasSubstr(effect["reason"].get<std::string>()));
}

TEST_F(SimulateTest, BalloonsFollowUse) {
  const std::string config = File("c.yaml",
                                  "policy: {Active: balloons, balloons: {reservedResources: {cpu: "
                                  "1}, balloonTypes: [{name: web, namespaces: [default], "
                                  "followUse: {growAbove: 80}}]}}\n");
  const std::string file = File("s.yaml", R"(kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}
---
use: {default/p: 3}
---
wait: 5m
---
use: {default/p: 0}
---
wait: 10m
)");
  const std::string out = OutputOf(
      {"-topology", "synthetic:package:1 core:8 pu:1", "-config", config, "-o", "json", file});
  std::vector<std::string> cpus;
  for (const json& effect : Parsed(out)) {
    if (effect["op"] == "create") cpus.push_back(effect["cpus"]);
    if (effect["op"] == "wait") {
      ASSERT_EQ(effect["changed"].size(), 1U) << effect;
      cpus.push_back(effect["changed"][0]["cpus"]);
    }
  }
  EXPECT_THAT(cpus, testing::ElementsAre("1", "1-4", "1"));
}

TEST_F(SimulateTest, RebalancesOnDemand) {
  const std::string file =
      File("s.yaml", std::string(kPod) + "---\nrebalance: preview\n---\nrebalance: apply\n");
  const std::string out = OutputOf({"-topology", kTwoCpus, "-o", "json", file});
  EXPECT_THAT(out, AllOf(HasSubstr(R"({"step":2,"op":"rebalance")"),
                         HasSubstr(R"({"step":3,"op":"rebalance")")));
  ExpectError({"-topology=synthetic:core:2 pu:1", File("w.yaml", "rebalance: now\n")},
              "w.yaml:1: rebalance: must be preview or apply");
}

// The effect lines for these pods, on a machine of test/data/topology.
std::vector<json> Effects(const std::string& machine, const std::string& config,
                          const std::string& pods) {
  return Parsed(OutputOf({"-topology", RESMGR_SOURCE_DIR "/test/data/topology/" + machine,
                          "-config", config, pods, "-o", "json"}));
}

std::string PodText(const std::string& name, const std::string& limits) {
  return fmt::format(
      "kind: Pod\nmetadata: {{name: {}, namespace: d}}\n"
      "spec: {{containers: [{{name: c, resources: {{limits: {{{}}}}}}}]}}\n---\n",
      name, limits);
}

TEST_F(SimulateTest, AMachineWithoutMemoryHasFourGibForEachCpu) {
  const std::string pods = File("pods.yaml", PodText("web", "cpu: 500m, memory: 12Gi"));
  const std::string config = PolicyFile("Active: topology-aware, ReservedResources: {CPU: 1}");
  const auto run = [&](const std::string& topology) {
    return Simulate({"-topology", topology, "-config", config, pods}).out;
  };
  EXPECT_THAT(run("synthetic:core:2 pu:2"),
              AllOf(HasSubstr("placed         1"), HasSubstr("4 GiB for each CPU")));
  EXPECT_THAT(run("synthetic:numa:1(memory=1GiB) core:2 pu:2"),
              AllOf(HasSubstr("placed         0"), Not(HasSubstr("for each CPU"))));
}

TEST_F(SimulateTest, OnlyMemoryThatIsAllowedIsUsed) {
  const std::string config = PolicyFile("Active: topology-aware");
  const std::string pods = File("pods.yaml", PodText("big", "cpu: 500m, memory: 20Gi") +
                                                 PodText("small", "cpu: \"2\", memory: 2Gi"));
  const auto effects = Effects("allowed-socket0-2s.xml", config, pods);
  ASSERT_EQ(effects.size(), 2U);
  EXPECT_THAT(effects[0]["error"].get<std::string>(),
              HasSubstr("needs 20 GiB of memory, but this node has no more than 14.9 GiB"));
  EXPECT_EQ(effects[1]["mems"], "0");
}

TEST_F(SimulateTest, HugePagesAreFoundAndAreNoOrdinaryMemory) {
  const std::string config = PolicyFile("Active: topology-aware");
  const std::string dpdk = "cpu: \"2\", memory: 256Mi, hugepages-1Gi: 4Gi";
  auto effects = Effects("hugepages-2s.xml", config,
                         File("huge.yaml", PodText("ordinary", "cpu: \"2\", memory: 1Gi") +
                                               PodText("dpdk-1", dpdk) + PodText("dpdk-2", dpdk) +
                                               PodText("dpdk-3", dpdk) + PodText("dpdk-4", dpdk)));
  ASSERT_EQ(effects.size(), 5U);
  for (size_t i = 1; i <= 3; ++i)
    EXPECT_EQ(effects[i]["mems"], "0") << i;
  EXPECT_EQ(effects[4]["mems"], "0-1");
  EXPECT_THAT(effects[4]["reason"].get<std::string>(), HasSubstr("huge pages do not count"));

  const std::string six = "cpu: \"1\", memory: 6Gi";
  effects = Effects("hugepages-2s.xml", config,
                    File("fill.yaml", PodText("a", six) + PodText("b", six) + PodText("e", six)));
  ASSERT_EQ(effects.size(), 3U);
  EXPECT_EQ(effects[0]["mems"], "1");
  EXPECT_EQ(effects[1]["mems"], "1");
  EXPECT_THAT(effects[2]["error"].get<std::string>(),
              HasSubstr("needs 6 GiB of memory, but only 4.8 of 16.8 GiB are free"));
}

TEST_F(SimulateTest, ReadsStandardInput) {
  const std::string file = File("s.yaml",
                                "kind: List\nitems:\n- kind: Pod\n  metadata: {name: p}\n"
                                "  spec: {containers: [{name: c}]}\n  status: {phase: Running}\n");
  const int saved = ::dup(STDIN_FILENO);
  const int input = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(input, STDIN_FILENO), STDIN_FILENO);
  const std::string out = OutputOf({"-topology", kTwoCpus, "-o", "json", "-"});
  ::dup2(saved, STDIN_FILENO);
  ::close(input);
  ::close(saved);
  EXPECT_THAT(out, HasSubstr(R"("pod":"default/p")"));
}

TEST_F(SimulateTest, WithoutAConfigurationThereIsNoPolicy) {
  const std::string pod = File("p.yaml", kPod);
  const std::string out = OutputOf({"-topology", kTwoCpus, "-o", "json", pod});
  EXPECT_THAT(out, HasSubstr(R"("cpus":"")"));
}

TEST_F(SimulateTest, BadInputIsOneClearLine) {
  const std::string machine = "-topology=synthetic:core:4 pu:1";
  const std::string good = kPod;
  const std::string pod = File("good.yaml", good);
  ExpectError({machine}, "no scenario given");
  ExpectError({machine, "/no/such/scenario"}, "/no/such/scenario");
  for (const char* const nothing : {"", "# only words\n", "---\n---\n"}) {
    const std::string file = File("nothing.yaml", nothing);
    ExpectError({machine, file}, file + ": there is nothing in it to simulate");
  }
  ExpectError({machine, "-node", "worker-8", pod},
              pod + ": there is nothing in it to simulate for node worker-8");
  ExpectError({"-topology=synthetic:bogus", pod}, "-topology synthetic:bogus");
  const std::string bad = File("bad.yaml", good + "---\nkind: Pod\nmetadata: {}\n");
  ExpectError({machine, pod, bad}, bad + ":5: metadata.name");
  const std::string config = File("config.yaml", "policy:\n  Active: statik\n");
  ExpectError({machine, "-config", config, pod}, config + ":2: policy.Active");
  const std::string reserved =
      File("reserved.yaml", "policy: {Active: static, ReservedResources: {CPU: cpuset:7}}\n");
  ExpectError({machine, "-config", reserved, pod}, "7");
  const std::string change = File("change.yaml", good + "---\nconfig:\n  polici: {}\n");
  ExpectError({machine, change}, change + ":6: polici");
}

TEST_F(SimulateTest, MachinesAndPoliciesAreComparedInOneTable) {
  const std::string pods = kSamples + "pods.yaml";
  const std::string config = PolicyFile("ReservedResources: {CPU: 1}");
  const std::vector<std::string> settings = {
      "-topology", "synthetic:core:4 pu:2", "-topology", "epyc-9654-2s", "-policy", "static",
      "-policy",   "topology-aware",        "-config",   config};
  std::vector<std::string> arguments = settings;
  arguments.push_back(pods);
  const Outcome table = Simulate(arguments);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, ::testing::StartsWith("TOPOLOGY               CPUS  POLICY"));
  EXPECT_THAT(table.out, HasSubstr("\nsynthetic:core:4 pu:2  8     static          "));
  EXPECT_THAT(table.out, HasSubstr("\nepyc-9654-2s           384   topology-aware  "));
  arguments.insert(arguments.end(), {"-o", "json"});
  const std::vector<json> rows = Parsed(Simulate(arguments).out);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_GT(rows[0]["refused"], rows[2]["refused"]) << "8 CPUs are few";
  EXPECT_EQ(rows[3]["policy"], "topology-aware");
  EXPECT_EQ(rows[3]["error"], "");
}

TEST_F(SimulateTest, AComparisonWithASettingThatIsNotPossibleFails) {
  const std::string config = PolicyFile("ReservedResources: {CPU: cpuset:7}");
  const Outcome outcome =
      Simulate({"-topology", "synthetic:core:4 pu:2", "-topology", kFourCpus, "-policy", "static",
                "-config", config, kSamples + "pods.yaml"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("\nsynthetic:core:4 pu:1, static: "));
  EXPECT_THAT(outcome.err, HasSubstr("1 of 2 settings are not possible"));
}

TEST_F(SimulateTest, APolicyOfTheCommandLineReplacesThatOfTheFile) {
  const std::string pod = File("p.yaml", R"(
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c, resources: {limits: {cpu: "1", memory: 1Gi}}}]}
)");
  const std::string config =
      File("c.yaml", "policy: {Active: \"null\", ReservedResources: {CPU: 1}}\n");
  EXPECT_THAT(Simulate({"-topology", kFourCpus, "-config", config, pod}).out,
              HasSubstr("\npolicy         null, which places nothing: name another by -policy"));
  const Outcome placed =
      Simulate({"-topology", kFourCpus, "-config", config, "-policy", "static", pod});
  EXPECT_THAT(placed.out, AllOf(HasSubstr("exclusive      1 CPU (1)"), Not(HasSubstr("null"))));
}

TEST_F(SimulateTest, OnlyPodsOfANodeAreTakenOfAListOfAll) {
  const std::string all = File("all.json", R"({"kind": "List", "items": [
    {"kind": "Pod", "metadata": {"name": "here"},
     "spec": {"nodeName": "worker-7", "containers": [{"name": "c"}]}},
    {"kind": "Pod", "metadata": {"name": "there"},
     "spec": {"nodeName": "worker-8", "containers": [{"name": "c"}]}},
    {"kind": "Pod", "metadata": {"name": "pending"}, "spec": {"containers": [{"name": "c"}]}}]})");
  const Outcome outcome =
      Simulate({"-topology", kFourCpus, "-policy", "static", "-node", "worker-7", all});
  EXPECT_THAT(outcome.out, HasSubstr("default/here/c"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("there")));
  EXPECT_THAT(outcome.err, HasSubstr("skipped 2 pods not on node worker-7"));
  ExpectError({"-topology", kFourCpus, "-node", "worker7", all},
              "skipped 3 pods not on node worker7");
}

TEST_F(SimulateTest, ShowsClassesWithTheirSourceAndSchemata) {
  const std::string config = File("config.yaml",
                                  "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
                                  "classes:\n"
                                  "  isolation: {Interrupts: isolate}\n"
                                  "  rdt: {partitions: {all: {l3Allocation: 100%, classes: {gold: "
                                  "{l3Allocation: 50%}}}}}\n"
                                  "  AllowedNamespaces: {rdt: [default]}\n");
  const auto pod = [](const std::string& name, const std::string& rdt_class) {
    return fmt::format(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}, namespace: default, annotations: "
        "{{rdtclass.resource-policy.nri.io/pod: {}}}}}\nspec: {{containers: [{{name: main, "
        "resources: {{requests: {{cpu: 2, memory: 1Gi}}, limits: {{cpu: 2, memory: 1Gi}}}}}}]}}\n",
        name, rdt_class);
  };
  const std::string pods = File("pods.yaml", pod("good", "gold") + "---\n" + pod("bad", "silver"));
  const std::vector<std::string> arguments = {
      "-topology", "synthetic:core:8 pu:1", "-config", config, "-rdt", "l3:20", pods};
  const Outcome table = Simulate(arguments);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("interrupts isolate by classes.isolation: f9\n"));
  EXPECT_THAT(table.out, HasSubstr("rdt gold by annotation rdtclass.resource-policy.nri.io/pod: "
                                   "L3:0=3ff\n"));
  EXPECT_THAT(table.out, HasSubstr("there is no class \"silver\""));
  EXPECT_THAT(table.out, HasSubstr("placed         1 container\nrefused        1\n"));
  std::vector<std::string> as_json = arguments;
  as_json.insert(as_json.begin(), {"-o", "json"});
  const json first = Parsed(Simulate(as_json).out).at(0);
  ASSERT_EQ(first["classes"].size(), 2U) << first;
  EXPECT_EQ(first["classes"][1], json::parse(R"({"kind":"rdt","name":"gold","source":
      "annotation rdtclass.resource-policy.nri.io/pod","value":"L3:0=3ff"})"));
}

TEST_F(SimulateTest, ShowsTheSchemataOfClassesForAGivenCacheAlone) {
  const std::string config =
      File("config.yaml",
           "classes: {rdt: {partitions: {all: {l3Allocation: 100%, classes: {gold: {l3Allocation: "
           "50%}}}}}}\n");
  const std::vector<std::string> machine = {"-topology", "synthetic:package:2 l3:1 core:4 pu:1",
                                            "-config", config, "-rdt"};
  const auto with = [&](const std::string& rdt) {
    std::vector<std::string> arguments = machine;
    arguments.push_back(rdt);
    return arguments;
  };
  EXPECT_EQ(Simulate(with("l3:20")).out, "CLASS  SCHEMATA\ngold   L3:0=3ff;1=3ff\n");
  ExpectError(with("l4:20"), "-rdt: \"l4:20\"");
  ExpectError(with("mb:10"), "not supported by system");
}

TEST_F(SimulateTest, RefusesAPolicyWhoseClassesDoNotExist) {
  const std::string config =
      File("config.yaml",
           "policy:\n  Active: static\n  ReservedResources: {CPU: 1}\n  balloons:\n"
           "    balloonTypes: [{name: x, cpuClass: fast}]\n");
  const std::string pods = File("pods.yaml", "delete: default/a\n");
  ExpectError(
      {"-topology", "synthetic:core:8 pu:1", "-config", config, "-policy", "balloons", pods},
      "config.yaml:5: policy.balloons: balloonTypes x: cpuClass \"fast\"");
}

TEST_F(SimulateTest, TakesAPolicyObjectOfNriPlugins) {
  const std::string config = File("object.yaml", R"(
apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
metadata: {name: default, namespace: kube-system}
spec: {reservedResources: {cpu: "1"}, balloonTypes: [{name: x, namespaces: [ns], minCPUs: 2}]}
)");
  const std::string pod = File("pod.yaml", R"(
kind: Pod
metadata: {name: a, namespace: ns}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
)");
  const std::string out = OutputOf({"-topology", kFourCpus, "-config", config, "-o", "json", pod});
  EXPECT_THAT(out, HasSubstr("x[0]"));
  const std::string mistyped = File("mistyped.yaml", R"(
apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
spec: {balloonTypes: [{name: x, minCPU: 2}]}
)");
  ExpectError({"-topology", kFourCpus, "-config", mistyped, pod},
              mistyped + " (converted):7: policy.balloons.balloonTypes[0].minCPU: unknown key");
}

}  // namespace
}  // namespace resmgr
