// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/classes_config.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/config/config.h"
#include "pkg/config/policy_classes.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

class ClassesConfigTest : public testing::Test {
 protected:
  static StatusOr<ClassesConfig> Read(std::string_view text) {
    RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
    return config.classes;
  }
  static std::string ErrorOf(std::string_view text) {
    return std::string(Message(Read(text).status()));
  }
};

TEST_F(ClassesConfigTest, ReadsEveryKey) {
  const ClassesConfig expected{.isolation = {.interrupts = IsolationConfig::Interrupts::kIsolate,
                                             .workqueues = IsolationConfig::Workqueues::kIsolate,
                                             .quota = IsolationConfig::Quota::kLift,
                                             .partition = IsolationConfig::Partition::kIsolated,
                                             .max_latency = "10",
                                             .governor = "performance"},
                               .controllable = {"eth*", "24"},
                               .namespaces = {{"isolation", {"telco-*"}}}};
  EXPECT_EQ(Read("classes:\n"
                 "  isolation: {Interrupts: isolate, Workqueues: isolate, Quota: lift,\n"
                 "              Partition: isolated, MaxLatency: 10us, Governor: performance}\n"
                 "  irq: {Controllable: [eth*, 24]}\n"
                 "  AllowedNamespaces: {isolation: [telco-*]}\n")
                .value(),
            expected);
  for (const std::string_view text : {"", "classes:", "classes: {isolation: {}}"}) {
    EXPECT_EQ(Read(text).value(), ClassesConfig()) << text;
    EXPECT_FALSE(Read(text)->any()) << text;
  }
}

TEST_F(ClassesConfigTest, LatenciesAreKeptAsTheKernelHasThem) {
  const auto latency = [](std::string_view text) {
    return Read(fmt::format("classes: {{isolation: {{MaxLatency: {}}}}}", text))
        .value()
        .isolation.max_latency;
  };
  EXPECT_EQ(latency("1us"), "1");
  EXPECT_EQ(latency("2ms"), "2000");
  EXPECT_EQ(latency("1000ms"), "1000000");
  EXPECT_EQ(latency("n/a"), "n/a");
}

TEST_F(ClassesConfigTest, APolicyOverridesWhatItNames) {
  ConfigChecks checks;
  checks.policies = {"null", "static"};
  const Config config = ParseConfig(
                            "policy: {Active: static, static: {undisturbed: {Quota: lift}}}\n"
                            "classes: {isolation: {MaxLatency: 10us}}\n",
                            "f", checks)
                            .value();
  ClassesConfig classes = config.classes;
  OverrideIsolation(config.policy.sections.at("static"), "policy.static", classes);
  const IsolationConfig expected{.quota = IsolationConfig::Quota::kLift, .max_latency = "10"};
  EXPECT_EQ(classes.isolation, expected);
  EXPECT_EQ(classes.isolation_source, "policy.static.Undisturbed");
  OverrideIsolation(ConfigNode(), "policy.static", classes);
  EXPECT_EQ(classes.isolation, expected);
}

TEST_F(ClassesConfigTest, ClassesOfMemory) {
  const ClassesConfig config =
      Read(
          "classes:\n"
          "  memory: [{name: bronze, swaplimitratio: 0.5}, {name: kept, min: 1Mi, swapMax: max}]\n"
          "  MemoryAnnotations: [memory.high]\n"
          "  AllowedNamespaces: {memory: ['*']}\n")
          .value();
  const std::vector<MemoryClassConfig> expected = {
      {.name = "bronze", .swap_limit_ratio = 0.5},
      {.name = "kept", .min = "1048576", .swap_max = "max"}};
  EXPECT_EQ(config.memory, expected);
  EXPECT_TRUE(config.chooses());
  EXPECT_EQ(ErrorOf("classes: {memory: [{name: a}, {name: a}]}"),
            "f:1: classes.memory: \"a\" is there twice");
  EXPECT_EQ(ErrorOf("classes: {memory: [{low: 1}]}"), "f:1: classes.memory: a class has no name");
  EXPECT_NE(ErrorOf("classes: {memory: [{name: a, swaplimitratio: 1}]}").find("less than 1"),
            std::string::npos);
  for (const char* bytes : {"5x", "64m"}) {
    EXPECT_EQ(ErrorOf(fmt::format("classes: {{memory: [{{name: a, high: {}}}]}}", bytes)),
              fmt::format("f:1: classes.memory[0].high: \"{}\" is not a number of bytes, and not "
                          "\"max\"",
                          bytes));
  }
  EXPECT_EQ(ErrorOf("classes: {MemoryAnnotations: [cpu.max]}"),
            "f:1: classes.MemoryAnnotations: \"cpu.max\" is no file memory.*");
}

