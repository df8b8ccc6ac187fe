// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/session.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "pkg/h2/callbacks.h"
#include "pkg/h2/limits.h"
#include "pkg/h2/memory.h"

namespace resmgr::h2 {

namespace {

nghttp2_session* NewSession(Session::Role role, const nghttp2_session_callbacks* callbacks,
                            void* user) {
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  // The relay neither checks nor mends what the two ends say to each other.
  nghttp2_option_set_no_http_messaging(option, 1);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_max_send_header_block_length(option, kMaxHeaderBlock);
  nghttp2_session* session = nullptr;
  if (role == Session::Role::kServer) {
    nghttp2_session_server_new3(&session, callbacks, user, option, PooledMemory());
  } else {
    nghttp2_session_client_new3(&session, callbacks, user, option, PooledMemory());
  }
  nghttp2_option_del(option);
  std::array<nghttp2_settings_entry, 4> settings = {{
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kMaxFrameSize},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kMaxHeaderBlock},
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kMaxConcurrentStreams},
  }};
  if (role == Session::Role::kClient) {
    settings[3] = {NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
  }
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
  return session;
}

}  // namespace

Session::Session(EventLoop& loop, FlushQueue& flushes, UniqueFd socket, Role role, Owner& owner)
    : flushes_(flushes),
      socket_(std::move(socket)),
      owner_(owner),
      session_(NewSession(role, Callbacks::Table(), this)),
      server_(role == Role::kServer),
      watched_(EventLoop::kReadable) {
  watch_ = loop.Watch(socket_.get(), watched_, [this](int events) { OnSocket(events); });
  MarkDirty();
}

Session::~Session() {
  watch_.reset();
  flushes_.Remove(*this);
  while (open_ != nullptr) {
    Stream* stream = open_;
    CloseStream(*stream, NGHTTP2_CANCEL, true);
  }
  for (Stream* stream = closed_; stream != nullptr; stream = stream->next_) {
    stream->session_ = nullptr;
  }
  nghttp2_session_del(session_);
  for (Block* block : {read_block_, spare_block_}) {
    if (block != nullptr) block->Unref();
  }
}

void Session::OnSocket(int events) {
  const FlushQueue::Scope scope(flushes_);
  if ((events & EventLoop::kReadable) != 0) Read();
  if ((events & EventLoop::kWritable) != 0 && !failed_) MarkDirty();
}

void Session::ChooseReadBlock() {
  if (read_block_ != nullptr && !read_block_->shared()) read_used_ = 0;
  if (read_block_ != nullptr && read_block_->capacity() - read_used_ >= kReadAtLeast) return;
  std::swap(read_block_, spare_block_);
  read_used_ = 0;
  if (read_block_ != nullptr && !read_block_->shared()) return;
  if (read_block_ != nullptr) read_block_->Unref();
  read_block_ = Block::NewForReading();
}

void Session::Read() {
  ChooseReadBlock();
  uint8_t* place = read_block_->data() + read_used_;
  const ssize_t count = ::read(socket_.get(), place, read_block_->capacity() - read_used_);
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    Fail(Unavailable("connection broke: {}", std::strerror(errno)));
    return;
  }
  if (count == 0) {
    Fail(Unavailable("the peer closed the connection"));
    return;
  }
  read_used_ += static_cast<size_t>(count);
  Feed(place, static_cast<size_t>(count));
}

void Session::Feed(const uint8_t* data, size_t size) {
  const ssize_t used = nghttp2_session_mem_recv(session_, data, size);
  if (used < 0) {
    Fail(Unavailable("the peer does not speak HTTP/2: {}",
                     nghttp2_strerror(static_cast<int>(used))));
    return;
  }
  if (nghttp2_session_want_write(session_) != 0 || nghttp2_session_want_read(session_) == 0) {
    MarkDirty();
  }
}

