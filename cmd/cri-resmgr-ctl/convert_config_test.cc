// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/convert_config.h"

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cmd/cri-resmgr-ctl/testing/ctl_runner.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using resmgr::test::Ctl;
using resmgr::test::Must;
using resmgr::test::Outcome;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Input(std::string_view kind) {
  return fmt::format("{}/cmd/cri-resmgr-ctl/testdata/convert/{}.yaml", RESMGR_SOURCE_DIR, kind);
}

// The samples are what docs/migration.md shows, and the daemon accepts them (documentation_test).
TEST(ConvertConfigTest, GivesTheSamplesOfTheMigrationPage) {
  for (const std::string_view kind : ConvertibleKinds()) {
    const Outcome outcome = Ctl({"config", "convert", "-from", std::string(kind), Input(kind)});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string sample =
        Read(fmt::format("{}/sample-configs/migration/from-{}.yaml", RESMGR_SOURCE_DIR, kind));
    EXPECT_EQ(outcome.out, sample.substr(sample.find('\n') + 1)) << kind;
    EXPECT_THAT(outcome.err, HasSubstr("note: "));
  }
}

TEST(ConvertConfigTest, JsonHasTheConfigurationAndItsNotes) {
  const std::vector<std::string> convert = {"config", "convert", "-from", "nri-plugins",
                                            Input("nri-plugins")};
  std::vector<std::string> as_json = convert;
  as_json.insert(as_json.end(), {"-o", "json"});
  const auto reply = nlohmann::json::parse(Ctl(as_json).out);
  EXPECT_EQ(reply.at("yaml"), Ctl(convert).out);
  EXPECT_FALSE(reply.at("notes").empty());
}

TEST(ConvertConfigTest, TopologyAwareKeepsItsCpusOneLevelUp) {
  const auto converted = Must(ConvertConfig(
      "nri-plugins",
      "{kind: TopologyAwarePolicy, spec: {reservedResources: {cpu: 750m}, pinCPU: true, log: {}}}",
      "t.yaml"));
  EXPECT_THAT(converted.yaml, HasSubstr("ReservedResources"));
  EXPECT_THAT(converted.notes, ElementsAre(HasSubstr("log")));
  EXPECT_TRUE(IsPolicyObject("{kind: BalloonsPolicy, spec: {}}"));
  EXPECT_FALSE(IsPolicyObject("policy: {Active: static}"));
  EXPECT_FALSE(IsPolicyObject("{"));
}

std::vector<std::string> NotesOf(std::string_view kind, std::string_view text) {
  const StatusOr<ConvertedConfig> converted = ConvertConfig(kind, text, "a.yaml");
  EXPECT_TRUE(converted.ok()) << converted.status();
  return converted.ok() ? converted->notes : std::vector<std::string>();
}

// The one key of `agent` that has an effect here.
TEST(ConvertConfigTest, KeepsWhetherTheKubeletIsAsked) {
  for (const std::string_view kind : {"BalloonsPolicy", "TopologyAwarePolicy"}) {
    const auto converted =
        Must(ConvertConfig("nri-plugins",
                           fmt::format("{{kind: {}, spec: {{reservedResources: {{cpu: 1}}, agent: "
                                       "{{nodeResourceTopology: true, podResourceAPI: false}}}}}}",
                                       kind),
                           "a.yaml"));
    EXPECT_THAT(converted.yaml, HasSubstr("podResourceAPI: false"));
    EXPECT_THAT(converted.notes, ElementsAre("agent.nodeResourceTopology is left out"));
  }
  EXPECT_THAT(NotesOf("nri-plugins", "{kind: TopologyAwarePolicy, spec: {agent: {}}}"),
              ElementsAre("agent is left out: see docs/migration.md"));
}

// `control` of nri-plugins, in the schemas of both projects.
TEST(ConvertConfigTest, ControlBecomesClasses) {
  const auto converted = Must(ConvertConfig("nri-plugins", R"(
kind: BalloonsPolicy
spec:
  reservedResources: {cpu: 1}
  balloonTypes: [{name: x, cpuClass: fast, rdtClass: gold}]
  control:
    cpu: {classes: {fast: {minFreq: 2000000, maxFreq: 3800000, energyPerformancePreference: 0}}}
    rdt:
      enable: true
      usePodQoSAsDefaultClass: true
      partitions: {all: {l3Allocation: "100%", classes: {gold: {l3Allocation: "60%"}}}}
    blockio: {enable: true, classes: {slow: [{Weight: 80}]}}
    other: {}
)",
                                            "a.yaml"));
  EXPECT_THAT(converted.yaml, HasSubstr("classes:\n  cpu:\n    -\n      name: fast\n"));
  EXPECT_THAT(converted.yaml, HasSubstr("DefaultByQoS: true"));
  EXPECT_THAT(converted.yaml, HasSubstr("    partitions:\n      all:\n"));
  EXPECT_THAT(converted.yaml, HasSubstr("  blockio:\n    Classes:\n      slow:\n"));
  EXPECT_THAT(converted.notes,
              testing::IsSupersetOf({HasSubstr("energyPerformancePreference was read and never"),
                                     HasSubstr("prefix cri-resmgr."),
                                     HasSubstr("control.other is left out")}));
  EXPECT_FALSE(
      ConvertConfig("nri-plugins", "{kind: BalloonsPolicy, spec: {control: {cpu: 1}}}", "f").ok());
}

