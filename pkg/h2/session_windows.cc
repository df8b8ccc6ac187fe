// SPDX-License-Identifier: Apache-2.0
// What the peer may send: its windows grow by what the handlers give back. Streams that nobody
// reads keep their share of the connection's window. When these shares take nearly all of it and
// nothing is given back for a while, the connection is crowded: all streams get smaller windows by
// a SETTINGS frame, and once the peer has confirmed them, the connection's grows as far as the
// unread streams need, so that the others go on. Memory stays below kMostUnread.
#include <algorithm>
#include <array>
#include <chrono>

#include "pkg/h2/session.h"

namespace resmgr::h2 {

namespace {

// A handler that reads consumes something within this time.
constexpr std::chrono::milliseconds kStallTime{20};
constexpr size_t kGiveBackConnection = static_cast<size_t>(kConnectionWindow) / 2;
// While the window is nearly shut, so that what was taken is never what is missing.
constexpr size_t kGiveBackEarly = static_cast<size_t>(kStreamWindow) / 2;
constexpr int64_t kGrant = kConnectionWindow / 2;

}  // namespace

void Session::Consume(Stream& stream, size_t count) {
  ConsumeConnection(count);
  ConsumeStream(stream, count);
}

void Session::ConsumeStream(Stream& stream, size_t count) {
  if (!stream.open_ || stream.end_received_ || stream.reset_ || stream.id_ == 0) return;
  stream.consumed_ += count;
  if (stream.consumed_ < static_cast<size_t>(stream_window_) / 2) return;
  GiveBack(stream);
}

void Session::GiveBack(Stream& stream) {
  SendWindowUpdate(stream.id_, stream.consumed_);
  stream.receive_window_ += static_cast<int64_t>(stream.consumed_);
  stream.consumed_ = 0;
}

void Session::ConsumeConnection(size_t count) {
  consumed_ += count;
  if (consumed_ < kGiveBackConnection &&
      (consumed_ < kGiveBackEarly || receive_window_ >= kStreamWindow)) {
    return;
  }
  GiveBackConnection();
}

void Session::GiveBackConnection() {
  gave_back_ = true;
  if (crowded_ && unread() < kConnectionWindow / 4) SetCrowded(false);
  if (!crowded_ && granted_ > kConnectionWindow) {
    // What was granted for a crowd is kept instead.
    const int64_t kept = std::min(granted_ - kConnectionWindow, static_cast<int64_t>(consumed_));
    granted_ -= kept;
    consumed_ -= static_cast<size_t>(kept);
    if (consumed_ == 0) return;
  }
  SendWindowUpdate(0, consumed_);
  receive_window_ += static_cast<int64_t>(consumed_);
  consumed_ = 0;
}

[[gnu::cold]] Status Session::OnLittleWindow() {
  if (receive_window_ < 0) return InvalidArgument("more DATA than the connection's window");
  // Consumed while the window was wide. If no handler consumes any more, nothing else gives it
  // back.
  if (consumed_ >= kGiveBackEarly) GiveBackConnection();
  if (crowded_) {
    GrantMore();
  } else if (stall_watch_ == nullptr && unread() > kConnectionWindow - kStreamWindow) {
    WatchForStall();
  }
  return OkStatus();
}

void Session::WatchForStall() {
  gave_back_ = false;
  stall_watch_ = loop_.After(kStallTime, [this] {
    const FlushQueue::Scope scope(flushes_);
    stall_watch_.reset();
    if (receive_window_ >= kStreamWindow) return;
    // Without more DATA nothing would look again.
    gave_back_ ? WatchForStall() : SetCrowded(true);
  });
}

void Session::SetCrowded(bool crowded) {
  crowded_ = crowded;
  stream_window_ = crowded ? kCrowdedStreamWindow : kStreamWindow;
  std::array<uint8_t, 6> entry{0, static_cast<uint8_t>(Setting::kInitialWindowSize)};
  WriteUint32(static_cast<uint32_t>(stream_window_), entry.data() + 2);
  SendFrame(FrameType::kSettings, 0, 0,
            {reinterpret_cast<const char*>(entry.data()), entry.size()});
  ++unconfirmed_settings_;
  if (!crowded) return;
  // What they had not been given back yet may be more than all of the smaller window.
  by_id_.ForEach([this](Stream& stream) {
    if (stream.consumed_ > 0 && !stream.end_received_ && !stream.reset_) GiveBack(stream);
  });
}

void Session::OnSettingsAck() {
  if (unconfirmed_settings_ > 0) --unconfirmed_settings_;
  if (crowded_) GrantMore();
}

void Session::GrantMore() {
  if (unconfirmed_settings_ > 0 || receive_window_ >= kStreamWindow ||
      unread() + receive_window_ + kGrant > kMostUnread) {
    return;
  }
  SendWindowUpdate(0, static_cast<size_t>(kGrant));
  granted_ += kGrant;
  receive_window_ += kGrant;
}

}  // namespace resmgr::h2
