// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_page.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/config.h"
#include "pkg/node/policy_setup.h"
#include "policies/builtin_policies.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

TEST(ConfigPageTest, HasEveryKeyWithItsDefault) {
  const PolicyRegistry policies = BuiltinPolicies();
  const std::vector<ConfigKey> keys = AllConfigKeys(ChecksWith(policies));
  const std::string page = ConfigManPage(keys);
  for (const ConfigLeaf& leaf : LeavesOf(keys)) {
    std::string path;
    for (const char c : leaf.path)
      path += c == '-' ? "\\-" : std::string(1, c);
    EXPECT_THAT(page, HasSubstr(".TP\n\\fB" + path + "\\fR\n"));
  }
  EXPECT_THAT(page, HasSubstr(".SH NAME\ncri\\-resmgr.yaml \\- configuration"));
  EXPECT_THAT(page, testing::Not(HasSubstr("`reset")));
}

}  // namespace
}  // namespace resmgr
