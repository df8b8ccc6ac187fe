// SPDX-License-Identifier: Apache-2.0
// The windows of the streams for the peer's DATA, which grow by the bytes that their handlers give
// back. ReceiveWindow has the connection's.
#include <array>

#include "pkg/h2/session.h"

namespace resmgr::h2 {

void Session::Consume(Stream& stream, size_t count) {
  receive_window_.Consume(count);
  ConsumeStream(stream, count);
}

void Session::ConsumeStream(Stream& stream, size_t count) {
  if (!stream.open_ || stream.end_received_ || stream.reset_ || stream.id_ == 0) return;
  stream.consumed_ += count;
  if (stream.consumed_ < static_cast<size_t>(receive_window_.stream_window()) / 2) return;
  GiveBack(stream);
}

void Session::GiveBack(Stream& stream) {
  SendWindowUpdate(stream.id_, stream.consumed_);
  stream.receive_window_ += static_cast<int64_t>(stream.consumed_);
  stream.consumed_ = 0;
}

void Session::TellWindow(size_t count) {
  SendWindowUpdate(0, count);
}

void Session::TellStreamWindow(int32_t size) {
  std::array<uint8_t, 6> entry{0, static_cast<uint8_t>(Setting::kInitialWindowSize)};
  WriteUint32(static_cast<uint32_t>(size), entry.data() + 2);
  SendFrame(FrameType::kSettings, 0, 0,
            {reinterpret_cast<const char*>(entry.data()), entry.size()});
  // Bytes that are not given back yet may exceed a window that has become smaller.
  by_id_.ForEach([this, size](Stream& stream) {
    const bool receives = !stream.end_received_ && !stream.reset_;
    if (receives && stream.consumed_ >= static_cast<size_t>(size) / 2) GiveBack(stream);
  });
}

}  // namespace resmgr::h2
