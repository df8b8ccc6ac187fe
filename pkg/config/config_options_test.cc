// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  EXPECT_THAT(help, HasSubstr("  -logger-level debug|info|warn|error"));
  EXPECT_THAT(help, HasSubstr("The lowest severity that is logged: \"debug\", "));
  EXPECT_THAT(help, HasSubstr("runtimeproxy.koordinator.sh/skip-hookserver"));
}

}  // namespace
}  // namespace resmgr
