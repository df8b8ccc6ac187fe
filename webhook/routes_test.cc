// SPDX-License-Identifier: Apache-2.0
#include "webhook/routes.h"

#include <gtest/gtest.h>

#include "webhook/testing/reviews.h"

namespace resmgr::webhook {
namespace {

unsigned StatusOf(HttpRequest request) {
  return Serve(request).status;
}

TEST(RoutesTest, TakesReviewsAtTwoPaths) {
  const std::string body = ReviewOf(EverydayPod()).dump();
  for (const char* target : {"/", "/mutate", "/mutate?timeout=2s"}) {
    for (const char* type : {"application/json", "Application/JSON; charset=utf-8"}) {
      EXPECT_EQ(StatusOf({"POST", target, type, body}), 200u) << target << type;
    }
  }
}

TEST(RoutesTest, IsHealthy) {
  const HttpReply reply = Serve({.method = "GET", .target = "/healthz"});
  EXPECT_EQ(reply.status, 200u);
  EXPECT_EQ(reply.body, "ok\n");
  EXPECT_EQ(StatusOf({.method = "HEAD", .target = "/healthz"}), 200u);
}

TEST(RoutesTest, RefusesTheRest) {
  EXPECT_EQ(StatusOf({"POST", "/validate", "application/json", "{}"}), 404u);
  EXPECT_EQ(StatusOf({"POST", "", "application/json", "{}"}), 404u);
  EXPECT_EQ(StatusOf({"GET", "/mutate", "", ""}), 405u);
  EXPECT_EQ(StatusOf({"POST", "/healthz", "application/json", "{}"}), 405u);
  EXPECT_EQ(StatusOf({"POST", "/mutate", "application/vnd.kubernetes.protobuf", "{}"}), 415u);
  EXPECT_EQ(StatusOf({"POST", "/mutate", "", "{}"}), 415u);
  EXPECT_EQ(StatusOf({"POST", "/mutate", "application/json", ""}), 400u);
}

}  // namespace
}  // namespace resmgr::webhook