TEST_F(ClassesConfigTest, NamespacesMayChooseByKindAndBySingleClass) {
  const ClassesConfig config =
      Read(
          "classes:\n"
          "  AllowedNamespaces: {rdt: ['*'], Classes: {rdt/gold: [kube-*, infra], rdt/none: []}}\n"
          "  Unknown: ignore\n"
          "  Absent: refuse\n")
          .value();
  EXPECT_TRUE(config.Allows("rdt", "silver", "shop"));
  EXPECT_TRUE(config.Allows("rdt", "", "shop"));
  EXPECT_FALSE(config.Allows("rdt", "gold", "shop"));
  EXPECT_TRUE(config.Allows("rdt", "gold", "kube-system"));
  EXPECT_FALSE(config.Allows("rdt", "none", "shop"));
  EXPECT_FALSE(config.Allows("blockio", "gold", "infra"));
  EXPECT_EQ(config.unknown, ClassesConfig::Unknown::kIgnore);
  EXPECT_EQ(config.absent, ClassesConfig::Absent::kRefuse);
  EXPECT_EQ(ErrorOf("classes: {AllowedNamespaces: {Classes: {foo/bar: [a]}}}"),
            "f:1: classes.AllowedNamespaces.Classes: \"foo/bar\" is no kind and class, as in "
            "\"rdt/gold\"");
  EXPECT_EQ(ErrorOf("classes: {AllowedNamespaces: {Classes: {rdt/gold: ['a[']}}}"),
            "f:1: classes.AllowedNamespaces.Classes: \"a[\" has a [ without its ]");
}

TEST_F(ClassesConfigTest, NamespacesMayChooseByTheNameOfAClass) {
  const ClassesConfig config =
      Read(
          "classes:\n"
          "  AllowedNamespaces: {gold: [infra], silver: batch, rdt: ['*']}\n"
          "  rdt: {partitions: {p: {classes: {gold: {}, silver: {}}}}}\n"
          "  cpu: [{name: gold}]\n"
          "  scheduling: [{name: gold}]\n"
          "  memory: [{name: gold}]\n"
          "  blockio: {Classes: {gold: []}}\n")
          .value();
  for (const char* const kind : {"rdt", "cpu", "scheduling", "memory", "blockio"}) {
    EXPECT_TRUE(config.Allows(kind, "gold", "infra")) << kind;
    EXPECT_FALSE(config.Allows(kind, "gold", "shop")) << kind;
  }
  EXPECT_TRUE(config.Allows("rdt", "silver", "batch"));
  EXPECT_FALSE(config.Allows("rdt", "silver", "shop"));
  EXPECT_FALSE(config.Allows("cpu", "silver", "batch"));
  EXPECT_TRUE(config.Allows("rdt", "bronze", "shop"));
  EXPECT_EQ(ErrorOf("classes: {AllowedNamespaces: {gould: [infra]}}")
                .find("classes.AllowedNamespaces.gould: unknown key"),
            std::string("f:1: ").size());
}

