// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/config_reader.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/node/testing/test_policies.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class ConfigReaderTest : public testing::Test {
 protected:
  StatusOr<ConfigCandidate> Read(const std::string& text) {
    return ConfigReader(options_).Read({.name = "agent", .data = {}, .text = text});
  }
  std::string RefusalOf(const std::string& text) {
    return std::string(Message(Read(text).status()));
  }

  TempDir directory_;
  ConfigReader::Options options_{
      .machine = std::make_shared<const Machine>(*LoadMachine("synthetic:core:4 pu:1")),
      .policies = test::NullAndFirstFit(),
      .dump_directory = directory_.File("dumps")};
};

TEST_F(ConfigReaderTest, ReadsAllThatItTakesToPutItInForce) {
  const auto candidate = Read("policy: {Active: first-fit}\nlogger: {Level: warn}");
  ASSERT_EQ(candidate.status(), OkStatus());
  EXPECT_EQ(candidate->name, "agent");
  ASSERT_NE(candidate->policy, nullptr);
  EXPECT_EQ(candidate->policy->name(), "first-fit");
  EXPECT_EQ(candidate->logging.level, LogLevel::kWarn);
  ASSERT_TRUE(candidate->keep.has_value());
  EXPECT_EQ(candidate->keep->text, "policy: {Active: first-fit}\nlogger: {Level: warn}");
}

TEST_F(ConfigReaderTest, UnderTheNullPolicyThereIsNone) {
  const auto candidate = Read("policy: {Active: null}");
  ASSERT_EQ(candidate.status(), OkStatus());
  EXPECT_EQ(candidate->policy, nullptr);
}

TEST_F(ConfigReaderTest, AConfigurationOfTheDaemonsOwnIsNotKept) {
  Config config;
  config.policy.active = "first-fit";
  const auto candidate = ConfigReader(options_).Prepare(config, "/etc/node.yaml");
  ASSERT_EQ(candidate.status(), OkStatus());
  EXPECT_EQ(candidate->name, "/etc/node.yaml");
  EXPECT_FALSE(candidate->keep.has_value());
}

TEST_F(ConfigReaderTest, EachPartThatDoesNotFitIsARefusalThatNamesIt) {
  EXPECT_THAT(RefusalOf("policy: {Active: unknown}"), HasSubstr("unknown"));
  EXPECT_THAT(RefusalOf("policy: {Active: first-fit, AvailableResources: {CPU: cpuset:64}}"),
              HasSubstr("64"));
  EXPECT_THAT(RefusalOf("logger: {Level: loud}"), HasSubstr("loud"));
  EXPECT_THAT(RefusalOf("dump: {Config: 'wrong:.*'}"), HasSubstr("wrong"));
}

TEST_F(ConfigReaderTest, ADeliveredDumpFileIsInTheDumpDirectoryOnly) {
  EXPECT_THAT(RefusalOf("dump: {Config: 'full:.*', File: " + directory_.File("elsewhere") + "}"),
              HasSubstr("dump"));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("elsewhere")));
  EXPECT_EQ(Read("dump: {Config: 'full:.*', File: " + options_.dump_directory + "/d}").status(),
            OkStatus());
}

TEST_F(ConfigReaderTest, NriPluginsAreServedAsTheDaemonsOwnFileSays) {
  ASSERT_TRUE(options_.overrides.Set("nri-host", "/run/nri.sock").ok());
  options_.nri.socket = "/run/nri.sock";
  options_.nri.strikes = 7;
  const auto silent = Read("policy: {Active: null}");
  ASSERT_EQ(silent.status(), OkStatus());
  EXPECT_EQ(silent->config.nri, options_.nri);
  EXPECT_THAT(silent->warnings, Not(Contains(HasSubstr("nri"))));

  const auto delivered = Read("nri: {Host: {PluginPath: /tmp}}");
  ASSERT_EQ(delivered.status(), OkStatus());
  EXPECT_EQ(delivered->config.nri, options_.nri);
  EXPECT_THAT(delivered->warnings, Contains(HasSubstr("nri has no effect")));

  Config changed;
  changed.nri = options_.nri;
  EXPECT_THAT(ConfigReader(options_).Prepare(changed, "/etc/node.yaml")->warnings,
              Not(Contains(HasSubstr("nri"))));
  changed.nri.strikes = 8;
  const auto reloaded = ConfigReader(options_).Prepare(changed, "/etc/node.yaml");
  EXPECT_EQ(reloaded->config.nri, changed.nri);
  EXPECT_THAT(reloaded->warnings, Not(Contains(HasSubstr("nri"))));
  // The plugins' socket stays the same.
  changed.nri.socket = "/run/other.sock";
  changed.nri.external_plugins = false;
  const auto moved = ConfigReader(options_).Prepare(changed, "/etc/node.yaml");
  EXPECT_EQ(moved->config.nri.socket, "/run/nri.sock");
  EXPECT_TRUE(moved->config.nri.external_plugins);
  EXPECT_THAT(moved->warnings, Contains(HasSubstr("nri.Host.Socket: changes there")));
  EXPECT_THAT(moved->warnings, Contains(HasSubstr("nri.Host.ExternalPlugins: changes there")));
  changed.nri.unsupported["NoSuchField"] = FailurePolicy::kFail;
  EXPECT_THAT(
      std::string(ConfigReader(options_).Prepare(changed, "/etc/node.yaml").status().message()),
      HasSubstr("NoSuchField"));
}

