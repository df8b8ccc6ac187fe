// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/print_config.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Pinned {
  bool pin = false;
};

void DescribePinned(ConfigSection& section, Pinned& pinned) {
  section.Bool("PinCPU", pinned.pin, "whether CPUs are pinned");
}

// Replaces the checks of the policies and of the dump.
ConfigChecks Checks() {
  return {.policies = {"null", "static", "static-plus"},
          .dump_spec = [](std::string_view spec) -> Status {
            return spec == "bad" ? InvalidArgument("\"bad\" is not a rule") : OkStatus();
          },
          .policy_section = [](std::string_view policy, const ConfigNode& section,
                               std::vector<ConfigKey>* keys) -> Status {
            return ReadSection<Pinned>(&section, PolicySectionPath(policy), DescribePinned, keys)
                .status();
          }};
}

Config Parsed(std::string_view text) {
  const StatusOr<Config> config = ParseConfig(text, "cri.yaml", Checks());
  EXPECT_TRUE(config.ok()) << Describe(config.status());
  return config.value_or(Config{});
}

std::string ParseError(std::string_view text) {
  const Status status = ParseConfig(text, "cri.yaml", Checks()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
  return std::string(Message(status));
}

constexpr std::string_view kEverything = R"(
policy:
  Active: static-plus            # a comment
  AvailableResources: {CPU: 'cpuset:0-15'}
  ReservedResources: {CPU: 750m}
  StartFailurePolicy: ignore
  RefusedUpdates: write
  static: {PinCPU: true}
dump: {Config: 'off:.*,full:CreateContainer', File: /tmp/cri.dump}
logger: {Debug: '*', Level: warn, Source: 'policy,dump', Format: json}
)";

TEST(ConfigTest, ReadsEveryKey) {
  const Config config = Parsed(kEverything);
  EXPECT_EQ(config.policy.active, "static-plus");
  EXPECT_EQ(config.policy.available_cpus->cpus, CpuSet::Range(0, 15));
  EXPECT_EQ(config.policy.reserved_cpus->quantity.value, 750);
  EXPECT_EQ(config.policy.reserved_cpus->origin, "cri.yaml:5: policy.ReservedResources.CPU");
  EXPECT_EQ(config.policy.start_failure, FailurePolicy::kIgnore);
  EXPECT_EQ(config.policy.refused_updates, RefusedUpdates::kWrite);
  ASSERT_EQ(config.policy.sections.size(), 1U);
  EXPECT_EQ(config.policy.sections.at("static").entries[0].key, "PinCPU");
  EXPECT_THAT(config.dump.specs, ElementsAre("off:.*,full:CreateContainer"));
  EXPECT_EQ(config.dump.file, "/tmp/cri.dump");
  EXPECT_EQ(config.logger.debug, "*");
  EXPECT_EQ(config.logger.level, "warn");
  EXPECT_EQ(config.logger.source, "policy,dump");
  EXPECT_EQ(config.logger.format, "json");
}

TEST(ConfigTest, EmptyTextsAndSectionsAreTheDefaults) {
  for (const char* text :
       {"", "# nothing\n", "policy:\n", "{}", "policy: {}\ndump:\nlogger:\n",
        "policy:\n  ReservedResources:\n  StartFailurePolicy:\n  static:\nlogger: {Debug: }\n"}) {
    const Config config = Parsed(text);
    EXPECT_EQ(config.policy.active, "null") << text;
    EXPECT_EQ(config.policy.reserved_cpus, std::nullopt) << text;
    EXPECT_EQ(config.policy.start_failure, FailurePolicy::kFail) << text;
    EXPECT_EQ(config.policy.refused_updates, RefusedUpdates::kWait) << text;
    EXPECT_THAT(config.dump.specs, IsEmpty()) << text;
    EXPECT_EQ(config.logger.level, "info") << text;
  }
}

TEST(ConfigTest, NullIsThePolicyOfThatName) {
  for (const char* text : {"policy: {Active: null}", "policy: {Active: \"null\"}",
                           "policy: {Active: ~}", "policy:\n  Active:\n"}) {
    EXPECT_EQ(Parsed(text).policy.active, "null") << text;
  }
}