TEST_F(ClassesConfigTest, AnUnknownClassIsNotedByEitherWord) {
  for (const char* const word : {"note", "Note", "ignore"})
    EXPECT_EQ(Read(fmt::format("classes: {{Unknown: {}}}", word)).value().unknown,
              ClassesConfig::Unknown::kIgnore)
        << word;
  EXPECT_EQ(Read("classes: {}").value().unknown, ClassesConfig::Unknown::kRefuse);
}

TEST_F(ClassesConfigTest, CachesAreSwitchedOffAndMonitoredAsTheKeysSay) {
  using Monitoring = RdtConfig::Monitoring;
  const auto rdt = [](std::string_view keys) {
    return Read(fmt::format("classes: {{rdt: {{{}, partitions: {{p: {{classes: {{gold: {{}}}}}}}}}}"
                            "}}",
                            keys))
        .value()
        .rdt;
  };
  EXPECT_TRUE(rdt("Enable: true").any());
  EXPECT_FALSE(rdt("Enable: false").any());
  EXPECT_EQ(rdt("Monitoring: none").monitoring, Monitoring::kNone);
  EXPECT_EQ(rdt("Monitoring: pod").monitoring, Monitoring::kPod);
  EXPECT_EQ(rdt("Monitoring: container").monitoring, Monitoring::kContainer);
}

TEST_F(ClassesConfigTest, ClassesOfCaches) {
  const RdtConfig rdt =
      Read(
          "classes:\n"
          "  rdt:\n"
          "    Assign: cpus\n"
          "    options: {mb: {optional: true}}\n"
          "    partitions:\n"
          "      fast:\n"
          "        l3Allocation: {all: 60%, '0,128-129': {unified: '0xff', code: 0-3, data: 4-7}}\n"
          "        mbAllocation: [50%, 1000MBps]\n"
          "        classes: {gold: {kubernetes: {denyPodAnnotation: true}}, '': {l2Allocation: "
          "1%}}\n")
          .value()
          .rdt;
  EXPECT_EQ(rdt.assign, RdtConfig::Assign::kCpus);
  EXPECT_TRUE(rdt.mb_optional);
  EXPECT_TRUE(rdt.any());
  const RdtPartitionConfig& fast = rdt.partitions.at("fast");
  EXPECT_EQ(fast.allocations.l3.all->unified, CachePart(CachePercent{60}));
  ASSERT_NE(fast.allocations.l3.Find(129), nullptr);
  EXPECT_EQ(fast.allocations.l3.Find(129)->code, CachePart(CacheBits{0xf}));
  EXPECT_EQ(fast.allocations.l3.Find(1)->unified, CachePart(CachePercent{60}));
  EXPECT_EQ(fast.allocations.mb.all->mbps, 1000U);
  EXPECT_TRUE(fast.classes.at("gold").denies_pod_annotation);
  EXPECT_TRUE(fast.classes.contains(""));
  EXPECT_EQ(
      ErrorOf("classes: {rdt: {partitions: {a: {l3Allocation: {0: 1x%}}}}}"),
      "f:1: classes.rdt.partitions.a.l3Allocation: 0: \"1x%\": invalid integer \"1x\"; a part "
      "is 60%, 10-40%, 0-7 or 0xff");
  EXPECT_EQ(ErrorOf("classes: {rdt: {partitions: {a: {l3Allocation: {0: 50%, 0-1: 30%}}}}}"),
            "f:1: classes.rdt.partitions.a.l3Allocation: the id 0 is given twice");
  EXPECT_EQ(
      ErrorOf(
          "classes: {rdt: {partitions: {a: {l2Allocation: {all: {unified: 5%, Unified: 3%}}}}}}"),
      "f:1: classes.rdt.partitions.a.l2Allocation: all: Unified is given twice");
  EXPECT_EQ(
      ErrorOf("classes: {rdt: {partitions: {a: {l3Allocation: 60MB}}}}"),
      "f:1: classes.rdt.partitions.a.l3Allocation: \"60MB\": invalid integer \"60MB\"; a part "
      "is 60%, 10-40%, 0-7 or 0xff");
  EXPECT_EQ(
      ErrorOf("classes: {rdt: {partitions: {a: {l3Allocation: 60%}, b: {l3Allocation: 60%}}}}"),
      "f:1: classes.rdt.partitions: the partitions' l3Allocation are 120% together, more than "
      "100%");
  EXPECT_EQ(ErrorOf("classes: {rdt: {Prefix: a/b}}"),
            "f:1: classes.rdt.Prefix: \"a/b\" can be no beginning of names");
}

