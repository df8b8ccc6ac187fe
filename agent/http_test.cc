// SPDX-License-Identifier: Apache-2.0
#include "agent/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using test::Fails;
using test::IsOk;
using testing::HasSubstr;

HttpReply Reply(int status, const std::string& body = "") {
  return {.status = status, .body = body, .retry_after = {}};
}

TEST(HttpTest, TurnsRepliesIntoStatus) {
  EXPECT_THAT(StatusOfReply(Reply(200)), IsOk());
  EXPECT_THAT(StatusOfReply(Reply(201)), IsOk());
  EXPECT_EQ(StatusOfReply(Reply(401)).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(StatusOfReply(Reply(403)).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(StatusOfReply(Reply(404)).code(), StatusCode::kNotFound);
  EXPECT_EQ(StatusOfReply(Reply(409)).code(), StatusCode::kAborted);
  EXPECT_EQ(StatusOfReply(Reply(410)).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(StatusOfReply(Reply(422)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusOfReply(Reply(429)).code(), StatusCode::kUnavailable);
  EXPECT_EQ(StatusOfReply(Reply(500)).code(), StatusCode::kUnavailable);
  EXPECT_EQ(StatusOfReply(Reply(302)).code(), StatusCode::kUnavailable);
}

TEST(HttpTest, PrefersTheServersOwnWords) {
  EXPECT_THAT(StatusOfReply(Reply(403, R"({"message":"nodes is forbidden"})")),
              Fails(StatusCode::kPermissionDenied, HasSubstr("403: nodes is forbidden")));
  EXPECT_THAT(StatusOfReply(Reply(500, "plain\x01text")),
              Fails(StatusCode::kUnavailable, HasSubstr("plain\\x01text")));
}

}  // namespace
}  // namespace resmgr::agent