TEST(ConfigTest, PoliciesHaveTheirOlderNamesToo) {
  EXPECT_EQ(Parsed("policy: {Active: none, none: {PinCPU: true}}").policy.active, "null");
  ConfigChecks checks = Checks();
  checks.policies.emplace_back("topology-aware");
  const auto parse = [&checks](std::string_view text) {
    return ParseConfig(text, "cri.yaml", checks);
  };
  const StatusOr<Config> config = parse("policy: {Active: memtier, memtier: {PinCPU: false}}");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->policy.active, "topology-aware");
  EXPECT_EQ(config->policy.sections.count("topology-aware"), 1U);
  EXPECT_EQ(config->policy.sections.count("memtier"), 0U);
  EXPECT_EQ(Message(parse("policy:\n  memtier: {PinCPUs: false}\n").status()),
            "cri.yaml:2: policy.topology-aware.PinCPUs: unknown key; did you mean PinCPU?");
  EXPECT_EQ(Message(parse("policy:\n  topology-aware: {}\n  memtier: {}\n").status()),
            "cri.yaml:3: policy.memtier: is another name of topology-aware, which is there, too");
  EXPECT_EQ(ParseError("policy: {Active: memtier}"),
            "cri.yaml:1: policy.Active: there is no policy \"memtier\"; there are null, static, "
            "static-plus")
      << "where a binary has no such policy";
}

TEST(ConfigTest, KeysMatchWithoutRegardToCase) {
  const Config config = Parsed(
      "POLICY:\n  active: static\n  reservedresources:\n    cpu: 2\n  STATIC: {pincpu: yes}\n");
  EXPECT_EQ(config.policy.active, "static");
  EXPECT_EQ(config.policy.reserved_cpus->quantity.value, 2000);
  EXPECT_EQ(config.policy.sections.count("static"), 1U);
}

TEST(ConfigTest, TakesDottedKeysAtTheTop) {
  const Config config =
      Parsed("policy.Active: static\npolicy.ReservedResources.CPU: 1\nlogger.Debug: dump\n");
  EXPECT_EQ(config.policy.active, "static");
  EXPECT_EQ(config.policy.reserved_cpus->quantity.value, 1000);
  EXPECT_EQ(config.logger.debug, "dump");
}

TEST(ConfigTest, TakesNumbersAndListsAsCpus) {
  EXPECT_EQ(Parsed("policy: {AvailableResources: {CPU: 4}}").policy.available_cpus->quantity.value,
            4000);
  EXPECT_EQ(
      Parsed("policy: {AvailableResources: {CPU: 1.5}}").policy.available_cpus->quantity.value,
      1500);
  EXPECT_EQ(Parsed("policy:\n  AvailableResources:\n    CPU: 1,3\n").policy.available_cpus->cpus,
            (CpuSet{1, 3}));
  EXPECT_EQ(Parsed("policy: {AvailableResources: {CPU: [0, 2, 4-6]}}").policy.available_cpus->cpus,
            (CpuSet{0, 2, 4, 5, 6}));
  EXPECT_EQ(Parsed("policy: {ReservedResources: {CPU: [3]}}").policy.reserved_cpus->cpus,
            (CpuSet{3}))
      << "a CPU, where 3 alone is a number of them";
  EXPECT_THAT(ParseError("policy: {AvailableResources: {CPU: [0, [1]]}}"),
              HasSubstr("single values"));
  EXPECT_THAT(ParseError("policy: {AvailableResources: {CPU: [0, x]}}"), HasSubstr("x"));
}

TEST(ConfigTest, UnknownKeysAreErrorsWithTheClosestName) {
  EXPECT_EQ(ParseError("polcy: {Active: static}"),
            "cri.yaml:1: polcy: unknown key; did you mean policy?");
  EXPECT_EQ(ParseError("policy:\n  Activ: static\n"),
            "cri.yaml:2: policy.Activ: unknown key; did you mean Active?");
  EXPECT_EQ(ParseError("policy:\n  ReservedResources:\n    Memory: 1G\n"),
            "cri.yaml:3: policy.ReservedResources.Memory: unknown key; known here: CPU");
  EXPECT_EQ(ParseError("policy: {statics: {}}"),
            "cri.yaml:1: policy.statics: unknown key; did you mean static?");
  EXPECT_EQ(ParseError("policy:\n  static:\n    PinCpus: true\n"),
            "cri.yaml:3: policy.static.PinCpus: unknown key; did you mean PinCPU?");
}

