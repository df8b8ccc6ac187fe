// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/call_observers.h"
#include "test/support/gzip.h"

namespace resmgr {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

class CallTapTest : public testing::Test {
 protected:
  void Start(size_t queue_bytes, dump::Dumper::Decompress decompress = {}) {
    auto dumper = dump::Dumper::Create({.specs = {"reset,full:.*"},
                                        .queue_bytes = queue_bytes,
                                        .decompress = std::move(decompress)},
                                       [this](bool, std::string_view line) {
                                         const std::lock_guard lock(mutex_);
                                         lines_.emplace_back(line);
                                       });
    ASSERT_TRUE(dumper.ok());
    dumper_ = *std::move(dumper);
  }

  std::unique_ptr<CallTap> NewTap() {
    return CallTap::Create(*dumper_, ++last_,
                           Method{.path = "/test.Service/Unary", .name = "Unary"}, false);
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::unique_ptr<dump::Dumper> dumper_;
  uint64_t last_ = 0;
};

TEST_F(CallTapTest, WhatIsCollectedAtOnceIsBoundedForAllCalls) {
  Start(8 * kMiB);
  // Incomplete messages in both directions.
  const std::string beginning = EncodeGrpcPrefix(false, 4 * kMiB) + std::string(kMiB, 'x');
  std::vector<std::unique_ptr<CallTap>> taps;
  for (int i = 0; i < 50; ++i) {
    taps.push_back(NewTap());
    taps.back()->OnRequestData(beginning);
    taps.back()->OnReplyData(beginning);
  }
  EXPECT_GE(dumper_->lost_calls(), 42U);
  const uint64_t lost = dumper_->lost_calls();
  for (const auto& tap : taps)
    tap->OnEnd({.code = 0, .message = {}});
  taps.clear();
  // All of the room is available again.
  const auto tap = NewTap();
  tap->OnRequestData(EncodeGrpcPrefix(false, 3 * kMiB) + std::string(3 * kMiB, '\1'));
  tap->OnEnd({.code = 0, .message = {}});
  EXPECT_TRUE(dumper_->Close(std::chrono::seconds(30)));
  EXPECT_EQ(dumper_->lost_calls(), lost);
  EXPECT_THAT(lines_.back(), HasSubstr("#51 (passthrough) REQUEST Unary"));
}

// Decompression takes several milliseconds, too long for the loop.
TEST_F(CallTapTest, CompressedMessagesAreDecompressedByTheDumper) {
  std::thread::id decompressed_by;
  Start(8 * kMiB, [&decompressed_by](const dump::Payload& payload) {
    decompressed_by = std::this_thread::get_id();
    return CallTap::Decompress(payload);
  });
  const auto tap = CallTap::Create(
      *dumper_, 1, Method{.path = "/runtime.v1.RuntimeService/Version", .name = "Version"}, false);
  h2::HeaderBlock headers;
  headers.Add("grpc-encoding", "gzip");
  tap->OnRequestHeaders(headers);
  runtime::v1::VersionRequest request;
  request.set_version("v1.30");
  const std::string compressed = test::Gzip(request.SerializeAsString());
  tap->OnRequestData(EncodeGrpcPrefix(true, compressed.size()) + compressed);
  tap->OnEnd({.code = 0, .message = {}});
  EXPECT_TRUE(dumper_->Close(std::chrono::seconds(30)));
  EXPECT_THAT(lines_, testing::Contains(HasSubstr("v1.30")));
  EXPECT_NE(decompressed_by, std::thread::id());
  EXPECT_NE(decompressed_by, std::this_thread::get_id());
}

}  // namespace
}  // namespace resmgr
