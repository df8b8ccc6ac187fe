// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/callbacks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pkg/h2/limits.h"

namespace resmgr::h2 {

NvArray::NvArray(const HeaderBlock& headers) : size_(headers.fields().size()) {
  if (size_ > kFew) many_.resize(size_);
  nghttp2_nv* nv = many_.empty() ? few_.data() : many_.data();
  for (const HeaderBlock::Field& field : headers.fields()) {
    // nghttp2 takes pointers to non-const but copies what they point to, without a NO_COPY flag.
    nv->name = reinterpret_cast<uint8_t*>(const_cast<char*>(field.name.data()));
    nv->namelen = field.name.size();
    nv->value = reinterpret_cast<uint8_t*>(const_cast<char*>(field.value.data()));
    nv->valuelen = field.value.size();
    nv->flags = field.never_index ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
    ++nv;
  }
}

const nghttp2_session_callbacks* Session::Callbacks::Table() {
  static const nghttp2_session_callbacks* const kTable = [] {
    nghttp2_session_callbacks* table = nullptr;
    nghttp2_session_callbacks_new(&table);
    nghttp2_session_callbacks_set_send_callback(table, OnSend);
    nghttp2_session_callbacks_set_send_data_callback(table, OnSendData);
    nghttp2_session_callbacks_set_data_source_read_length_callback(table, OnFrameLength);
    nghttp2_session_callbacks_set_on_begin_headers_callback(table, OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback2(table, OnHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(table, OnFrame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table, OnDataChunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(table, OnStreamClose);
    nghttp2_session_callbacks_set_on_frame_send_callback(table, OnFrameSent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(table, OnFrameNotSent);
    return table;
  }();
  return kTable;
}

nghttp2_data_provider Session::Callbacks::BodyOf(Stream& stream) {
  nghttp2_data_provider provider;
  provider.source.ptr = &stream;
  provider.read_callback = OnReadBody;
  return provider;
}

Stream* Session::Callbacks::Find(Session& self, int32_t id) {
  if (self.found_id_ != id) {
    self.found_ = static_cast<Stream*>(nghttp2_session_get_stream_user_data(self.session_, id));
    self.found_id_ = self.found_ == nullptr ? 0 : id;
  }
  return self.found_;
}

ssize_t Session::Callbacks::OnSend(nghttp2_session*, const uint8_t* data, size_t length, int,
                                   void* user) {
  Session& self = Self(user);
  if (self.out_.size() >= kOutputHighWater) {
    self.send_blocked_ = true;
    return NGHTTP2_ERR_WOULDBLOCK;
  }
  self.out_.Append(self.scratch_.Copy(data, length));
  return static_cast<ssize_t>(length);
}

int Session::Callbacks::OnSendData(nghttp2_session*, nghttp2_frame* frame, const uint8_t* header,
                                   size_t length, nghttp2_data_source*, void* user) {
  constexpr size_t kFrameHeaderSize = 9;
  Session& self = Self(user);
  if (self.out_.size() >= kOutputHighWater) {
    self.send_blocked_ = true;
    return NGHTTP2_ERR_WOULDBLOCK;
  }
  Stream* stream = Find(self, frame->hd.stream_id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  self.out_.Append(self.scratch_.Copy(header, kFrameHeaderSize));
  if (length <= kCopyBelow) {
    size_t left = length;
    for (const Slice& slice : stream->queue_.slices()) {
      if (left == 0) break;
      const size_t count = std::min(left, slice.size());
      self.out_.Append(self.scratch_.Copy(slice.data(), count));
      left -= count;
    }
    stream->queue_.Drop(length);
  } else {
    stream->queue_.MoveTo(length, self.out_);
  }
  if (length > 0 && stream->handler_ != nullptr) stream->handler_->OnSent(*stream, length);
  return 0;
}

ssize_t Session::Callbacks::OnReadBody(nghttp2_session* session, int32_t id, uint8_t*,
                                       size_t length, uint32_t* flags, nghttp2_data_source*,
                                       void* user) {
  Session& self = Self(user);
  Stream* stream = Find(self, id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  const size_t queued = stream->queue_.size();
  if (queued == 0 && !stream->ended_) {
    stream->deferred_ = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  const size_t count = std::min(queued, length);
  if (count == queued && stream->ended_) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!stream->trailers_.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const NvArray fields(stream->trailers_);
      if (nghttp2_submit_trailer(session, id, fields.data(), fields.size()) != 0) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
      }
    }
  }
  return static_cast<ssize_t>(count);
}

ssize_t Session::Callbacks::OnFrameLength(nghttp2_session*, uint8_t, int32_t,
                                          int32_t session_window, int32_t stream_window,
                                          uint32_t max_frame, void*) {
  const int64_t allowed = std::min<int64_t>(std::min(session_window, stream_window),
                                            std::min<uint32_t>(max_frame, kMaxFrameSize));
  return static_cast<ssize_t>(std::max<int64_t>(allowed, 1));
}

int Session::Callbacks::OnBeginHeaders(nghttp2_session* session, const nghttp2_frame* frame,
                                       void* user) {
  if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  Session& self = Self(user);
  auto* stream = new Stream(&self, frame->hd.stream_id);
  self.Link(*stream);
  nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
  return 0;
}

int Session::Callbacks::OnHeader(nghttp2_session*, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                                 nghttp2_rcbuf* value, uint8_t flags, void* user) {
  Stream* stream = Find(Self(user), frame->hd.stream_id);
  if (stream == nullptr) return 0;
  stream->incoming_size_ +=
      nghttp2_rcbuf_get_buf(name).len + nghttp2_rcbuf_get_buf(value).len + kHeaderOverhead;
  if (stream->incoming_size_ > kMaxHeaderBlock) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  stream->incoming_.AddReceived(name, value, (flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0);
  return 0;
}

int Session::Callbacks::OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  Session& self = Self(user);
  if (frame->hd.type == NGHTTP2_GOAWAY) {
    if (!self.server_ && !self.going_away_) {
      self.going_away_ = true;
      self.owner_.OnGoAway();
    }
    return 0;
  }
  if (!self.established_ && frame->hd.type == NGHTTP2_SETTINGS) {
    self.established_ = true;
    self.owner_.OnEstablished();
  }
  if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
  Stream* stream = Find(self, frame->hd.stream_id);
  if (stream == nullptr) return 0;
  if (frame->hd.type == NGHTTP2_HEADERS) {
    OnHeadersComplete(self, *stream, *frame);
  } else if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 && stream->handler_ != nullptr) {
    stream->handler_->OnEnd(*stream, HeaderBlock());
  }
  return 0;
}

void Session::Callbacks::OnHeadersComplete(Session& self, Stream& stream,
                                           const nghttp2_frame& frame) {
  const bool end = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  HeaderBlock headers = std::move(stream.incoming_);
  stream.incoming_size_ = 0;
  if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) {
    stream.handed_over_ = true;
    self.owner_.OnRequest(std::unique_ptr<Stream>(&stream), std::move(headers), end);
    return;
  }
  if (stream.handler_ == nullptr) return;
  if (!stream.headers_received_ && !self.server_) {
    stream.headers_received_ = true;
    stream.handler_->OnHeaders(stream, std::move(headers), end);
  } else if (end) {
    stream.handler_->OnEnd(stream, std::move(headers));
  } else {
    // A second block that does not end the stream has no meaning in gRPC and could not be relayed.
    stream.Reset(NGHTTP2_PROTOCOL_ERROR);
  }
}

int Session::Callbacks::OnDataChunk(nghttp2_session* session, uint8_t, int32_t id,
                                    const uint8_t* data, size_t length, void* user) {
  Session& self = Self(user);
  Stream* stream = Find(self, id);
  if (stream == nullptr || stream->handler_ == nullptr) {
    nghttp2_session_consume(session, id, length);
    return 0;
  }
  // Small pieces are copied, so that a few waiting bytes never keep a whole read buffer alive.
  Slice slice = length <= kCopyBelow ? self.scratch_.Copy(data, length)
                                     : Slice(self.read_block_, data, length);
  stream->unconsumed_ += length;
  stream->handler_->OnData(*stream, std::move(slice));
  return 0;
}

int Session::Callbacks::OnStreamClose(nghttp2_session*, int32_t id, uint32_t code, void* user) {
  Session& self = Self(user);
  if (Stream* stream = Find(self, id); stream != nullptr) self.CloseStream(*stream, code, false);
  return 0;
}

int Session::Callbacks::OnFrameSent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
  if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  Stream* stream = Find(Self(user), frame->hd.stream_id);
  if (stream == nullptr) return 0;
  stream->end_sent_ = true;
  if (stream->stop_receiving_) stream->Reset(NGHTTP2_NO_ERROR);
  return 0;
}

int Session::Callbacks::OnFrameNotSent(nghttp2_session*, const nghttp2_frame* frame, int,
                                       void* user) {
  // A request that never left: nghttp2 has no stream for it and so reports no close.
  if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  Session& self = Self(user);
  for (Stream* stream = self.open_; stream != nullptr; stream = stream->next_) {
    if (stream->id_ == frame->hd.stream_id) {
      self.CloseStream(*stream, NGHTTP2_REFUSED_STREAM, false);
      break;
    }
  }
  return 0;
}

}  // namespace resmgr::h2
