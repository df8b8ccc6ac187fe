// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/policy_classes.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/config/config.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

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
