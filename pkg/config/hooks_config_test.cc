// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/hooks_config.h"

#include <gtest/gtest.h>

#include "pkg/config/config.h"

namespace resmgr {
namespace {

class HooksConfigTest : public testing::Test {
 protected:
  static StatusOr<HooksConfig> Read(std::string_view text) {
    RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
    return config.hooks;
  }
  static std::string Error(std::string_view text) {
    return std::string(Message(Read(text).status()));
  }
};

TEST_F(HooksConfigTest, ReadsEveryKey) {
  const auto hooks = Read(
      "hooks: {directory: /etc/hooks, Timeout: 500ms, SkipKey: example.com/skip, SkipValue: yes}");
  ASSERT_TRUE(hooks.ok()) << Describe(hooks.status());
  const HooksConfig expected{.directory = "/etc/hooks",
                             .timeout = std::chrono::milliseconds(500),
                             .skip_key = "example.com/skip",
                             .skip_value = "yes"};
  EXPECT_EQ(*hooks, expected);
}

TEST_F(HooksConfigTest, WithoutADirectoryNoServersAreAsked) {
  for (const std::string_view text :
       {"", "hooks:", "hooks: {Directory: }", "hooks.Directory: disabled", "hooks.Directory: ''"}) {
    const auto hooks = Read(text);
    ASSERT_TRUE(hooks.ok()) << Describe(hooks.status());
    EXPECT_EQ(hooks->directory, "");
    EXPECT_EQ(*hooks, HooksConfig());
  }
}

TEST_F(HooksConfigTest, MistakesHaveTheirPlace) {
  EXPECT_EQ(Error("hooks:\n  Directry: /x"),
            "f:2: hooks.Directry: unknown key; did you mean Directory?");
  EXPECT_EQ(Error("hooks: {Directory: hookserver.d}"),
            "f:1: hooks.Directory: \"hookserver.d\" is neither an absolute path nor \"disabled\"");
  EXPECT_EQ(Error("hooks: {Timeout: 2}"),
            "f:1: hooks.Timeout: \"2\" is not a time from 1ms to 2m, as in 1m30s");
  EXPECT_EQ(Error("hooks: {Timeout: 0ms}"),
            "f:1: hooks.Timeout: \"0ms\" is not a time from 1ms to 2m, as in 1m30s");
  EXPECT_EQ(Error("hooks: {SkipKey: a/b/c}"),
            "f:1: hooks.SkipKey: \"a/b/c\" is not a valid label key");
  EXPECT_EQ(Error("hooks: {SkipKey: [a]}"),
            "f:1: hooks.SkipKey: must be a single value, not a list");
}

}  // namespace
}  // namespace resmgr