// `config show` prints what was read in a form that can be read again.
TEST_F(ClassesConfigTest, ClassesOfCachesAreShownAsTheyAreRead) {
  const ClassesConfig config =
      Read(
          "classes: {rdt: {partitions: {p: {l3Allocation: {all: 10-40%, 3: '0x1f'},"
          " mbAllocation: {7: [5MBps]}, classes: {c: {l3Allocation: {all: {unified: 1%, code: 2%,"
          " data: 3%}}}}}}}}")
          .value();
  std::vector<ConfigKey> keys;
  ConfigSection writer(keys);
  ClassesConfig shown = config;
  DescribeClasses(writer, shown);
  const ConfigNode values = ValuesOf(keys);
  ClassesConfig again;
  ConfigSection reader(values, "");
  DescribeClasses(reader, again);
  ASSERT_TRUE(reader.Finish().ok());
  EXPECT_EQ(again.rdt, config.rdt);
}

TEST_F(ClassesConfigTest, MistakesHaveTheirPlace) {
  for (const char* const wrong : {"0us", "10", "1001ms", "10s", "-1us", "us"}) {
    EXPECT_EQ(ErrorOf(fmt::format("classes: {{isolation: {{MaxLatency: {}}}}}", wrong)),
              fmt::format("f:1: classes.isolation.MaxLatency: \"{}\" is not a time from 1us to "
                          "1000ms, and not \"n/a\"",
                          wrong));
  }
  EXPECT_EQ(ErrorOf("classes: {isolation: {Governor: ../x}}"),
            "f:1: classes.isolation.Governor: \"../x\" can be no governor");
  EXPECT_EQ(ErrorOf("classes: {irq: {Controllable: ['eth[']}}"),
            "f:1: classes.irq.Controllable: \"eth[\" has a [ without its ]");
  EXPECT_NE(ErrorOf("classes: {foo: {}}").find("classes.foo: unknown key"), std::string::npos);
}

TEST(PolicyClassesTest, NamesThatDoNotExistAreRefusedWithThoseThatDo) {
  const ClassesConfig config{.memory = {{.name = "bronze"}},
                             .cpu = {.classes = {{.name = "turbo"}, {.name = "quiet"}}}};
  EXPECT_TRUE(CheckNamedClasses({{"cpu", "turbo", "x"}, {"memory", "bronze", "y"}}, config).ok());
  for (const char* const kind : {"rdt", "blockio", "scheduling"})
    EXPECT_FALSE(CheckNamedClasses({{kind, "gold", "x"}}, config).ok()) << kind;
  ClassesConfig all;
  all.rdt.partitions["fast"].classes["gold"];
  all.blockio.classes["gold"];
  all.scheduling.classes = {{.name = "gold"}};
  EXPECT_TRUE(
      CheckNamedClasses(
          {{"rdt", "gold", "x"}, {"blockio", "gold", "y"}, {"scheduling", "gold", "z"}}, all)
          .ok());
  const ClassesConfig by_runtime{.blockio = {.assign = BlockioConfig::Assign::kRuntime}};
  EXPECT_TRUE(CheckNamedClasses({{"blockio", "gold", "x"}}, by_runtime).ok())
      << "the runtime's own file may have it";
  const Status unknown =
      CheckNamedClasses({{"cpu", "turbos", "balloonTypes dsp: cpuClass"}}, config);
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(unknown),
            "balloonTypes dsp: cpuClass \"turbos\": there is no such class; there are turbo, "
            "quiet; did you mean turbo?");
  EXPECT_NE(Message(CheckNamedClasses({{"cpu", "a", "b"}}, {})).find("there are none"),
            std::string::npos);
}

