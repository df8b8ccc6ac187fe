// SPDX-License-Identifier: Apache-2.0
#include "agent/base64.h"

#include <random>

#include <absl/strings/escaping.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::agent {
namespace {

using testing::Eq;
using testing::Optional;

TEST(Base64Test, DecodesTheExamplesOfTheStandard) {
  EXPECT_THAT(DecodeBase64(""), Optional(Eq("")));
  EXPECT_THAT(DecodeBase64("Zg=="), Optional(Eq("f")));
  EXPECT_THAT(DecodeBase64("Zm8="), Optional(Eq("fo")));
  EXPECT_THAT(DecodeBase64("Zm9vYmFy"), Optional(Eq("foobar")));
}

TEST(Base64Test, SkipsWhiteSpace) {
  EXPECT_THAT(DecodeBase64("Zm9v\n  YmFy\r\n"), Optional(Eq("foobar")));
}

TEST(Base64Test, RefusesWhatIsNoBase64) {
  for (const char* text :
       {"Zg", "Zg=", "Z", "Zg===", "Zm9v!mFy", "=", "Zg==Zg==", "Zm-_", "Zg.."}) {
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
  }
}

TEST(Base64Test, DecodesAnyBytes) {
  std::mt19937 random(7);
  for (size_t size = 0; size < 100; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random());
    EXPECT_THAT(DecodeBase64(absl::Base64Escape(bytes)), Optional(Eq(bytes)));
  }
}

}  // namespace
}  // namespace resmgr::agent
