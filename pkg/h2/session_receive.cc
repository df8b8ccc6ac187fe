// SPDX-License-Identifier: Apache-2.0
// The frames that arrive. A returned error ends the connection; an error of one stream resets it.
#include <algorithm>
#include <utility>

#include "pkg/h2/session.h"

namespace resmgr::h2 {

// Whether the stream was not opened yet (idle, RFC 9113 section 5.1). Frames on such streams are
// errors; on closed ones they are late and ignored.
bool Session::IsIdle(int32_t id) const {
  const bool of_the_client = id % 2 == 1;
  return !of_the_client || id > last_id_;
}

Status Session::OnFrame(const FrameHeader& header, std::string_view payload) {
  if (failed_) return OkStatus();
  if (in_headers_ != (header.type == FrameType::kContinuation)) {
    return InvalidArgument("another frame within a header block");
  }
  if (!established_ && header.type != FrameType::kSettings) {
    return InvalidArgument("the peer's first frame is not SETTINGS");
  }
  if (header.type == FrameType::kHeaders) return OnHeadersFrame(header, payload);
  if (header.type == FrameType::kWindowUpdate) return OnWindowUpdate(header, payload);
  return OnRareFrame(header, payload);
}

// Not inlined, so that the code for common frames need not jump over it.
[[gnu::noinline]] Status Session::OnRareFrame(const FrameHeader& header, std::string_view payload) {
  switch (header.type) {
    case FrameType::kContinuation:
      return OnContinuation(header, payload);
    case FrameType::kSettings:
      return OnSettings(header, payload);
    case FrameType::kRstStream:
      return OnReset(header, payload);
    case FrameType::kPing:
      if (payload.size() != 8 || header.stream != 0) return InvalidArgument("malformed PING frame");
      if (header.Has(kFlagAck)) {
        OnPingAck(payload);
      } else {
        SendFrame(FrameType::kPing, kFlagAck, 0, payload);
      }
      return OkStatus();
    case FrameType::kGoAway:
      if (payload.size() < 8 || header.stream != 0)
        return InvalidArgument("malformed GOAWAY frame");
      OnGoAwayFrame(payload);
      return OkStatus();
    case FrameType::kPushPromise:
      return InvalidArgument("PUSH_PROMISE is not enabled");
    case FrameType::kHeaders:
    case FrameType::kWindowUpdate:
    case FrameType::kPriority:
    case FrameType::kData:
      return OkStatus();
  }
  return OkStatus();  // unknown types are ignored
}

Status Session::OnData(const FrameHeader& header, const Slice& bytes, bool begins, bool ends) {
  if (failed_) return OkStatus();
  if (begins) RESMGR_RETURN_IF_ERROR(BeginData(header));
  if (const size_t size = bytes.size(); size > 0) {
    data_left_ -= static_cast<uint32_t>(size);
    Stream* stream = data_stream_;
    if (stream == nullptr || stream->reset_ || stream->handler_ == nullptr) {
      receive_window_.Consume(size);
    } else {
      stream->unconsumed_ += size;
      stream->handler_->OnData(*stream, bytes);
    }
  }
  if (!ends || failed_) return OkStatus();
  Stream* stream = std::exchange(data_stream_, nullptr);
  // The unread rest of the frame is padding.
  if (data_left_ > 0) {
    const uint32_t padding = std::exchange(data_left_, 0);
    receive_window_.Consume(padding);
    if (stream != nullptr) ConsumeStream(*stream, padding);
  }
  if (stream != nullptr && !stream->reset_ && header.Has(kFlagEndStream)) {
    OnPeerEnd(*stream, HeaderBlock());
  }
  return OkStatus();
}

inline Status Session::BeginData(const FrameHeader& header) {
  if (in_headers_ || !established_ || header.stream == 0 || IsIdle(header.stream)) {
    return InvalidArgument("unexpected DATA frame");
  }
  RESMGR_RETURN_IF_ERROR(receive_window_.Take(header.length));
  data_left_ = header.length;
  data_stream_ = Find(header.stream);
  if (data_stream_ == nullptr) return OkStatus();
  data_stream_->receive_window_ -= header.length;
  if (data_stream_->receive_window_ >= 0 && !data_stream_->end_received_) return OkStatus();
  return ResetBroken(*std::exchange(data_stream_, nullptr), ErrorCode::kFlowControlError);
}

[[gnu::cold]] Status Session::ResetBroken(Stream& stream, ErrorCode code) {
  stream.Reset(static_cast<uint32_t>(code));
  return CountReset();
}

Status Session::CountReset() {
  if (!server_ || resets_.Pass(loop_.Now())) return OkStatus();
  return ResourceExhausted("more than {} calls are given up in a second", kMostResets);
}

void Session::OnPeerEnd(Stream& stream, const HeaderBlock& trailers) {
  stream.end_received_ = true;
  if (stream.end_sent_) CloseSoon(stream, static_cast<uint32_t>(ErrorCode::kNoError));
  if (stream.handler_ != nullptr) stream.handler_->OnEnd(stream, trailers);
}

Status Session::OnHeadersFrame(const FrameHeader& header, std::string_view payload) {
  size_t padding = 0;
  if (header.Has(kFlagPadded)) {
    if (payload.empty()) return InvalidArgument("malformed HEADERS frame");
    padding = Octets(payload)[0];
    payload.remove_prefix(1);
  }
  if (header.Has(kFlagPriority)) {
    constexpr size_t kPrioritySize = 5;
    if (payload.size() < kPrioritySize) return InvalidArgument("malformed HEADERS frame");
    payload.remove_prefix(kPrioritySize);
  }
  if (padding > payload.size() || header.stream == 0)
    return InvalidArgument("malformed HEADERS frame");
  payload.remove_suffix(padding);
  if (header.Has(kFlagEndHeaders)) {
    return OnHeaderBlock(header.stream, header.Has(kFlagEndStream), payload);
  }
  in_headers_ = true;
  header_frame_ = header;
  header_block_.Append(payload);
  return OkStatus();
}

Status Session::OnContinuation(const FrameHeader& header, std::string_view payload) {
  if (header.stream != header_frame_.stream)
    return InvalidArgument("CONTINUATION frame of another stream");
  // The limit is that of decoded blocks: a block within it is even shorter when encoded.
  if (header_block_.size() + payload.size() > kMaxHeaderBlock) {
    return InvalidArgument("a header block of more than {} bytes", kMaxHeaderBlock);
  }
  // An endless row of empty frames must not keep the process busy.
  if (payload.empty() && !header.Has(kFlagEndHeaders))
    return InvalidArgument("empty CONTINUATION frame");
  header_block_.Append(payload);
  if (!header.Has(kFlagEndHeaders)) return OkStatus();
  in_headers_ = false;
  Status taken =
      OnHeaderBlock(header_frame_.stream, header_frame_.Has(kFlagEndStream), header_block_.view());
  header_block_.Clear();
  return taken;
}

Status Session::OnHeaderBlock(int32_t id, bool end, std::string_view block) {
  if (const HeaderBlock* known = decoder_.Recall(block); known != nullptr) {
    return OnHeaders(id, end, *known);
  }
  return OnUnknownBlock(id, end, block);
}

[[gnu::noinline]] Status Session::OnUnknownBlock(int32_t id, bool end, std::string_view block) {
  auto headers = decoder_.Decode(block, kMaxHeaderBlock);
  if (headers.ok()) return OnHeaders(id, end, *headers);
  if (headers.status().code() == StatusCode::kResourceExhausted) return OnTooManyHeaders(id);
  return headers.status();
}

Status Session::OnTooManyHeaders(int32_t id) {
  if (IsIdle(id)) {
    RESMGR_RETURN_IF_ERROR(CheckNewRequest(id));
    last_id_ = id;
    SendReset(id, static_cast<uint32_t>(ErrorCode::kEnhanceYourCalm));
  } else if (Stream* stream = Find(id); stream != nullptr) {
    return ResetBroken(*stream, ErrorCode::kProtocolError);
  }
  return OkStatus();
}

Status Session::CheckNewRequest(int32_t id) const {
  if (server_ && id % 2 == 1) return OkStatus();
  return InvalidArgument("HEADERS frame with an invalid stream number");
}

Status Session::OnHeaders(int32_t id, bool end, const HeaderBlock& headers) {
  if (IsIdle(id)) {
    RESMGR_RETURN_IF_ERROR(CheckNewRequest(id));
    OnNewRequest(id, end, headers);
    return OkStatus();
  }
  Stream* stream = Find(id);
  if (stream == nullptr || stream->handler_ == nullptr) return OkStatus();
  if (!server_ && !stream->headers_received_ && !stream->end_received_) {
    stream->headers_received_ = true;
    if (end) {
      stream->end_received_ = true;
      if (stream->end_sent_) CloseSoon(*stream, static_cast<uint32_t>(ErrorCode::kNoError));
    }
    stream->handler_->OnHeaders(*stream, headers, end);
  } else if (end && !stream->end_received_) {
    OnPeerEnd(*stream, headers);
  } else {
    // A second block that does not end the stream has no meaning in gRPC and could not be relayed.
    return ResetBroken(*stream, ErrorCode::kProtocolError);
  }
  return OkStatus();
}

void Session::OnNewRequest(int32_t id, bool end, const HeaderBlock& headers) {
  last_id_ = id;
  // The stream is above the last one in GOAWAY: the client tries it elsewhere. Later frames on it
  // are late, not wrong.
  if (going_away_) return;
  if (open_streams_ >= static_cast<int>(kOurMaxConcurrentStreams)) {
    SendReset(id, static_cast<uint32_t>(ErrorCode::kRefusedStream));
    return;
  }
  std::unique_ptr<Stream> stream(new Stream(this, id));
  stream->receive_window_ = kStreamWindow;
  stream->headers_received_ = true;
  stream->end_received_ = end;
  by_id_.Insert(*stream);
  ++open_streams_;
  owner_.OnRequest(std::move(stream), headers, end);
}

Status Session::OnReset(const FrameHeader& header, std::string_view payload) {
  if (payload.size() != 4 || IsIdle(header.stream))
    return InvalidArgument("malformed RST_STREAM frame");
  RESMGR_RETURN_IF_ERROR(CountReset());
  if (Stream* stream = Find(header.stream); stream != nullptr) {
    stream->queue_.Clear();
    CloseSoon(*stream, ReadUint32(Octets(payload)));
  }
  return OkStatus();
}

Status Session::OnSettings(const FrameHeader& header, std::string_view payload) {
  constexpr size_t kEntrySize = 6;
  if (header.stream != 0 || payload.size() % kEntrySize != 0)
    return InvalidArgument("malformed SETTINGS frame");
  if (header.Has(kFlagAck)) {
    if (!payload.empty()) return InvalidArgument("malformed SETTINGS frame");
    receive_window_.OnSettingsConfirmed();
    return OkStatus();
  }
  if (payload.size() > kMostSettings * kEntrySize) {
    return InvalidArgument("{} settings in a frame are too many", payload.size() / kEntrySize);
  }
  for (; !payload.empty(); payload.remove_prefix(kEntrySize)) {
    const uint8_t* entry = Octets(payload);
    RESMGR_RETURN_IF_ERROR(
        OnSetting(static_cast<uint16_t>(entry[0] << 8 | entry[1]), ReadUint32(entry + 2)));
  }
  SendFrame(FrameType::kSettings, kFlagAck, 0, "");
  if (!established_) {
    established_ = true;
    owner_.OnEstablished();
  }
  return OkStatus();
}

Status Session::OnSetting(uint16_t id, uint32_t value) {
  switch (static_cast<Setting>(id)) {
    case Setting::kHeaderTableSize:
      encoder_.SetTableSize(value);
      break;
    case Setting::kMaxConcurrentStreams:
      max_streams_ = value;
      StartWaiting();
      break;
    case Setting::kInitialWindowSize:
      if (value > kMaxWindow) return InvalidArgument("invalid initial window of {} bytes", value);
      // The streams are updated once, after all read bytes: the peer may change the value every few
      // bytes.
      if (value > initial_send_window_) {
        initial_window_grew_ = true;
        MarkDirty();
      }
      initial_send_window_ = value;
      break;
    case Setting::kMaxFrameSize:
      if (value < kDefaultMaxFrameSize || value > 0xffffff) {
        return InvalidArgument("invalid maximum frame size of {} bytes", value);
      }
      max_frame_size_ = value;
      break;
    case Setting::kEnablePush:
    case Setting::kMaxHeaderListSize:
      break;
  }
  return OkStatus();
}

Status Session::OnWindowUpdate(const FrameHeader& header, std::string_view payload) {
  if (payload.size() != 4) return InvalidArgument("malformed WINDOW_UPDATE frame");
  const int64_t count = ReadUint32(Octets(payload)) & 0x7fffffff;
  if (header.stream == 0) {
    send_window_ += count;
    if (count == 0 || send_window_ > kMaxWindow)
      return InvalidArgument("malformed WINDOW_UPDATE frame");
    if (!ready_.empty()) MarkDirty();
    return OkStatus();
  }
  if (IsIdle(header.stream))
    return InvalidArgument("WINDOW_UPDATE frame for a stream that was never opened");
  Stream* stream = Find(header.stream);
  if (stream == nullptr) return OkStatus();
  stream->send_window_ += count;
  if (count == 0 || WindowOf(*stream) > kMaxWindow)
    return ResetBroken(*stream, ErrorCode::kFlowControlError);
  if (stream->WantsToSend()) Ready(*stream);
  return OkStatus();
}

void Session::OnGoAwayFrame(std::string_view payload) {
  if (server_) return;  // a leaving client: its open calls go on
  const auto last = static_cast<int32_t>(ReadUint32(Octets(payload)) & 0x7fffffff);
  const bool first = !going_away_;
  going_away_ = true;
  // Requests that the peer never processed may be tried again elsewhere.
  const auto refused = static_cast<uint32_t>(ErrorCode::kRefusedStream);
  by_id_.ForEach([&](Stream& stream) {
    if (stream.id_ > last) CloseSoon(stream, refused);
  });
  for (const auto& [stream, headers] : waiting_)
    CloseSoon(*stream, refused);
  if (first) owner_.OnGoAway();
}

}  // namespace resmgr::h2
