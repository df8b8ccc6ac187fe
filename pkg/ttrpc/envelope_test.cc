// SPDX-License-Identifier: Apache-2.0
#include "pkg/ttrpc/envelope.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/ttrpc/limits.h"

namespace resmgr::ttrpc {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

// The bytes of a Go plugin's library: RegisterPlugin, name "logger", index "10", five seconds.
const std::string& RegisterPlugin() {
  static const std::string* const kBytes = new std::string(FromHex(
      "0a1c6e72692e706b672e6170692e7631616c706861312e52756e74696d65120e5265676973746572506c7567696e"
      "1a0c0a066c6f67676572120231302080e497d012"));
  return *kBytes;
}

TEST(EnvelopeTest, ReadsARequestOfAGoPeer) {
  const StatusOr<Request> request = DecodeRequest(RegisterPlugin());
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->service, "nri.pkg.api.v1alpha1.Runtime");
  EXPECT_EQ(request->method, "RegisterPlugin");
  EXPECT_EQ(request->payload, FromHex("0a066c6f6767657212023130"));
  EXPECT_EQ(request->timeout, std::chrono::seconds(5));
  EXPECT_THAT(request->metadata, IsEmpty());
  EXPECT_EQ(Encode(*request), RegisterPlugin()) << "and it is written as that one writes it";
}

TEST(EnvelopeTest, ARequestComesBackAsItWas) {
  const Request request{.service = "s",
                        .method = "m",
                        .payload = "",
                        .timeout = std::chrono::nanoseconds(0),
                        .metadata = {{"traceparent", "00-1"}, {"traceparent", "00-2"}}};
  const std::string bytes = Encode(request);
  const StatusOr<Request> decoded = DecodeRequest(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->metadata, request.metadata);
  EXPECT_EQ(decoded->timeout.count(), 0);
}

TEST(EnvelopeTest, ATimeThatIsOverIsNone) {
  std::string bytes = "\x20";
  bytes += "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";  // -1
  const StatusOr<Request> request = DecodeRequest(bytes);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->timeout.count(), 0);
}

TEST(EnvelopeTest, MetadataAreBounded) {
  Request request;
  request.metadata.assign(10 * kMostMetadata, {"k", "v"});
  const std::string bytes = Encode(request);
  EXPECT_EQ(DecodeRequest(bytes)->metadata.size(), kMostMetadata);
}

TEST(EnvelopeTest, AnErrorIsAStatus) {
  const std::string bytes = EncodeResponse(Unimplemented("method RunPodSandbox"));
  EXPECT_EQ(bytes, FromHex("0a18080c12146d6574686f642052756e506f6453616e64626f78"));
  const StatusOr<std::string_view> response = DecodeResponse(bytes);
  EXPECT_EQ(response.status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Message(response.status()), "method RunPodSandbox");
}

TEST(EnvelopeTest, AnEmptyResponseIsNoBytes) {
  EXPECT_THAT(EncodeResponse(std::string()), IsEmpty());
  const StatusOr<std::string_view> response = DecodeResponse("");
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(*response, IsEmpty());
}

TEST(EnvelopeTest, AStatusOfCodeZeroIsSuccess) {
  const std::string bytes = FromHex(
      "0a0208001202"
      "6869");
  const StatusOr<std::string_view> response = DecodeResponse(bytes);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(*response, "hi");
}

TEST(EnvelopeTest, ACodeThatDoesNotExistIsUnknown) {
  EXPECT_EQ(DecodeResponse(FromHex("0a0208"
                                   "63"))
                .status()
                .code(),
            StatusCode::kUnknown);
}

TEST(EnvelopeTest, WhatAPeerSaysIsFitForALog) {
  const std::string bytes =
      EncodeResponse(Internal("{}", "\x1b]0;title" + std::string(100'000, 'x')));
  const std::string text(Message(DecodeResponse(bytes).status()));
  EXPECT_LT(text.size(), 2000U);
  EXPECT_THAT(text, testing::Not(HasSubstr("\x1b")));
}

TEST(EnvelopeTest, WhatIsNotProtobufIsRefused) {
  EXPECT_EQ(DecodeRequest("\xff\xff").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeRequest(FromHex("2a020a05")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeResponse("\x0a").status().code(), StatusCode::kInternal);
  EXPECT_EQ(DecodeResponse(FromHex("0a010a")).status().code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace resmgr::ttrpc