TEST(ConfigTest, ObjectsOfKubernetesAreErrorsThatNameTheirPart) {
  EXPECT_EQ(
      ParseError("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cri-resmgr-config.default}\n"
                 "data:\n  policy: |\n    Active: static\n"),
      "cri.yaml:1: this is a Kubernetes ConfigMap, not a configuration: give the contents of "
      "its data, each key of it as a key of the file and its text as YAML below that");
  EXPECT_EQ(ParseError("kind: BalloonsPolicy\napiVersion: config.nri/v1alpha1\n"
                       "metadata: {name: default}\nspec: {reservedResources: {cpu: 750m}}\n"),
            "cri.yaml:1: this is a Kubernetes BalloonsPolicy, not a configuration: convert it with "
            "cri-resmgr-ctl config convert -from nri-plugins FILE");
  EXPECT_EQ(ParseError("kind: Pod\napiVersion: v1\nspec: {containers: []}\n"),
            "cri.yaml:1: this is a Kubernetes Pod, not a configuration");
  EXPECT_EQ(ParseError("kind: List\napiVersion: v1\nitems: []\n"),
            "cri.yaml:1: this is a Kubernetes List, not a configuration: give one of its items");
  EXPECT_THAT(ParseError("kind: ConfigMap\n"), HasSubstr("kind: unknown key"))
      << "no object without its version";
}

TEST(ConfigTest, UnknownPoliciesAreErrorsWithTheClosestName) {
  EXPECT_EQ(ParseError("policy: {Active: statik}"),
            "cri.yaml:1: policy.Active: there is no policy \"statik\"; did you mean static?");
  EXPECT_EQ(ParseError("policy: {Active: 5}"),
            "cri.yaml:1: policy.Active: there is no policy \"5\"; there are null, static, "
            "static-plus");
}

TEST(ConfigTest, WrongTypesAndImpossibleValuesNameTheirPlace) {
  EXPECT_EQ(ParseError("policy: static"), "cri.yaml:1: policy: must be a map, not a single value");
  EXPECT_EQ(ParseError("- policy"), "cri.yaml:1: must be a map, not a list");
  EXPECT_EQ(ParseError("policy:\n  Active: [static]\n"),
            "cri.yaml:2: policy.Active: must be a policy's name, not a list");
  EXPECT_EQ(ParseError("policy:\n  static: yes\n"),
            "cri.yaml:2: policy.static: must be a map, not a single value");
  EXPECT_EQ(ParseError("policy:\n  ReservedResources:\n    CPU: 0\n"),
            "cri.yaml:3: policy.ReservedResources.CPU: must be more than 0 CPUs");
  EXPECT_EQ(ParseError("policy:\n  ReservedResources:\n    CPU: 5K\n"),
            "cri.yaml:3: policy.ReservedResources.CPU: \"5K\" is not a quantity: no unit is called "
            "\"K\"");
  EXPECT_EQ(ParseError("policy:\n  Active: static\n  StartFailurePolicy: perhaps\n"),
            "cri.yaml:3: policy.StartFailurePolicy: \"perhaps\" is not one of fail, ignore");
  EXPECT_EQ(ParseError("policy: {RefusedUpdates: perhaps}"),
            "cri.yaml:1: policy.RefusedUpdates: \"perhaps\" is not one of wait, write");
  EXPECT_EQ(ParseError("policy:\n  StartFailurePolicy: [ignore]\n"),
            "cri.yaml:2: policy.StartFailurePolicy: must be a single value, not a list");
  EXPECT_EQ(ParseError("policy: {static: {PinCPU: perhaps}}"),
            "cri.yaml:1: policy.static.PinCPU: \"perhaps\" is not true or false");
  EXPECT_EQ(ParseError("dump: {Config: [x, bad]}"),
            "cri.yaml:1: dump.Config: \"bad\" is not a rule");
  EXPECT_THAT(ParseError("logger:\n  Level: loud\n"), HasSubstr("cri.yaml:2: logger.Level: "));
  EXPECT_THAT(ParseError("logger:\n  Format: xml\n"), HasSubstr("cri.yaml:2: logger.Format: "));
  EXPECT_THAT(ParseError("logger:\n  Debug: 'a:b:c'\n"), HasSubstr("cri.yaml:2: logger.Debug: "));
}

TEST(ConfigTest, ACpuListThatBecameACommentIsNotTakenForNothing) {
  EXPECT_EQ(ParseError("policy:\n  ReservedResources:\n    CPU: #0-3\n"),
            "cri.yaml:3: policy.ReservedResources.CPU: has no value (a value that begins with # "
            "must be in quotes)");
}

