// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/failure_policy.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(FailurePolicyTest, ReadsBackWhatItPrints) {
  for (const FailurePolicy policy : {FailurePolicy::kFail, FailurePolicy::kIgnore})
    EXPECT_EQ(*ParseFailurePolicy(ToString(policy)), policy);
}

TEST(FailurePolicyTest, CaseDoesNotMatter) {
  EXPECT_EQ(*ParseFailurePolicy("Fail"), FailurePolicy::kFail);
  EXPECT_EQ(*ParseFailurePolicy("IGNORE"), FailurePolicy::kIgnore);
}

TEST(FailurePolicyTest, OtherWordsAreErrors) {
  for (const char* text : {"", "ignored", "true", "fail "})
    EXPECT_EQ(ParseFailurePolicy(text).status().code(), StatusCode::kInvalidArgument) << text;
  EXPECT_EQ(Message(ParseFailurePolicy("perhaps\n").status()),
            "\"perhaps\\x0a\" is not one of fail, ignore");
}

}  // namespace
}  // namespace resmgr
