// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/runtimes_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/config.h"

namespace resmgr {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kBothModules = R"(
runtimes:
  kata: {Socket: unix:///run/kata/cri.sock}
  old: {socket: /run/old.sock}
runtimeclasses:
  "": {Hooks: false}
  kata: {Runtime: kata, Pinning: Sandbox, Overhead: {cpu: 250m, memory: 160Mi}}
  gvisor: {Pinning: none}
  runc-pinned: {Handler: runc}
  plain: {Handler: ""}
)";

StatusOr<RuntimesConfig> ReadModules(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
  return config.runtimes;
}

std::string ErrorOf(std::string_view text) {
  return std::string(Message(ReadModules(text).status()));
}

TEST(RuntimesConfigTest, ReadsEveryKey) {
  const auto read = ReadModules(kBothModules);
  ASSERT_TRUE(read.ok()) << Describe(read.status());
  RuntimesConfig expected;
  expected.runtimes["kata"].socket = "/run/kata/cri.sock";
  expected.runtimes["old"].socket = "/run/old.sock";
  expected.classes[""].hooks = false;
  expected.classes["kata"] = {.runtime = "kata",
                              .pinning = Pinning::kSandbox,
                              .overhead = {.cpu = {250}, .memory = {160 << 20}}};
  expected.classes["gvisor"].pinning = Pinning::kNone;
  expected.classes["runc-pinned"].handler = "runc";
  expected.classes["plain"].handler = "";
  EXPECT_EQ(*read, expected);
  EXPECT_EQ(read->ClassOf("kata").runtime, "kata");
  EXPECT_EQ(read->ClassOf("unheard-of"), RuntimeClassConfig());
}

TEST(RuntimesConfigTest, ConfigMapHasAKeyForEachModule) {
  const auto config = ParseConfigMap(
      {{"runtimeClasses", "kata: {Runtime: kata}"}, {"runtimes", "kata: {Socket: /run/kata.sock}"}},
      "map", {});
  ASSERT_TRUE(config.ok()) << Describe(config.status());
  EXPECT_EQ(config->runtimes.ClassOf("kata").runtime, "kata");
}

TEST(RuntimesConfigTest, MistakesAreToldWithTheirPlace) {
  EXPECT_THAT(ErrorOf("runtimes: {kata: {Socket: /a}}\nruntimeClasses: {vm: {Runtime: katta}}"),
              AllOf(HasSubstr("f:2: runtimeClasses.vm.Runtime"),
                    HasSubstr("there is no runtime \"katta\"; did you mean kata?")));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Runtime: x}}"), HasSubstr("there are default"));
  EXPECT_THAT(ErrorOf("runtimes: {kata: }"), HasSubstr("kata needs a Socket"));
  EXPECT_THAT(ErrorOf("runtimes: {kata: {Socket: run/a}}"), HasSubstr("not an absolute path"));
  EXPECT_THAT(ErrorOf("runtimes: {a: {Socket: /x}, b: {Socket: /x}}"),
              HasSubstr("is the socket of a, too"));
  EXPECT_THAT(ErrorOf("runtimes: {default: {Socket: /x}}"), HasSubstr("-runtime-socket"));
  EXPECT_THAT(ErrorOf("runtimes: {'a b': {Socket: /x}}"),
              HasSubstr("\"a b\" is not a valid runtime's name"));
  EXPECT_THAT(ErrorOf("runtimes: {a: {Socket: /x, Sockets: /y}}"),
              AllOf(HasSubstr("runtimes.a.Sockets"), HasSubstr("unknown key")));
  EXPECT_THAT(ErrorOf("runtimes: {a: 1}"), HasSubstr("a needs a Socket"));
  EXPECT_THAT(ErrorOf("runtimes: 1"), HasSubstr("runtimes: must be a map"));
}

TEST(RuntimesConfigTest, ClassesAreStrict) {
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Pining: none}}"),
              HasSubstr("runtimeClasses.vm.Pining: unknown key; did you mean Pinning?"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Pinning: all}}"),
              HasSubstr("\"all\" is not one of container, sandbox, none"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Hooks: maybe}}"), HasSubstr("Hooks"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Overhead: {cpu: -1}}}"),
              HasSubstr("runtimeClasses.vm.Overhead.cpu"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Overhead: {disk: 1}}}"), HasSubstr("unknown key"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {'a/b': }"), HasSubstr("\"a/b\" is not a valid handler"));
}

TEST(RuntimesConfigTest, AliasIsOfAHandler) {
  EXPECT_THAT(ErrorOf("runtimeClasses: {'': {Handler: runc}}"), HasSubstr("cannot be an alias"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {a: {Handler: a}}"), HasSubstr("an alias of itself"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {a: {Handler: b}, b: {Handler: c}}"),
              HasSubstr("runtimeClasses.a: is an alias of b, which is an alias itself"));
}

TEST(RuntimesConfigTest, NumberOfRuntimesAndHandlersIsBounded) {
  std::string runtimes = "runtimes:\n";
  for (size_t i = 0; i <= RuntimesConfig::kMostRuntimes; ++i)
    runtimes += fmt::format("  r{}: {{Socket: /run/{}}}\n", i, i);
  EXPECT_THAT(ErrorOf(runtimes), HasSubstr("more than 16 runtimes"));
  std::string classes = "runtimeClasses:\n";
  for (size_t i = 0; i <= RuntimesConfig::kMostClasses; ++i)
    classes += fmt::format("  h{}: {{}}\n", i);
  EXPECT_THAT(ErrorOf(classes), HasSubstr("more than 256 handlers"));
}

}  // namespace
}  // namespace resmgr
