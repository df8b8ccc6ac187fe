// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/json_tree.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr::dump {
namespace {

std::string Shown(const std::string& text, bool secrets = false) {
  return JsonTree(Payload(text), secrets).dump();
}

TEST(JsonTreeTest, SecretsAreHidden) {
  const std::string body = R"({"Env":["TOKEN=abc","PLAIN"],"Labels":{"a":"b",)"
                           R"("annotation.kubectl.kubernetes.io/last-applied-configuration":"m"},)"
                           R"("x":[{"password":"p","Auth":"q","env":"e"}]})";
  EXPECT_EQ(Shown(body),
            R"({"Env":["TOKEN=<redacted>","PLAIN=<redacted>"],"Labels":{"a":"b",)"
            R"("annotation.kubectl.kubernetes.io/last-applied-configuration":"<redacted>"},)"
            R"("x":[{"Auth":"<redacted>","env":"<redacted>","password":"<redacted>"}]})");
  EXPECT_NE(Shown(body, true).find("TOKEN=abc"), std::string::npos);
}

TEST(JsonTreeTest, WhatIsNoObject) {
  EXPECT_EQ(Shown(""), "{}");
  EXPECT_EQ(Shown("{\"secret\":"), R"({"undecodable":"10 bytes"})");
  EXPECT_EQ(Shown("[1]"), R"({"value":[1]})");
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + "1" + std::string(levels, ']');
  };
  EXPECT_NE(Shown(nested(150)).find("redacted"), std::string::npos);
  EXPECT_EQ(Shown(nested(500)), R"({"undecodable":"1001 bytes"})");
}

}  // namespace
}  // namespace resmgr::dump
