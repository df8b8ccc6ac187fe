// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/audit_config.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "pkg/config/config.h"

namespace resmgr {
namespace {

class AuditConfigTest : public testing::Test {
 protected:
  static StatusOr<AuditConfig> Read(std::string_view text) {
    RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
    return config.audit;
  }
  static std::string ErrorOf(std::string_view text) {
    return std::string(Message(Read(text).status()));
  }
};

TEST_F(AuditConfigTest, ReadsEveryKey) {
  const AuditConfig expected{.interval = std::chrono::milliseconds(90'000), .repair = true};
  EXPECT_EQ(Read("audit: {Interval: 1m30s, Repair: true}").value(), expected);
  EXPECT_EQ(Read("audit: {Interval: disabled}").value().interval.count(), 0);
  for (const std::string_view text : {"", "audit:", "audit: {}"})
    EXPECT_EQ(Read(text).value(), AuditConfig()) << text;
}

TEST_F(AuditConfigTest, MistakesHaveTheirPlace) {
  const std::string range = "is not a time from 1s to 24h, as in 1m30s, and not \"disabled\"";
  for (const char* const wrong : {"0s", "500ms", "25h", "60", "never"}) {
    EXPECT_EQ(ErrorOf(fmt::format("audit: {{Interval: {}}}", wrong)),
              fmt::format("f:1: audit.Interval: \"{}\" {}", wrong, range));
  }
  EXPECT_EQ(ErrorOf("audit:\n  Intervall: 1m"),
            "f:2: audit.Intervall: unknown key; did you mean Interval?");
}

}  // namespace
}  // namespace resmgr
