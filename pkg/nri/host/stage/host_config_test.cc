// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/stage/host_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::nri {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(HostConfigTest, TheDefaultsAreThoseOfTheHost) {
  const HostOptions options = HostOptionsOf({});
  const HostOptions defaults;
  EXPECT_EQ(options.external_plugins, defaults.external_plugins);
  EXPECT_EQ(options.plugin_path, defaults.plugin_path);
  EXPECT_EQ(options.plugin_config_path, defaults.plugin_config_path);
  EXPECT_EQ(options.registration_timeout, defaults.registration_timeout);
  EXPECT_EQ(options.sync_timeout, defaults.sync_timeout);
  EXPECT_EQ(options.strikes, defaults.strikes);
  EXPECT_EQ(options.settings.request_timeout, defaults.settings.request_timeout);
  EXPECT_EQ(options.settings.failure, defaults.settings.failure);
  EXPECT_THAT(options.plugins, IsEmpty());
  EXPECT_THAT(RequiredPluginsOf({}), IsEmpty());
}

TEST(HostConfigTest, EveryKeyHasItsEffect) {
  NriHostConfig config;
  config.socket = "/s";
  config.external_plugins = false;
  config.plugin_path = "/p";
  config.plugin_config_path = "/c";
  config.registration_timeout = milliseconds(1);
  config.request_timeout = milliseconds(2);
  config.sync_timeout = milliseconds(3);
  config.strikes = 4;
  config.plugins["10-a"] = {.failure = FailurePolicy::kFail, .required = true};
  config.plugins["20-b"] = {.request_timeout = milliseconds(5)};
  const HostOptions options = HostOptionsOf(config);
  EXPECT_EQ(options.socket, "/s");
  EXPECT_FALSE(options.external_plugins);
  EXPECT_EQ(options.plugin_path, "/p");
  EXPECT_EQ(options.plugin_config_path, "/c");
  EXPECT_EQ(options.registration_timeout, milliseconds(1));
  EXPECT_EQ(options.sync_timeout, milliseconds(3));
  EXPECT_EQ(options.strikes, 4U);
  EXPECT_EQ(options.SettingsOf("99-other").request_timeout, milliseconds(2));
  EXPECT_EQ(options.SettingsOf("10-a").request_timeout, milliseconds(2));
  EXPECT_EQ(options.SettingsOf("10-a").failure, FailurePolicy::kFail);
  EXPECT_TRUE(options.SettingsOf("10-a").required);
  EXPECT_EQ(options.SettingsOf("20-b").request_timeout, milliseconds(5));
  EXPECT_FALSE(options.SettingsOf("20-b").required);
  EXPECT_THAT(RequiredPluginsOf(config), ElementsAre("10-a"));
}

TEST(HostConfigTest, WhatTheCriCannotExpressIsNamedAsInNri) {
  NriHostConfig config;
  EXPECT_TRUE(UnsupportedPolicyOf(config).ok());
  config.unsupported = {{"rlimits", FailurePolicy::kIgnore}, {"DeviceRules", FailurePolicy::kFail}};
  const auto policy = UnsupportedPolicyOf(config);
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(policy->Of({.field = api::FIELD_RLIMITS}), FailurePolicy::kIgnore);
  EXPECT_EQ(policy->Of({.field = api::FIELD_NONE}), FailurePolicy::kFail);
  EXPECT_EQ(policy->Of({.field = api::FIELD_SYSCTL}), FailurePolicy::kFail) << "the default";
  config.unsupported = {{"None", FailurePolicy::kIgnore}};
  EXPECT_EQ(UnsupportedPolicyOf(config).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(UnsupportedPolicyOf(config).status()),
              AllOf(HasSubstr("no field \"None\"; known here: DeviceRules, Annotations, "),
                    EndsWith(", MemoryPolicy")));
}

}  // namespace
}  // namespace resmgr::nri