// The other projects ignore some wrong values, and refuse others only when they are used.
TEST(ConvertConfigTest, WrongValuesAreToldWithTheirPlaceInTheResult) {
  EXPECT_THAT(
      NotesOf("nri-plugins", R"(
kind: BalloonsPolicy
spec:
  reservedResources: {cpu: 1}
  idleCPUClass: none
  balloonTypes: [{name: x, minCPUs: -3, cpuClass: fast, rdtClass: gold, irqClaim: ["["]}]
  control:
    cpu: {classes: {fast: {minFreq: much}}}
    rdt: {enable: true, partitions: {all: {l3Allocation: "130%", classes: {silver: {}}}}}
    blockio: {enable: true, classes: {slow: [{Weight: 5}]}}
)"),
      testing::IsSupersetOf(
          {testing::ContainsRegex("refuses the result: result:[0-9]+: .*minCPUs"),
           testing::ContainsRegex("refuses the result: result:[0-9]+: .*irqClaim"),
           testing::ContainsRegex("refuses the result: result:[0-9]+: classes.cpu.*much"),
           testing::ContainsRegex("refuses the result: result:[0-9]+: classes.rdt.*130%"),
           testing::ContainsRegex("refuses the result: result:[0-9]+: classes.blockio.*")}));
  EXPECT_THAT(NotesOf("nri-plugins", R"(
kind: BalloonsPolicy
spec:
  reservedResources: {cpu: 1}
  idleCPUClass: quiet
  balloonTypes: [{name: x, cpuClass: fast, rdtClass: gold}]
)"),
              ElementsAre(HasSubstr("idleCPUClass \"quiet\": there is no such class"),
                          HasSubstr("cpuClass \"fast\": there is no such class"),
                          HasSubstr("rdtClass \"gold\": there is no such class")));
}

TEST(ConvertConfigTest, KeysOfSpeedSelectAreTold) {
  EXPECT_THAT(
      NotesOf("nri-plugins", R"(
kind: TopologyAwarePolicy
spec:
  reservedResources: {cpu: 1}
  cpuClasses: [{name: high, maxFreq: turbo, pctPriority: high}, {name: pinned, sstClosID: 2}]
  control: {cpu: {classes: {low: {maxFreq: 1000000, pctPriority: low}}}}
)"),
      testing::IsSupersetOf(
          {testing::ContainsRegex("refuses the result: result:[0-9]+: .*pctPriority: is not "
                                  "supported: Speed Select"),
           testing::ContainsRegex("refuses the result: result:[0-9]+: .*sstClosID: is not "
                                  "supported: Speed Select"),
           testing::ContainsRegex("control.cpu.classes.low.pctPriority is left out")}));
}

// A control that is switched off in the source stays off.
TEST(ConvertConfigTest, AControlThatIsOffIsLeftOut) {
  const auto converted = Must(ConvertConfig(
      "nri-plugins",
      "{kind: TopologyAwarePolicy, spec: {reservedResources: {cpu: 1}, control: {rdt: {enable: "
      "false, partitions: {}}, blockio: {enable: false}}}}",
      "a.yaml"));
  EXPECT_THAT(converted.yaml, testing::Not(HasSubstr("classes:")));
  EXPECT_THAT(converted.notes, ElementsAre(HasSubstr("control.rdt.enable is false"),
                                           HasSubstr("control.blockio.enable is false")));
}

// Modules beside `policy`, in a file and in a ConfigMap.
TEST(ConvertConfigTest, ModulesOfCriResourceManagerBecomeClasses) {
  for (const std::string_view text :
       {"policy: {Active: balloons, balloons: {BalloonTypes: [{Name: x, CpuClass: fast}]}}\n"
        "cpu: {classes: {fast: {maxFreq: 2000000}}}\n",
        "data:\n"
        "  policy: '{Active: balloons, balloons: {BalloonTypes: [{Name: x, CpuClass: fast}]}}'\n"
        "  cpu: '{classes: {fast: {maxFreq: 2000000}}}'\n"}) {
    const auto converted = Must(ConvertConfig("balloons", text, "a.yaml"));
    EXPECT_THAT(converted.yaml, HasSubstr("classes:\n  cpu:\n    -\n      name: fast\n"));
  }
}

