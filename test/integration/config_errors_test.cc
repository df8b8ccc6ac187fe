// SPDX-License-Identifier: Apache-2.0
// The reason of a rejection reaches the agent for any configuration.
#include <string>
#include <vector>

#include "pkg/base/utf8.h"
#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

// The limit of the text that the agent writes into an annotation.
constexpr size_t kMostOfAnError = 8192;

class ConfigErrorsTest : public ControlTest {};

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += text;
  return all;
}

TEST_F(ConfigErrorsTest, AreUtf8AndBounded) {
  StartBoth();
  // Characters of two, three and four bytes, and one that is escaped as twelve, cut at any place.
  for (const std::string character : {"\u00e4", "\u20ac", "\U0001f600", "\u202e"}) {
    for (int shift = 0; shift < 4; ++shift) {
      const std::string text =
          std::string(static_cast<size_t>(shift), 'x') + Repeated(character, 5000);
      std::string keys;
      for (int i = 0; i < 100; ++i)
        keys += text.substr(0, static_cast<size_t>(shift)) + Repeated(character, 100) +
                std::to_string(i) + ": 1\n";
      const std::vector<std::map<std::string, std::string>> cases = {
          {{text, "x"}},
          {{text, "[" + text}},
          {{"policy", "[" + text}},
          {{"policy", text + ": 1"}},
          {{"policy", keys}},
          {{"policy", "Active: " + text}},
          {{"policy", "Active: static\nReservedResources: {" + text + ": 1}"}},
          {{"policy", "Active: static\nReservedResources: {CPU: " + text + "}"}},
          {{"policy", "Active: static\nReservedResources: {CPU: 'cpuset:" + text + "'}"}},
          {{"policy", "Active: !" + text + " static"}},
          {{"policy", "Active: *" + text}},
          {{"policy." + text + "." + text, "1"}},
          {{"dump", "File: /" + text}},
          {{"dump", "Config: 'full:" + text + "[('"}},
          {{"logger", "Level: " + text}},
          {{"logger", "Debug: {" + text + ": 1}"}},
          {{"policy", "Active: static\nReservedResources: {CPU: 1}\nstatic: {" + text + ": 1}"}},
          {{"policy",
            "Active: topology-aware\ntopology-aware: {" + Repeated(character, 100) + ": 1}"}},
      };
      for (size_t i = 0; i < cases.size(); ++i) {
        const std::string error = SetConfig(cases[i]);
        EXPECT_NE(error, "") << i;
        EXPECT_THAT(error, testing::Not(testing::StartsWith("no answer"))) << i;
        EXPECT_TRUE(IsUtf8(error)) << i << ": " << error;
        EXPECT_LE(error.size(), kMostOfAnError) << i << ": " << error.substr(0, 200);
      }
    }
  }
}

TEST_F(ConfigErrorsTest, WhatIsNoUtf8IsRefusedWithAReason) {
  StartBoth();
  for (const std::string text : {"\xff", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80"}) {
    EXPECT_THAT(SetConfig({{"policy", "Active: " + text}}), testing::HasSubstr("UTF-8"));
    EXPECT_THAT(SetConfig({{text, "Active: static"}}), testing::HasSubstr("UTF-8"));
  }
}

}  // namespace
}  // namespace resmgr::test