TEST(ConfigTest, AConfigMapsMistakeNamesItsKeyAndLine) {
  const auto read = [](const std::string& policy) {
    return ParseConfigMap({{"policy", policy}}, "agent", Checks());
  };
  EXPECT_EQ(read("Active: static\nstartfailurepolicy: Ignore\n")->policy.start_failure,
            FailurePolicy::kIgnore);
  EXPECT_EQ(
      Message(read("Active: static\nStartFailurePolicy: perhaps\n").status()),
      "agent key policy:2: policy.StartFailurePolicy: \"perhaps\" is not one of fail, ignore");
}

TEST(ConfigTest, AConfigMapWithAnEmptyPolicyDoesNotSwitchThePolicyOff) {
  for (const char* const empty : {"", "\n", "# Active: static\n", "{}", "null"}) {
    EXPECT_EQ(Message(ParseConfigMap({{"Policy", empty}}, "agent", Checks()).status()),
              "agent key Policy: is empty, which would switch off the policy: name one by Active, "
              "or say null");
  }
  EXPECT_TRUE(ParseConfigMap({{"policy", "Active: null"}}, "agent", Checks()).ok());
  EXPECT_TRUE(ParseConfigMap({{"logger", ""}}, "agent", Checks()).ok()) << "-policy may name it";
}

TEST(ConfigTest, EachKeyHasAHelpAndOneDescription) {
  const std::vector<ConfigKey> keys = AllConfigKeys(Checks());
  std::set<std::string> paths;
  std::set<std::string> flags;
  for (const ConfigLeaf& leaf : LeavesOf(keys)) {
    EXPECT_TRUE(paths.insert(leaf.path).second) << leaf.path;
    EXPECT_NE(leaf.key->help, "") << leaf.path;
    const std::string& flag = leaf.key->flag;
    EXPECT_TRUE(flag.empty() || flags.insert(flag).second) << flag;
  }
  EXPECT_GE(paths.size(), 45U);
  EXPECT_EQ(paths.count("policy.static.PinCPU"), 1U);
  EXPECT_EQ(paths.count("runtimeClasses.HANDLER.Overhead.cpu"), 1U);
  EXPECT_GE(flags.size(), 14U);
}

constexpr std::string_view kDefaults = R"(policy:
  Active: "null"
  StartFailurePolicy: fail
  RefusedUpdates: wait
dump:
  Config: []
  File: ""
logger:
  Level: info
  Debug: none
  Source: all
  Format: text
audit:
  Interval: 1m
  Repair: false
usage:
  Interval: 10s
  PerContainerMetrics: false
  RebalanceInterval: disabled
  RebalanceMoves: 5
classes:
  isolation:
    Interrupts: leave
    Workqueues: leave
    Quota: keep
    Partition: none
    Governor: ""
  irq:
    Controllable:
      - "*"
    Balance: detect
    BalanceFile: ""
  memory: []
  MemoryAnnotations: []
  rdt:
    Enable: true
    Prefix: cri-resmgr.
    Assign: auto
    Monitoring: none
    DefaultByQoS: false
    Force: false
    options:
      l2:
        optional: false
      l3:
        optional: false
      mb:
        optional: false
    partitions: {}
  blockio:
    Assign: auto
  cpu: []
  turboDomain: package
  scheduling: []
  AllowedNamespaces:
    isolation: []
    memory: []
    rdt: []
    blockio: []
    cpu: []
    scheduling: []
  Unknown: refuse
  Absent: warn
cpuFiles:
  Containers: none
  MountPath: /run/cri-resmgr
nrt:
  Publish: true
  Alignment: prefer
  Pools: false
dra:
  Enable: false
  Driver: cpu.cri-resmgr.intel.com
  Compatible: false
  Devices: numa
  Metadata: false
nri:
  Host:
    Socket: disabled
    PluginPath: /opt/nri/plugins
    PluginConfigPath: /etc/nri/conf.d
    ExternalPlugins: true
    RegistrationTimeout: 5s
    RequestTimeout: 2s
    SyncTimeout: 30s
    CallTimeout: 20s
    Strikes: 3
    Validator:
      RejectOCIHooks: false
      RejectRuntimeDefaultSeccomp: false
      RejectUnconfinedSeccomp: false
      RejectCustomSeccomp: false
      RejectNamespaces: false
      RejectSysctls: false
      TolerateMissingPluginsAnnotation: ""
    Unsupported: {}
    Plugins: {}