// Notes name keys that are left out, and keys that are read without effect.
TEST(ConvertConfigTest, NamesEveryKeyOfABalloonsPolicyWithoutEffect) {
  EXPECT_THAT(NotesOf("nri-plugins", R"(
apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
metadata: {name: group.gpu}
spec:
  reservedResources: {cpu: "1"}
  control: {rdt: {enable: true}}
  idleCPUClass: idle
  showContainersInNrt: true
  balloonTypes:
  - {name: x, cpuClass: turbo, irqMode: sink, preferCloseToDevices: ["podresourceapi:x.com/nic"]}
status: {}
)"),
              ElementsAre("status is left out", HasSubstr("ConfigMap cri-resmgr-config.group.gpu"),
                          HasSubstr("control.rdt: groups that others make are not used"),
                          HasSubstr("idleCPUClass \"idle\": there is no such class"),
                          HasSubstr("cpuClass \"turbo\": there is no such class"),
                          HasSubstr("without effect: showContainersInNrt")));
}

TEST(ConvertConfigTest, NamesEveryKeyThatAConfigMapLoses) {
  EXPECT_THAT(
      NotesOf("balloons", R"(
kind: ConfigMap
metadata: {name: cri-resmgr-config.default}
immutable: true
data:
  rdt: "{}"
  logger: "Debug: policy"
  policy: |
    Active: balloons
    topology-aware: {PinCPU: true}
    balloons:
      BalloonTypes: [{Name: default, CpuClass: slow}]
)"),
      ElementsAre("data.logger is left out", "immutable is left out",
                  "policy.topology-aware is left out",
                  HasSubstr("balloonTypes default: cpuClass \"slow\": there is no such class")));
}

TEST(ConvertConfigTest, NamesEveryKeyThatPoolsLose) {
  EXPECT_THAT(
      NotesOf("podpools", R"(
dump: {}
policy:
  podpools:
    PinCPU: true
    Debug: true
    Pools:
    - {Name: reserved, CPU: 1}
    - {Name: default, CPU: 2, MaxPods: 7}
    - {Name: one, CPU: 1, Instances: 2, Color: blue}
)"),
      ElementsAre("dump is left out", HasSubstr("pool reserved"),
                  "policy.podpools.Pools[default].MaxPods is left out",
                  HasSubstr("default[0] grows"), "policy.podpools.Pools[one].Color is left out",
                  HasSubstr("full pool refuses"), "policy.podpools.Debug is left out"));
  EXPECT_THAT(NotesOf("static-pools", R"(
policy:
  static-pools:
    labelNode: true
    pools: {a: {exclusive: true, color: red, cpuLists: [{Cpuset: "2", Socket: 0}]}}
)"),
              ElementsAre("policy.static-pools.pools.a.color is left out",
                          "policy.static-pools.pools.a.cpuLists[0].Socket is left out",
                          HasSubstr("cmk isolate"), "policy.static-pools.labelNode is left out"));
  EXPECT_THAT(NotesOf("dynamic-pools", R"(
policy:
  dynamic-pools: {Rate: 1, DynamicPoolTypes: [{Name: a, CpuClass: fast}]}
)"),
              ElementsAre("policy.dynamic-pools.Rate is left out", HasSubstr("followUse"),
                          HasSubstr("balloonTypes a: cpuClass \"fast\"")));
}

TEST(ConvertConfigTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Ctl({"config", "convert", "-from", "podpool", Input("podpools")}).err,
              HasSubstr("did you mean podpools?"));
  EXPECT_THAT(Ctl({"config", "convert", Input("podpools")}).err, HasSubstr("-from KIND"));
  EXPECT_THAT(Ctl({"config", "convert", "-from", "balloons", Input("podpools")}).err,
              HasSubstr("there is no policy.balloons"));
  EXPECT_THAT(Ctl({"config", "convert", "-from", "nri-plugins", Input("podpools")}).err,
              HasSubstr("not a BalloonsPolicy"));
  EXPECT_THAT(Ctl({"config", "check", "-from", "podpools", Input("podpools")}).err,
              HasSubstr("-from is for config convert"));
}

