// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConfigOptionsTest : public ::testing::Test {
 protected:
  ConfigOptionsTest() {
    checks_.policies = {"null", "static"};
    options_.DeclareFlags(line_, checks_);
  }
  Status Apply(std::string_view text) {
    Problems problems;
    const std::vector<OptionLine> lines = ParseOptionLines(text, "f", problems);
    problems.Add(ApplyOptionLines(lines, line_, options_));
    return problems.ToStatus();
  }

  Config Applied() const {
    Config config;
    options_.ApplyTo(config);
    return config;
  }

  ConfigChecks checks_;
  CommandLine line_{"test", ""};
  ConfigOptions options_;
};

TEST_F(ConfigOptionsTest, EveryOptionReachesTheConfiguration) {
  ASSERT_TRUE(Apply("policy static\nreserved-resources CPU=1\navailable-resources: CPU=0-3,5\n"
                    "start-failure-policy ignore\ndump a\ndump b\ndump-file /x\nlogger-level "
                    "error\nlogger-debug *\n"
                    "logger-source policy\n")
                  .ok());
  Config config;
  config.dump.specs = {"file"};
  options_.ApplyTo(config);
  EXPECT_EQ(config.policy.active, "static");
  EXPECT_EQ(config.policy.reserved_cpus->quantity.value, 1000);
  EXPECT_EQ(config.policy.available_cpus->cpus.ToString(), "0-3,5");
  EXPECT_EQ(config.policy.start_failure, FailurePolicy::kIgnore);
  EXPECT_THAT(config.dump.specs, ElementsAre("a", "b"));
  EXPECT_EQ(config.dump.file, "/x");
  EXPECT_EQ(config.logger.level, "error");
  EXPECT_EQ(config.logger.debug, "*");
  EXPECT_EQ(config.logger.source, "policy");
}

TEST_F(ConfigOptionsTest, WhatIsNotSetChangesNothing) {
  Config config;
  config.policy.active = "static";
  config.policy.start_failure = FailurePolicy::kIgnore;
  config.dump.specs = {"file"};
  config.logger.level = "warn";
  options_.ApplyTo(config);
  EXPECT_EQ(config.policy.active, "static");
  EXPECT_EQ(config.policy.start_failure, FailurePolicy::kIgnore);
  EXPECT_THAT(config.dump.specs, ElementsAre("file"));
  EXPECT_EQ(config.logger.level, "warn");
}

TEST_F(ConfigOptionsTest, OriginsTellFileAndLine) {
  ASSERT_TRUE(Apply("\nreserved-resources CPU=1").ok());
  EXPECT_EQ(Applied().policy.reserved_cpus->origin, "f:2: reserved-resources");
}

TEST_F(ConfigOptionsTest, OriginsTellTheFlag) {
  const char* argv[] = {"test", "-available-resources", "CPU=1"};
  ASSERT_TRUE(line_.Parse(3, argv).ok());
  EXPECT_EQ(Applied().policy.available_cpus->origin, "-available-resources");
}

TEST_F(ConfigOptionsTest, ErrorsTellFileLineAndOption) {
  EXPECT_EQ(Message(Apply("dump a\n\npolicy statik\n")),
            "f:3: policy: there is no policy \"statik\"; did you mean static?");
  EXPECT_EQ(Message(Apply("reserved-resources 1")),
            "f:1: reserved-resources: \"1\" is not DOMAIN=VALUE; write CPU=1");
  EXPECT_EQ(Message(Apply("policy null\npolicy null\n")), "f:2: policy: given twice, first at f:1");
  EXPECT_EQ(Message(Apply("dump a\nstart-failure-policy: perhaps\n")),
            "f:2: start-failure-policy: \"perhaps\" is not one of fail, ignore");
  EXPECT_EQ(Message(Apply("polcy null")), "f:1: unknown option polcy; did you mean policy?");
  EXPECT_EQ(Message(Apply("policy")), "f:1: policy: needs a value (NAME)");
}

TEST_F(ConfigOptionsTest, TheLastValueOfAFlagCountsAndThoseOfADumpAddUp) {
  const char* argv[] = {"test",
                        "-dump",
                        "a",
                        "-logger-level=warn",
                        "-dump=b",
                        "-logger-level",
                        "error",
                        "-hook-dir",
                        "/etc/hooks",
                        "-nri-host",
                        "unix:///run/nri.sock"};
  ASSERT_TRUE(line_.Parse(11, argv).ok());
  EXPECT_THAT(Applied().dump.specs, ElementsAre("a", "b"));
  EXPECT_EQ(Applied().logger.level, "error");
  EXPECT_EQ(Applied().nri.socket, "/run/nri.sock");
  EXPECT_EQ(Applied().hooks.directory, "/etc/hooks");
  EXPECT_FALSE(Applied().hooks.stated) << "flags are not in the configuration's text";
  EXPECT_TRUE(options_.Has("dump"));
  EXPECT_FALSE(options_.Has("policy"));
  EXPECT_EQ(options_.policy(), std::nullopt);
}

