// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/status.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(StatusTest, MakersCarryCodeAndText) {
  const Status status = ResourceExhausted("container {}: needs {} CPUs, {} free", "a/b", 4, 2);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status), "container a/b: needs 4 CPUs, 2 free");
  EXPECT_EQ(Describe(status), "resource exhausted: container a/b: needs 4 CPUs, 2 free");
}

TEST(StatusTest, AnnotateKeepsTheCode) {
  const Status status = Annotate(NotFound("no such file"), "reading x");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(Message(status), "reading x: no such file");
  EXPECT_TRUE(Annotate(OkStatus(), "reading x").ok());
}

TEST(StatusTest, NamesAreThoseOfGrpc) {
  EXPECT_EQ(CodeName(StatusCode::kUnavailable), "UNAVAILABLE");
  EXPECT_EQ(CodeName(StatusCode::kOk), "OK");
  EXPECT_EQ(CodeName(static_cast<StatusCode>(99)), "UNKNOWN");
}

StatusOr<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument("{} is odd", value);
  return value / 2;
}

StatusOr<int> Quarter(int value) {
  RESMGR_ASSIGN_OR_RETURN(const int half, Half(value));
  return Half(half);
}

TEST(StatusTest, AssignOrReturnPassesErrorsOn) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Message(Quarter(6).status()), "3 is odd");
}

}  // namespace
}  // namespace resmgr