void Session::Flush() {
  if (failed_) return;
  do {
    send_blocked_ = false;
    if (const int code = nghttp2_session_send(session_); code != 0) {
      Fail(Internal("HTTP/2 encoding failed: {}", nghttp2_strerror(code)));
      return;
    }
    if (!out_.empty()) Write();
  } while (send_blocked_ && out_.empty() && !failed_);
  if (failed_) return;
  if (out_.empty() && nghttp2_session_want_read(session_) == 0 &&
      nghttp2_session_want_write(session_) == 0) {
    Fail(Unavailable("the connection ended"));
    return;
  }
  UpdateEvents();
}

void Session::Write() {
  constexpr size_t kMaxPieces = 64;
  while (!out_.empty() && !write_broken_) {
    std::array<iovec, kMaxPieces> pieces;
    size_t count = 0;
    size_t offered = 0;
    for (const Slice& slice : out_.slices()) {
      if (count == kMaxPieces) break;
      pieces[count++] = {const_cast<uint8_t*>(slice.data()), slice.size()};
      offered += slice.size();
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t written = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (written < 0) {
      if (errno == EAGAIN) return;
      if (errno == EINTR) continue;
      write_broken_ = true;
      break;
    }
    out_.Drop(static_cast<size_t>(written));
    if (static_cast<size_t>(written) < offered) return;  // the socket is full
  }
  if (write_broken_) out_.Clear();
}

void Session::UpdateEvents() {
  const int wanted =
      out_.empty() ? EventLoop::kReadable : EventLoop::kReadable | EventLoop::kWritable;
  if (wanted == watched_) return;
  watched_ = wanted;
  EventLoop::SetEvents(*watch_, wanted);
}

void Session::Fail(const Status& reason) {
  if (failed_) return;
  failed_ = true;
  watch_.reset();
  flushes_.Remove(*this);
  while (open_ != nullptr)
    CloseStream(*open_, NGHTTP2_CANCEL, true);
  socket_.Reset();
  owner_.OnDisconnect(reason);
}

std::unique_ptr<Stream> Session::OpenStream(const HeaderBlock& headers, bool end,
                                            StreamHandler& handler) {
  if (failed_ || going_away_) return nullptr;
  const NvArray fields(headers);
  std::unique_ptr<Stream> stream(new Stream(this, 0));
  const nghttp2_data_provider body = Callbacks::BodyOf(*stream);
  const int32_t id = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                            end ? nullptr : &body, stream.get());
  if (id < 0) {
    stream->open_ = false;
    stream->session_ = nullptr;
    return nullptr;
  }
  stream->id_ = id;
  stream->handed_over_ = true;
  stream->handler_ = &handler;
  stream->headers_sent_ = true;
  stream->ended_ = end;
  Link(*stream);
  MarkDirty();
  return stream;
}

void Session::GoAway() {
  if (failed_ || going_away_) return;
  going_away_ = true;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  MarkDirty();
}

void Session::Link(Stream& stream) {
  Stream*& head = stream.open_ ? open_ : closed_;
  stream.previous_ = nullptr;
  stream.next_ = head;
  if (head != nullptr) head->previous_ = &stream;
  head = &stream;
  if (stream.open_) ++open_streams_;
}

void Session::Unlink(Stream& stream) {
  Stream*& head = stream.open_ ? open_ : closed_;
  if (stream.previous_ != nullptr) {
    stream.previous_->next_ = stream.next_;
  } else {
    head = stream.next_;
  }
  if (stream.next_ != nullptr) stream.next_->previous_ = stream.previous_;
  if (stream.open_) --open_streams_;
}

void Session::Forget(const Stream& stream) {
  nghttp2_session_set_stream_user_data(session_, stream.id_, nullptr);
  if (found_id_ == stream.id_) found_id_ = 0;
}

void Session::CloseStream(Stream& stream, uint32_t error_code, bool connection_lost) {
  Unlink(stream);
  stream.open_ = false;
  stream.connection_lost_ = connection_lost;
  stream.queue_.Clear();
  Link(stream);
  Forget(stream);
  if (!stream.handed_over_) {
    delete &stream;
  } else if (stream.handler_ != nullptr) {
    stream.handler_->OnClose(stream, error_code);
  }
}

}  // namespace resmgr::h2