TEST(ConvertConfigTest, TheFileMayBeGivenAsForKubectl) {
  const std::string file = Input("podpools");
  EXPECT_EQ(Ctl({"config", "convert", "-from", "podpools", "-f", file}).out,
            Ctl({"config", "convert", "-from", "podpools", file}).out);
  EXPECT_THAT(Ctl({"config", "check", "-f", file, file}).err, HasSubstr("config takes"));
  EXPECT_THAT(Ctl({"config", "check", "-f", file, "-socket", "/nowhere"}).err,
              HasSubstr("/nowhere"));
}

// As podpools has it, the default pool without CPUs of its own has the reserved ones.
TEST(ConvertConfigTest, ADefaultPoolNeedsNoCpus) {
  const auto converted =
      Must(ConvertConfig("podpools", "policy: {podpools: {Pools: [{Name: default}]}}", "a.yaml"));
  EXPECT_THAT(converted.yaml, Not(HasSubstr("minCPUs")));
  EXPECT_THAT(converted.notes, Not(Contains(HasSubstr("refuses the result"))));
}

TEST(ConvertConfigTest, APoolWithoutListsIsNoted) {
  EXPECT_THAT(NotesOf("static-pools", "policy: {static-pools: {pools: {a: {exclusive: true}}}}"),
              Contains("policy.static-pools.pools.a has no cpuLists and is left out"));
}

// The line is that of the text within the key.
TEST(ConvertConfigTest, ErrorsNameTheirPlaceOnce) {
  const auto error = [](std::string_view kind, std::string_view text) {
    return std::string(Message(ConvertConfig(kind, text, "a.yaml").status()));
  };
  EXPECT_THAT(error("podpools", "data:\n  logger: x\n  policy: |\n    a: 1\n    a: 2\n"),
              StartsWith("a.yaml key policy:2: duplicate key"));
  EXPECT_EQ(error("nri-plugins", "{kind: BalloonsPolicy, spec: {control: {rdt: [1]}}}"),
            "a.yaml:1: control.rdt: must be a map, not a list");
  EXPECT_EQ(error("nri-plugins", "kind: Pod"),
            "a.yaml:1: not a BalloonsPolicy or TopologyAwarePolicy with a spec");
  EXPECT_EQ(error("nri-plugins", "kind: List"),
            "a.yaml:1: not a BalloonsPolicy or TopologyAwarePolicy with a spec; give its "
            "items one by one, as kubectl get KIND NAME -o yaml prints them");
  EXPECT_EQ(error("podpools", "data: {}"), "a.yaml:1: there is no module `policy`");
  EXPECT_EQ(error("podpools", "policy: {Active: x}"), "a.yaml:1: there is no policy.podpools");
}

// A value of another kind was taken for an empty one.
TEST(ConvertConfigTest, RefusesValuesOfAnotherKind) {
  const auto error = [](std::string_view kind, std::string_view text) {
    return std::string(Message(ConvertConfig(kind, text, "a.yaml").status()));
  };
  EXPECT_THAT(error("podpools", "policy: {podpools: 3}"), HasSubstr("a.yaml:1: policy.podpools"));
  EXPECT_THAT(error("podpools", "policy: {podpools: {Pools: 3}}"), HasSubstr("Pools: must be"));
  EXPECT_THAT(error("podpools", "policy: {podpools: {Pools: [3]}}"), HasSubstr("Pools[0]"));
  EXPECT_THAT(error("podpools", "policy: {podpools: {Pools: [{Name: [a]}]}}"), HasSubstr("Name"));
  EXPECT_THAT(error("podpools", "policy: [podpools]"), HasSubstr("policy: must be a map"));
  EXPECT_THAT(error("podpools", "{data: 3}"), HasSubstr("data: must be a map"));
  EXPECT_THAT(error("static-pools", "policy: {static-pools: {pools: [a]}}"),
              HasSubstr("pools: must be a map"));
  EXPECT_THAT(error("static-pools", "policy: {static-pools: {pools: {a: {cpuLists: 3}}}}"),
              HasSubstr("cpuLists: must be"));
  EXPECT_THAT(error("dynamic-pools", "policy: {dynamic-pools: {DynamicPoolTypes: {}}}"),
              HasSubstr("DynamicPoolTypes: must be"));
  EXPECT_THAT(error("balloons", "policy: {balloons: {BalloonTypes: [a]}}"),
              HasSubstr("BalloonTypes[0]: must be a map"));
  EXPECT_THAT(error("nri-plugins", "{kind: BalloonsPolicy, spec: [1]}"),
              HasSubstr("spec: must be a map"));
  EXPECT_THAT(error("nri-plugins", "[1]"), HasSubstr("must be a map"));
  EXPECT_EQ(error("podpools", "policy: {podpools: {Pools: []}}"), "");
}

}  // namespace
}  // namespace resmgr