TEST_F(ConfigOptionsTest, AFlagsErrorBeginsWithTheFlag) {
  const char* argv[] = {"test", "-hook-skip-key", "a/b/c"};
  EXPECT_EQ(Message(line_.Parse(3, argv)), "-hook-skip-key: \"a/b/c\" is not a valid label key");
}

TEST_F(ConfigOptionsTest, OverriddenKeysAreThoseThatWouldHaveAnotherValue) {
  ASSERT_TRUE(Apply("policy static\nreserved-resources CPU=1\nlogger-level error\ndump a\n"
                    "dump-file /x\n")
                  .ok());
  EXPECT_THAT(options_.Overridden({}), ElementsAre());
  Config config;
  options_.ApplyTo(config);
  EXPECT_THAT(options_.Overridden(config), ElementsAre());
  config = {};
  config.policy.active = "null";
  config.policy.reserved_cpus = ParseCpuConstraint("2", "f:1").value();
  config.dump.specs = {"b"};
  config.logger.level = "warn";
  config.logger.format = "json";
  EXPECT_THAT(options_.Overridden(config),
              ElementsAre("policy.ReservedResources", "dump.Config", "logger.Level"));
}

TEST_F(ConfigOptionsTest, HelpComesFromTheKeys) {
  const std::string help = line_.Help();
  EXPECT_THAT(help, HasSubstr("\"\" exempts no"));
  EXPECT_THAT(help, testing::Not(HasSubstr("\"\"\"")));
  EXPECT_THAT(help, HasSubstr("  -logger-level debug|info|warn|error"));
  EXPECT_THAT(help, HasSubstr("The lowest severity that is logged: \"debug\", "));
  EXPECT_THAT(help, HasSubstr("runtimeproxy.koordinator.sh/skip-hookserver"));
  EXPECT_THAT(help, HasSubstr("; \"\" exempts")) << "no quotes around quotes";
}

std::optional<std::string> Value(std::string_view line) {
  Problems problems;
  const auto options = ParseOptionLines(line, "f", problems);
  EXPECT_TRUE(problems.ToStatus().ok()) << line << " " << Describe(problems.ToStatus());
  EXPECT_EQ(options.size(), 1U) << line;
  if (options.size() != 1) return std::nullopt;
  EXPECT_EQ(options.front().name, "dump") << line;
  return options.front().value;
}

std::string LinesError(std::string_view text) {
  Problems problems;
  static_cast<void>(ParseOptionLines(text, "f", problems));
  const Status status = problems.ToStatus();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
  return std::string(Message(status));
}

TEST(OptionsFileTest, TakesAllWaysToWriteAValue) {
  for (const char* line : {"dump a:b,c", "dump = a:b,c", "dump=a:b,c", "dump: a:b,c", "dump:a:b,c",
                           "\tdump \t a:b,c  \r", "dump 'a:b,c'", "dump = \"a:b,c\"  # why",
                           "dump a:b,c # why", "dump\ta:b,c"}) {
    EXPECT_EQ(Value(line), "a:b,c") << line;
  }
}

TEST(OptionsFileTest, KeepsWhatBelongsToTheValue) {
  EXPECT_EQ(Value("dump CPU=#0-3"), "CPU=#0-3");
  EXPECT_EQ(Value("dump '# a'"), "# a");
  EXPECT_EQ(Value("dump a b"), "a b");
  EXPECT_EQ(Value("dump ''"), "");
  EXPECT_EQ(Value("dump ="), "");
  EXPECT_EQ(Value("dump ==x"), "=x");
  EXPECT_EQ(Value("dump a'b'"), "a'b'");
}

TEST(OptionsFileTest, ANameAloneHasNoValue) {
  EXPECT_EQ(Value("dump"), std::nullopt);
  EXPECT_EQ(Value("dump # why"), std::nullopt);
}

TEST(OptionsFileTest, SkipsEmptyLinesAndCommentsAndCountsThem) {
  Problems problems;
  const auto options = ParseOptionLines("# a\n\n  # b\npolicy null\n\nversion", "f", problems);
  ASSERT_EQ(options.size(), 2U);
  EXPECT_EQ(options[0].where, "f:4");
  EXPECT_EQ(options[1].where, "f:6");
}

TEST(OptionsFileTest, OtherLinesAreErrorsWithTheirPlace) {
  EXPECT_EQ(LinesError("policy null\n--dump x\n"),
            "f:2: options have no dashes here: write dump x");
  EXPECT_EQ(LinesError("{a}"), "f:1: \"{a}\" is not an option with its value");
  EXPECT_EQ(LinesError("= a"), "f:1: \"= a\" is not an option with its value");
  EXPECT_EQ(LinesError("pol{icy x"), "f:1: \"pol{icy x\" is not an option with its value");
  EXPECT_EQ(LinesError("dump 'a"), "f:1: the quote ' is not closed");
  EXPECT_EQ(LinesError("dump 'a' b"), "f:1: \"b\" follows the closing quote");
  EXPECT_THAT(LinesError(std::string_view("dump \0", 6)), HasSubstr("f:1: byte 0x00"));
}

}  // namespace
}  // namespace resmgr