TEST(PolicyClassesTest, PermissionsForClassesThatDoNotExistAreTold) {
  ClassesConfig config{.cpu = {.classes = {{.name = "turbo"}}}};
  config.namespaces = {{"cpu", {"*"}}, {"cpu/turbo", {"a"}}, {"isolation/x", {"a"}}};
  EXPECT_TRUE(UnknownAllowedClasses(config).empty());
  config.namespaces["cpu/trubo"] = {"infra"};
  EXPECT_EQ(UnknownAllowedClasses(config),
            std::vector<std::string>{
                "classes.AllowedNamespaces.Classes: cpu \"trubo\": there is no such class; "
                "there are turbo; did you mean turbo?"});
}

TEST(PolicyClassesTest, EachNameThatDoesNotExistIsToldWithItsOwnLine) {
  ConfigChecks checks;
  checks.policies = {"null", "b"};
  checks.policy_classes = [](std::string_view, const ConfigNode&) {
    return std::vector<NamedClass>{{"cpu", "turbo", "idleCPUClass"},
                                   {"rdt", "gold", "types x: rdtClass"},
                                   {"cpu", "lost", "elsewhere"}};
  };
  const Status unknown = ParseConfig(
                             "policy:\n"
                             "  Active: b\n"
                             "  b:\n"
                             "    name: turbo\n"
                             "    idleCPUClass: turbo\n"
                             "    types:\n"
                             "    - name: x\n"
                             "      cpuClass: gold\n"
                             "      rdtClass: gold\n",
                             "f", checks)
                             .status();
  EXPECT_EQ(Message(unknown),
            "f:5: policy.b: idleCPUClass \"turbo\": there is no such class; there are none\n"
            "f:9: policy.b: types x: rdtClass \"gold\": there is no such class; there are none\n"
            "f:4: policy.b: elsewhere \"lost\": there is no such class; there are none");
}

TEST(PolicyClassesTest, APolicysSectionAddsItsClasses) {
  const ConfigNode section = ParseYaml(
                                 "cpuClasses: [{name: turbo, maxFreq: turbo}]\n"
                                 "turboDomain: system\n"
                                 "controllableInterrupts: [eth*]\n"
                                 "balloonTypes: []\n",
                                 "f")
                                 .value();
  ClassesConfig config;
  AddPolicyClasses(section, "policy.balloons", config);
  EXPECT_NE(config.cpu.Find("turbo"), nullptr);
  EXPECT_EQ(config.cpu.turbo_domain, CpuClassesConfig::TurboDomain::kSystem);
  EXPECT_EQ(config.controllable, std::vector<std::string>{"eth*"});
  ClassesConfig none;
  AddPolicyClasses(ConfigNode(), "policy.static", none);
  EXPECT_EQ(none, ClassesConfig());
}

TEST(PolicyClassesTest, OnlyTheActivePolicysNamesAreChecked) {
  ConfigChecks checks;
  checks.policies = {"null", "a", "b"};
  checks.policy_classes = [](std::string_view, const ConfigNode&) {
    return std::vector<NamedClass>{{"cpu", "turbo", "key"}};
  };
  const auto read = [&checks](std::string_view text) {
    return ParseConfig(text, "f", checks).status();
  };
  EXPECT_TRUE(read("policy: {Active: a, b: {x: 1}}").ok());
  EXPECT_NE(std::string(Message(read("policy: {Active: b, b: {x: 1}}"))).find("policy.b: key"),
            std::string::npos);
  EXPECT_TRUE(read("policy: {Active: b, b: {cpuClasses: [{name: turbo}]}}").ok());
  EXPECT_TRUE(read("{policy: {Active: b, b: {x: 1}}, classes: {cpu: [{name: turbo}]}}").ok());
}

}  // namespace
}  // namespace resmgr