hooks:
  Directory: disabled
  Timeout: 2s
  SkipKey: runtimeproxy.koordinator.sh/skip-hookserver
  SkipValue: "true"
runtimes: {}
runtimeClasses: {}
)";

TEST(PrintConfigTest, PrintsTheDefaults) {
  EXPECT_EQ(PrintConfig(Config{}), kDefaults);
}

TEST(PrintConfigTest, PrintsEveryKey) {
  const std::string printed = PrintConfig(Parsed(kEverything));
  EXPECT_EQ(printed.substr(0, printed.find("audit:")), R"(policy:
  Active: static-plus
  AvailableResources:
    CPU: "cpuset:0-15"
  ReservedResources:
    CPU: 750m
  StartFailurePolicy: ignore
  RefusedUpdates: write
  static:
    PinCPU: true
dump:
  Config:
    - "off:.*,full:CreateContainer"
  File: /tmp/cri.dump
logger:
  Level: warn
  Debug: "*"
  Source: "policy,dump"
  Format: json
)");
}

TEST(PrintConfigTest, ReadsBackToTheSame) {
  ConfigChecks checks;
  checks.policies = {"null", "static"};
  for (const std::string_view text : {
           std::string_view(),
           std::string_view("policy: {static: {a: [1, [x, {b: ~}], []], "
                            "'c d': \"x\\ny\\\"\\\\\", e: 'null', f: {}}}"),
           std::string_view("policy: {\"null\": {a: ''}, ReservedResources: {CPU: [1, 3]}}\n"
                            "dump: {Config: [\"a\", 'b # c'], File: '- x'}\n"),
           std::string_view(
               "audit: {Interval: disabled, Repair: true}\n"
               "usage: {Interval: 30s, PerContainerMetrics: true, RebalanceInterval: 1h}\n"
               "cpuFiles: {Containers: annotated, MountPath: /etc/cpus}\n"
               "nrt: {Publish: false, Alignment: refuse}\n"
               "dra: {Enable: true, Driver: cpu.example.com, Compatible: true}\n"
               "hooks: {Directory: /etc/hooks, Timeout: 90s, SkipKey: '', SkipValue: "
               "''}"),
           std::string_view(
               "nri: {Host: {Socket: /run/nri.sock, PluginPath: disabled, Strikes: 0, "
               "ExternalPlugins: false, SyncTimeout: 1m30s, Validator: {RejectSysctls: "
               "true, TolerateMissingPluginsAnnotation: example.com/tolerate}, "
               "Unsupported: {Rlimits: ignore}, Plugins: {10-logger: {FailurePolicy: "
               "fail, RequestTimeout: 1s, Required: true}, 99-last.one: }}}"),
           std::string_view("runtimes: {kata: {Socket: unix:///run/kata/cri.sock}}\n"
                            "runtimeClasses: {\"\": {Hooks: false}, kata: {Runtime: kata, Pinning: "
                            "Sandbox, Overhead: {cpu: 250m, memory: 160Mi}}, a: {Handler: kata}, "
                            "plain: {Handler: ''}}"),
       }) {
    const StatusOr<Config> config = ParseConfig(text, "f", checks);
    ASSERT_TRUE(config.ok()) << Describe(config.status());
    const std::string printed = PrintConfig(*config);
    const StatusOr<Config> again = ParseConfig(printed, "f", checks);
    ASSERT_TRUE(again.ok()) << Describe(again.status()) << "\n" << printed;
    EXPECT_EQ(PrintConfig(*again), printed);
    EXPECT_EQ(again->policy.reserved_cpus, config->policy.reserved_cpus);
    EXPECT_EQ(again->dump.specs, config->dump.specs);
    EXPECT_EQ(again->dump.file, config->dump.file);
    EXPECT_EQ(again->audit, config->audit);
    EXPECT_EQ(again->usage, config->usage);
    EXPECT_EQ(again->cpu_files, config->cpu_files);
    EXPECT_EQ(again->nrt, config->nrt);
    EXPECT_EQ(again->dra, config->dra);
    EXPECT_EQ(again->nri, config->nri);
    EXPECT_EQ(again->hooks, config->hooks);
    EXPECT_EQ(again->runtimes, config->runtimes);
  }
}

}  // namespace
}  // namespace resmgr
