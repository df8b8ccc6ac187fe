// SPDX-License-Identifier: Apache-2.0
// The frames that leave: control frames at once, in the order of the calls, and little DATA too if
// no other bytes wait. Other DATA leaves when the session is flushed, in turn between the streams
// and as far as the peer's windows allow.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <sys/socket.h>

#include "pkg/h2/session.h"

namespace resmgr::h2 {
namespace {

std::string_view AsText(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

// The end of a connection that its peer still uses.

// Distinguishes this PING from others.
constexpr std::string_view kDrainPing = "draining";
// Allows every stream for now; a second GOAWAY names the last one served (RFC 9113 section 6.8).
constexpr int32_t kAnyStream = 0x7fffffff;

}  // namespace

uint8_t* Session::SendFrame(FrameType type, uint8_t flags, int32_t stream,
                            std::string_view payload) {
  uint8_t* place = out_.Extend(kFrameHeaderSize + payload.size(), scratch_);
  WriteFrameHeader({.length = static_cast<uint32_t>(payload.size()),
                    .type = type,
                    .flags = flags,
                    .stream = stream},
                   place);
  if (!payload.empty()) std::memcpy(place + kFrameHeaderSize, payload.data(), payload.size());
  last_data_ = nullptr;
  MarkDirty();
  return place;
}

void Session::SendPreface(Role role) {
  if (role == Role::kClient) {
    out_.AppendCopy(kPreface, scratch_);
  }
  const std::pair<Setting, uint32_t> settings[] = {
      {role == Role::kClient ? Setting::kEnablePush : Setting::kMaxConcurrentStreams,
       role == Role::kClient ? 0 : kOurMaxConcurrentStreams},
      {Setting::kInitialWindowSize, static_cast<uint32_t>(kStreamWindow)},
      {Setting::kMaxFrameSize, kOurMaxFrameSize},
      {Setting::kMaxHeaderListSize, static_cast<uint32_t>(kMaxHeaderBlock)},
  };
  std::string payload;
  for (const auto& [setting, value] : settings) {
    std::array<uint8_t, 6> entry;
    entry[0] = 0;
    entry[1] = static_cast<uint8_t>(setting);
    WriteUint32(value, entry.data() + 2);
    payload.append(AsText(entry.data(), entry.size()));
  }
  SendFrame(FrameType::kSettings, 0, 0, payload);
  receive_window_.Open();
}

void Session::SendHeaderBlock(const HeaderBlock& headers, int32_t stream, bool end) {
  std::string_view rest = encoder_.Encode(headers);
  FrameType type = FrameType::kHeaders;
  auto flags = static_cast<uint8_t>(end ? kFlagEndStream : 0);
  while (rest.size() > max_frame_size_) {
    SendFrame(type, flags, stream, rest.substr(0, max_frame_size_));
    rest.remove_prefix(max_frame_size_);
    type = FrameType::kContinuation;
    flags = 0;
  }
  SendFrame(type, static_cast<uint8_t>(flags | kFlagEndHeaders), stream, rest);
  encoder_.GiveBack();
}

void Session::SendReset(int32_t stream, uint32_t code) {
  std::array<uint8_t, 4> payload;
  WriteUint32(code, payload.data());
  SendFrame(FrameType::kRstStream, 0, stream, AsText(payload.data(), payload.size()));
}

void Session::SendWindowUpdate(int32_t stream, size_t count) {
  std::array<uint8_t, 4> payload;
  WriteUint32(static_cast<uint32_t>(count), payload.data());
  SendFrame(FrameType::kWindowUpdate, 0, stream, AsText(payload.data(), payload.size()));
}

void Session::Ready(Stream& stream) {
  if (stream.id_ == 0) return;  // StartWaiting starts it
  if (stream.queue_.empty()) {
    ready_.PushFront(stream);  // its end needs no window, and must not wait for streams that do
  } else {
    ready_.Push(stream);
  }
  MarkDirty();
}

// Marks all streams that have data: their windows may have grown.
[[gnu::cold]] void Session::ReadyAll() {
  initial_window_grew_ = false;
  by_id_.ForEach([this](Stream& stream) {
    if (stream.WantsToSend()) Ready(stream);
  });
}

// Whether a small piece of this stream can be sent before the next flush.
bool Session::MaySendNow(const Stream& stream) const {
  return stream.id_ > 0 && stream.queue_.empty() && ready_.empty() &&
         out_.size() < kOutputHighWater;
}

void Session::SendData(Stream& stream, const Slice& data) {
  const size_t size = data.size();
  if (size == 0) return;
  // Small pieces are copied, so that a few waiting bytes never keep a whole read buffer alive.
  const bool small = size <= kCopyBelow;
  const auto count = static_cast<int64_t>(size);
  if (small && MaySendNow(stream) && count <= send_window_ && count <= WindowOf(stream)) {
    last_flags_ = SendFrame(FrameType::kData, 0, stream.id_, data.view()) + kFlagsAt;
    last_data_ = &stream;
    send_window_ -= count;
    stream.send_window_ -= count;
    if (stream.handler_ != nullptr) stream.handler_->OnSent(stream, size);
    return;
  }
  if (small) {
    stream.queue_.AppendCopy(data.view(), scratch_);
  } else {
    stream.queue_.Append(data);
  }
  Ready(stream);
}

void Session::SendEnd(Stream& stream, const HeaderBlock& trailers) {
  if (!MaySendNow(stream) || (trailers.empty() && last_data_ != &stream)) {
    stream.trailers_ = trailers;
    Ready(stream);
    return;
  }
  stream.end_sent_ = true;
  if (trailers.empty()) {
    *last_flags_ |= kFlagEndStream;
  } else {
    SendHeaderBlock(trailers, stream.id_, true);
  }
  OnEndSent(stream);
}

void Session::EncodeData() {
  if (initial_window_grew_) ReadyAll();
  while (!ready_.empty() && out_.size() < kOutputHighWater) {
    Stream& stream = ready_.Pop();
    if (EncodeOne(stream)) continue;
    // Only the connection's window stopped the stream, so it keeps its place: at the end of the
    // queue it would starve if each update of the window allows one frame.
    ready_.PushFront(stream);
    return;
  }
}

// Sends one frame of the stream. False: the connection's window is shut.
bool Session::EncodeOne(Stream& stream) {
  if (stream.reset_) return true;  // nothing follows a reset
  const size_t queued = stream.queue_.size();
  if (queued > 0 && send_window_ <= 0) return false;
  const int64_t stream_window = WindowOf(stream);
  if (queued > 0 && stream_window <= 0) return true;  // a WINDOW_UPDATE makes it ready again
  const auto window = static_cast<size_t>(
      std::max<int64_t>(0, std::min({send_window_, stream_window, int64_t{max_frame_size_}})));
  const size_t count = std::min(queued, std::min<size_t>(window, kOurMaxFrameSize));
  const bool last = count == queued && stream.ended_;
  const bool ends_here = last && stream.trailers_.empty();
  if (count > 0 || ends_here) {
    WriteFrameHeader({.length = static_cast<uint32_t>(count),
                      .type = FrameType::kData,
                      .flags = static_cast<uint8_t>(ends_here ? kFlagEndStream : 0),
                      .stream = stream.id_},
                     out_.Extend(kFrameHeaderSize, scratch_));
    stream.queue_.MoveTo(count, out_);
    last_data_ = nullptr;
    send_window_ -= static_cast<int64_t>(count);
    stream.send_window_ -= static_cast<int64_t>(count);
  }
  if (last) {
    stream.end_sent_ = true;
    if (!ends_here) SendHeaderBlock(stream.trailers_, stream.id_, true);
  } else if (!stream.queue_.empty()) {
    ready_.Push(stream);
  }
  if (last) OnEndSent(stream);
  if (count > 0 && stream.handler_ != nullptr) stream.handler_->OnSent(stream, count);
  return true;
}

void Session::OnEndSent(Stream& stream) {
  if (stream.end_received_) {
    CloseSoon(stream, static_cast<uint32_t>(ErrorCode::kNoError));
  } else if (stream.stop_receiving_) {
    stream.Reset(static_cast<uint32_t>(ErrorCode::kNoError));
  }
}

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
