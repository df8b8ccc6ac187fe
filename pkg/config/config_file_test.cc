// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using ::testing::StartsWith;

StatusOr<Config> ParseFile(std::string_view text) {
  ConfigChecks checks;
  checks.policies = {"null", "static"};
  return ParseConfigFile(text, "f", checks);
}

TEST(ConfigFileTest, TakesBothFormats) {
  for (const char* text : {"policy:\n  Active: static\n  ReservedResources: {CPU: 1}\n",
                           "policy static\nreserved-resources CPU=1\n"}) {
    const StatusOr<Config> config = ParseFile(text);
    ASSERT_TRUE(config.ok()) << Message(config.status());
    EXPECT_EQ(config->policy.active, "static");
    EXPECT_EQ(config->policy.reserved_cpus->quantity.value, 1000);
  }
}

TEST(ConfigFileTest, PassesOverWhatIsForTheDaemonsStart) {
  const StatusOr<Config> config = ParseFile(
      "relay-socket /r\npolicy static\nrelay-dir /d\nmetrics-address off\ndump-secrets\n");
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->policy.active, "static");
}

TEST(ConfigFileTest, NamesThePlaceOfAMistakeInBoth) {
  EXPECT_THAT(Message(ParseFile("policy:\n  Actve: static\n").status()), StartsWith("f:2: "));
  EXPECT_THAT(Message(ParseFile("policy static\npolcy static\n").status()), StartsWith("f:2: "));
}

}  // namespace
}  // namespace resmgr
