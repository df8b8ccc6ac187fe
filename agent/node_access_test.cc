// SPDX-License-Identifier: Apache-2.0
#include "agent/node_access.h"

#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/fake_transport.h"

namespace resmgr::agent {
namespace {

constexpr char kPath[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c4";

class ClaimReaderTest : public testing::Test {
 protected:
  std::shared_ptr<std::optional<StatusOr<std::string>>> Get(const std::string& name,
                                                            const std::string& of = "default") {
    auto result = std::make_shared<std::optional<StatusOr<std::string>>>();
    reader_->Get(of, name, [result](StatusOr<std::string> claim) { *result = std::move(claim); });
    return result;
  }

  FakeTransport transport_;
  std::unique_ptr<ClaimReader> reader_ = std::make_unique<ClaimReader>(transport_);
};

TEST_F(ClaimReaderTest, YieldsTheObjectOfTheServer) {
  const auto claim = Get("c4");
  EXPECT_EQ(transport_.Request(kPath).method, "GET");
  ASSERT_TRUE(transport_.Answer(kPath, 200, {{"kind", "ResourceClaim"}}));
  ASSERT_TRUE(claim->has_value() && (*claim)->ok());
  EXPECT_EQ((*claim)->value(), "{\"kind\":\"ResourceClaim\"}");
}

TEST_F(ClaimReaderTest, TellsWhatTheServerSaysOnce) {
  const auto missing = Get("c4");
  ASSERT_TRUE(transport_.Answer(
      kPath, 404,
      {{"message", "no such claim"}, {"details", {{"name", "c4"}, {"kind", "resourceclaims"}}}}));
  EXPECT_EQ((*missing)->status().code(), StatusCode::kNotFound);
  const auto away = Get("c4");
  ASSERT_TRUE(transport_.Answer(kPath, Unavailable("connection refused")));
  EXPECT_EQ((*away)->status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(transport_.sent(), 2) << "the kubelet tries again";
}

TEST_F(ClaimReaderTest, AServerWithoutTheApiDoesNotSayThatTheClaimIsMissing) {
  for (const Json& answer :
       {Json("404 page not found"), Json({{"message", "the server could not find the resource"}}),
        Json({{"details", {{"name", "other"}}}})}) {
    const auto claim = Get("c4");
    ASSERT_TRUE(transport_.Answer(kPath, 404, answer));
    EXPECT_EQ((*claim)->status().code(), StatusCode::kFailedPrecondition) << answer;
  }
}

TEST_F(ClaimReaderTest, NamesAreNotPaths) {
  for (const char* const name : {"", "../secrets/s", "a/b", "A", "a?x=1"}) {
    EXPECT_EQ((*Get(name))->status().code(), StatusCode::kInvalidArgument) << name;
    EXPECT_EQ((*Get("c4", name))->status().code(), StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(transport_.sent(), 0);
}

TEST_F(ClaimReaderTest, ManyAtOnceAreRefusedAndTheEndIsQuiet) {
  for (size_t i = 0; i < ClaimReader::kMostAtOnce; ++i)
    Get("c4");
  EXPECT_EQ((*Get("c4"))->status().code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(transport_.Answer(kPath, 200, Json::object()));
  const auto last = Get("c4");
  EXPECT_FALSE(last->has_value());
  reader_.reset();
  EXPECT_EQ(transport_.open(), 0U);
  EXPECT_FALSE(last->has_value());
}

}  // namespace
}  // namespace resmgr::agent