TEST_F(ConfigReaderTest, WhereNothingIsSaidHookServersStayAsTheDaemonWasStarted) {
  options_.asks_hook_servers = true;
  ASSERT_TRUE(options_.overrides.Set("hook-dir", "/etc/hooks").ok());
  options_.hooks.directory = "/etc/hooks";
  options_.hooks.skip_value = "yes";
  const auto silent = Read("policy: {Active: null}");
  ASSERT_EQ(silent.status(), OkStatus());
  EXPECT_EQ(silent->config.hooks, options_.hooks);
  EXPECT_THAT(silent->warnings, Not(Contains(HasSubstr("hooks"))));

  const auto delivered = Read("hooks: {Directory: /tmp, SkipValue: no}");
  ASSERT_EQ(delivered.status(), OkStatus());
  EXPECT_EQ(delivered->config.hooks.directory, "/etc/hooks");
  EXPECT_EQ(delivered->config.hooks.skip_value, "no");
  EXPECT_THAT(delivered->warnings, Contains(HasSubstr("hooks.Directory has no effect: the flag")));
}

TEST_F(ConfigReaderTest, HookServersMayChangeWhereTheModeAsksThem) {
  EXPECT_THAT(RefusalOf("hooks: {Directory: /tmp}"), HasSubstr("hooks.Directory"));
  options_.asks_hook_servers = true;
  options_.hooks.directory = "/etc/hooks";
  const auto delivered = Read("hooks: {Directory: /tmp, Timeout: 3s}");
  ASSERT_EQ(delivered.status(), OkStatus());
  EXPECT_EQ(delivered->config.hooks.directory, "/tmp");
  EXPECT_EQ(delivered->config.hooks.timeout, std::chrono::seconds(3));
  const auto none = Read("hooks: {Directory: disabled}");
  ASSERT_EQ(none.status(), OkStatus());
  EXPECT_EQ(none->config.hooks.directory, "");

  Config changed;
  changed.hooks.directory = "/etc/other";
  const auto reloaded = ConfigReader(options_).Prepare(changed, "/etc/node.yaml");
  EXPECT_EQ(reloaded->config.hooks.directory, "/etc/other");
}

TEST_F(ConfigReaderTest, RuntimesAreThoseThatTheDaemonWasStartedWith) {
  options_.runtimes.runtimes["kata"].socket = "/run/kata.sock";
  const auto silent = Read("policy: {Active: null}");
  ASSERT_EQ(silent.status(), OkStatus());
  EXPECT_EQ(silent->config.runtimes, options_.runtimes);
  EXPECT_THAT(silent->warnings, Not(Contains(HasSubstr("runtimes"))));

  const auto delivered = Read("runtimeClasses: {kata: {Pinning: none}}");
  ASSERT_EQ(delivered.status(), OkStatus());
  EXPECT_EQ(delivered->config.runtimes, options_.runtimes);
  EXPECT_THAT(delivered->warnings,
              Contains(HasSubstr("runtimes, runtimeClasses has no effect in a configuration")));

  Config changed;
  changed.runtimes.runtimes["kata"].socket = "/run/other.sock";
  const auto reloaded = ConfigReader(options_).Prepare(changed, "/etc/node.yaml");
  EXPECT_EQ(reloaded->config.runtimes, options_.runtimes);
  EXPECT_THAT(reloaded->warnings, Contains(HasSubstr("take effect with a restart")));
}

TEST_F(ConfigReaderTest, TheCommandLineWinsAndAnotherPolicyIsRefused) {
  ASSERT_TRUE(options_.overrides.Set("policy", "first-fit").ok());
  ASSERT_TRUE(options_.overrides.Set("logger-level", "error").ok());
  EXPECT_THAT(RefusalOf("policy: {Active: null}"), HasSubstr("-policy first-fit"));
  const auto candidate = Read("logger: {Level: warn}");
  ASSERT_EQ(candidate.status(), OkStatus());
  EXPECT_EQ(candidate->config.logger.level, "error");
  EXPECT_EQ(candidate->config.policy.active, "first-fit");
  EXPECT_THAT(candidate->warnings, Contains(HasSubstr("logger.Level has no effect")));
}

TEST_F(ConfigReaderTest, PlacementsDependOnThePartOfTheActivePolicyAlone) {
  Config one;
  one.policy.active = "first-fit";
  Config other = one;
  other.logger.level = "error";
  other.policy.start_failure = FailurePolicy::kIgnore;
  other.policy.sections["null"] = {};
  EXPECT_EQ(PolicyPart(one), PolicyPart(other));
  other.policy.active = "null";
  EXPECT_NE(PolicyPart(one), PolicyPart(other));
}

}  // namespace
}  // namespace resmgr
