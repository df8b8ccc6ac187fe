// SPDX-License-Identifier: Apache-2.0
// The end of a connection that its peer still uses.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <sys/socket.h>

#include "pkg/h2/session.h"

namespace resmgr::h2 {
namespace {

// Distinguishes this PING from others.
constexpr std::string_view kDrainPing = "draining";
// Allows every stream for now; a second GOAWAY names the last one served (RFC 9113 section 6.8).
constexpr int32_t kAnyStream = 0x7fffffff;

}  // namespace

void Session::SendGoAway(int32_t last_stream, ErrorCode code) {
  std::array<uint8_t, 8> payload;
  WriteUint32(static_cast<uint32_t>(last_stream), payload.data());
  WriteUint32(static_cast<uint32_t>(code), payload.data() + 4);
  SendFrame(FrameType::kGoAway, 0, 0,
            {reinterpret_cast<const char*>(payload.data()), payload.size()});
}

void Session::GoAway() {
  drain_limit_.reset();
  if (failed_ || going_away_) return;
  going_away_ = true;
  SendGoAway(std::max(last_id_, 0), ErrorCode::kNoError);
}

void Session::Drain() {
  if (failed_ || going_away_ || drain_limit_ != nullptr) return;
  SendGoAway(kAnyStream, ErrorCode::kNoError);
  SendFrame(FrameType::kPing, 0, 0, kDrainPing);
  drain_limit_ = loop_.After(kDrainPingTimeout, [this] {
    const FlushQueue::Scope scope(flushes_);
    GoAway();
  });
}

// Frames come in order: a peer that answers has read the first GOAWAY, and the streams that it
// opened before have arrived.
void Session::OnPingAck(std::string_view payload) {
  if (drain_limit_ != nullptr && payload == kDrainPing) GoAway();
}

void Session::Abort(ErrorCode code, const Status& reason) {
  if (failed_) return;
  SendGoAway(std::max(last_id_, 0), code);
  Write();
  Fail(reason);
}

bool Session::AllDone() const {
  return going_away_ && open_streams_ == 0 && out_.empty() && due_.empty();
}

// A peer that writes to a closed socket drops the answers that it has not read yet (gRPC C++ ends
// the calls with "Broken pipe"), so a client closes first, when it has read to the end.
void Session::End() {
  if (last_word_ != nullptr) return;
  if (!server_ || write_broken_ || ::shutdown(socket_.get(), SHUT_WR) != 0) {
    Fail(Unavailable("the connection ended"));
    return;
  }
  write_broken_ = true;
  last_word_ = loop_.After(kLastWordTimeout, [this] {
    const FlushQueue::Scope scope(flushes_);
    Fail(Unavailable("the connection ended"));
  });
}

}  // namespace resmgr::h2
