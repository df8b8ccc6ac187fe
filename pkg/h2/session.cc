// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

#include "pkg/sys/raw_calls.h"

namespace resmgr::h2 {

Session::Session(EventLoop& loop, FlushQueue& flushes, UniqueFd socket, Role role, Owner& owner)
    : loop_(loop),
      flushes_(flushes),
      socket_(std::move(socket)),
      owner_(owner),
      server_(role == Role::kServer),
      reader_(*this, server_),
      receive_window_(loop, flushes, *this),
      watched_(EventLoop::kReadable) {
  if (!server_) last_id_ = -1;  // a client's streams are 1, 3, 5, ...
  watch_ = loop.Watch(socket_.get(), watched_, [this](int events) { OnSocket(events); });
  SendPreface(role);
}

Session::~Session() {
  watch_.reset();
  flushes_.Remove(*this);
  failed_ = true;
  CloseAll();
  for (Stream* stream = closed_; stream != nullptr; stream = stream->next_) {
    stream->session_ = nullptr;
  }
  if (read_block_ != nullptr) read_block_->Unref();
}

void Session::OnSocket(int events) {
  const FlushQueue::Scope scope(flushes_);
  if ((events & EventLoop::kReadable) != 0 && input_.empty() && HasRoom()) Read();
  if ((events & EventLoop::kWritable) != 0 && !failed_) {
    blocked_ = false;
    MarkDirty();
  }
}

// If much memory is held, the next read takes only a small block.
void Session::ChooseReadBlock() {
  const bool much = Memory::held() > kMuchHeld;
  const size_t least = much ? kScratchBlock / 4 : kReadAtLeast;
  if (read_block_ != nullptr && !read_block_->shared()) read_used_ = 0;
  if (read_block_ != nullptr && read_block_->capacity() - read_used_ >= least) return;
  if (read_block_ != nullptr) read_block_->Unref();
  read_used_ = 0;
  read_block_ = Block::New(much ? kScratchBlock : kReadBlock);
}

// Returns the block to the other sessions unless it has unread input: the next read takes the block
// that was used last, which is in the processor's cache.
void Session::DropReadBlock() {
  if (read_block_ == nullptr || read_block_->shared() || !input_.empty()) return;
  read_block_->Unref();
  read_block_ = nullptr;
}

void Session::Read() {
  ChooseReadBlock();
  uint8_t* place = read_block_->data() + read_used_;
  const ssize_t count = RawReceive(socket_.get(), place, read_block_->capacity() - read_used_);
  if (count < 0) {
    if (TryAgain()) return;
    Fail(Unavailable("connection broke: {}", std::strerror(errno)));
    return;
  }
  if (count == 0) {
    Fail(Unavailable("the peer closed the connection"));
    return;
  }
  if (traffic_ != nullptr) traffic_->Received(static_cast<size_t>(count));
  read_used_ += static_cast<size_t>(count);
  input_ = {reinterpret_cast<const char*>(place), static_cast<size_t>(count)};
  TakeFrames();
}

void Session::TakeFrames() {
  if (const Status status = reader_.Feed(read_block_, input_, kFramesPerTurn); !status.ok()) {
    input_ = {};
    Abort(status.code() == StatusCode::kResourceExhausted ? ErrorCode::kEnhanceYourCalm
                                                          : ErrorCode::kProtocolError,
          status);
    return;
  }
  if (!input_.empty() && !failed_) {
    go_on_ = loop_.After(std::chrono::milliseconds(0), [this] {
      const FlushQueue::Scope scope(flushes_);
      go_on_.reset();
      TakeFrames();
      UpdateReading();
    });
    UpdateReading();
    return;
  }
  if (read_block_->shared()) {
    flushes_.LookAgain(*this);
  } else {
    DropReadBlock();
  }
  if (!due_.empty() || AllDone()) MarkDirty();
}

// Bytes that this connection holds. Unsent bytes for a runtime are left out, since it may read only
// after its own bytes were read here.
size_t Session::kept() const {
  return static_cast<size_t>(std::max<int64_t>(unread(), 0)) + reader_.held() +
         header_block_.size() + (server_ ? out_.size() : 0);
}

// Whether this session may read: when memory is short, sessions that hold much pause.
bool Session::HasRoom() {
  if (Memory::held() <= kMuchHeld || kept() <= kKeptShare) [[likely]]
    return true;
  if (!std::exchange(no_room_, true)) flushes_.WaitForRoom(*this);
  UpdateReading();
  return false;
}

void Session::OnRoom() {
  no_room_ = false;
  UpdateReading();
}

void Session::Flush() {
  if (failed_) return;
  do {
    EncodeData();
    if (!out_.empty() && !blocked_) Write();
  } while (out_.empty() && !ready_.empty() && send_window_ > 0);
  CloseDue();
  if (failed_) return;
  if (AllDone()) {
    End();
    return;
  }
  if (out_.size() > kOutputLimit) {
    Fail(Unavailable("the peer takes no answers"));
    return;
  }
  WatchOutput();
}

namespace {

// Sends the slices in one system call; returns its result, and the number of bytes that it was
// given.
std::pair<ssize_t, size_t> Offer(int socket, std::span<const Slice> slices) {
  if (slices.size() == 1) {
    const Slice& only = slices.front();
    return {RawSend(socket, only.data(), only.size()), only.size()};
  }
  constexpr size_t kMaxPieces = 64;
  std::array<iovec, kMaxPieces> pieces;
  size_t count = 0;
  size_t offered = 0;
  for (const Slice& slice : slices) {
    if (count == kMaxPieces) break;
    pieces[count++] = {const_cast<uint8_t*>(slice.data()), slice.size()};
    offered += slice.size();
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  return {RawSendMessage(socket, message), offered};
}

}  // namespace

void Session::Write() {
  last_data_ = nullptr;
  while (!out_.empty() && !write_broken_) {
    const auto [written, offered] = Offer(socket_.get(), out_.slices());
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        blocked_ = true;
        return;
      }
      write_broken_ = true;
      break;
    }
    if (traffic_ != nullptr) traffic_->Sent(static_cast<size_t>(written));
    out_.Drop(static_cast<size_t>(written));
    if (static_cast<size_t>(written) < offered) {
      blocked_ = true;
      return;
    }
  }
  if (write_broken_) out_.Clear();
  scratch_.Rewind();
}

void Session::WatchOutput() {
  const bool waits = !out_.empty();
  // A client that does not take its answers is not read. A runtime is read even then: it may
  // take bytes only after its own bytes were read here.
  if (const bool throttled = server_ && out_.size() > kOutputHighWater; throttled != throttled_) {
    throttled_ = throttled;
    UpdateReading();
  }
  if (waits == output_waits()) return;
  WatchFor(watched_ ^ EventLoop::kWritable);
  owner_.OnOutputWaits(waits);
}

void Session::SetReading(bool reading) {
  reading_off_ = !reading;
  DropReadBlock();
  UpdateReading();
}

void Session::UpdateReading() {
  if (failed_) return;
  const bool reading = !reading_off_ && !throttled_ && !no_room_ && input_.empty();
  WatchFor(reading ? watched_ | EventLoop::kReadable : watched_ & ~EventLoop::kReadable);
}

void Session::WatchFor(int events) {
  if (events == watched_) return;
  watched_ = events;
  EventLoop::SetEvents(*watch_, events);
}

void Session::Fail(const Status& reason) {
  if (failed_) return;
  failed_ = true;
  watch_.reset();
  go_on_.reset();
  receive_window_.Close();
  last_word_.reset();
  drain_limit_.reset();
  flushes_.Remove(*this);
  CloseDue();
  CloseAll();
  socket_.Reset();
  owner_.OnDisconnect(reason);
}

std::unique_ptr<Stream> Session::OpenStream(const HeaderBlock& headers, bool end,
                                            StreamHandler& handler) {
  if (failed_ || going_away_ || last_id_ > 0x7ffffff0) return nullptr;
  std::unique_ptr<Stream> stream(new Stream(this, 0));
  stream->handler_ = &handler;
  stream->headers_sent_ = true;
  stream->ended_ = end;
  stream->end_sent_ = end;
  ++open_streams_;
  if (waiting_.empty() && by_id_.size() < max_streams_) {
    StartStream(*stream, headers);
  } else {
    waiting_.emplace_back(stream.get(), headers);
  }
  return stream;
}

void Session::StartStream(Stream& stream, const HeaderBlock& headers) {
  last_id_ += 2;
  stream.id_ = last_id_;
  stream.receive_window_ = kStreamWindow;
  by_id_.Insert(stream);
  SendHeaderBlock(headers, stream.id_, stream.end_sent_);
  if (stream.WantsToSend()) Ready(stream);
}

void Session::StartWaiting() {
  while (!waiting_.empty() && by_id_.size() < max_streams_ && !going_away_ && !failed_) {
    const auto [stream, headers] = std::move(waiting_.front());
    waiting_.pop_front();
    // A stream that was given up meanwhile needs no start, and could not be reset any more.
    if (!stream->reset_) StartStream(*stream, headers);
  }
}

Stream* Session::AnyOpen() const {
  return waiting_.empty() ? by_id_.Any() : waiting_.front().first;
}

void Session::CloseAll() {
  while (Stream* stream = AnyOpen()) {
    CloseStream(*stream, static_cast<uint32_t>(ErrorCode::kCancel), true);
  }
}

void Session::Forget(Stream& stream) {
  --open_streams_;
  if (stream.id_ > 0) {
    by_id_.Erase(stream);
  } else {
    std::erase_if(waiting_, [&](const auto& entry) { return entry.first == &stream; });
  }
  ready_.Remove(stream);
  if (last_data_ == &stream) last_data_ = nullptr;
  if (data_stream_ == &stream) data_stream_ = nullptr;
  if (stream.due_) {
    for (auto& [due, code] : due_) {
      if (due == &stream) due = nullptr;
    }
  }
  if (!waiting_.empty()) StartWaiting();
}

void Session::LinkClosed(Stream& stream) {
  stream.previous_ = nullptr;
  stream.next_ = closed_;
  if (closed_ != nullptr) closed_->previous_ = &stream;
  closed_ = &stream;
}

void Session::UnlinkClosed(Stream& stream) {
  (stream.previous_ != nullptr ? stream.previous_->next_ : closed_) = stream.next_;
  if (stream.next_ != nullptr) stream.next_->previous_ = stream.previous_;
}

void Session::CloseStream(Stream& stream, uint32_t error_code, bool connection_lost) {
  Forget(stream);
  stream.open_ = false;
  stream.connection_lost_ = connection_lost;
  stream.queue_.Clear();
  if (stream.unconsumed_ > 0) {
    LinkClosed(stream);
  } else {
    stream.session_ = nullptr;
  }
  if (stream.handler_ != nullptr) stream.handler_->OnClose(stream, error_code);
}

void Session::CloseSoon(Stream& stream, uint32_t error_code) {
  if (stream.reset_) return;
  stream.reset_ = true;
  stream.due_ = true;
  due_.emplace_back(&stream, error_code);
  MarkDirty();
}

void Session::CloseDue() {
  // By index, since closing a stream may add others.
  // NOLINTNEXTLINE(modernize-loop-convert)
  for (size_t i = 0; i < due_.size(); ++i) {
    const auto [stream, code] = due_[i];
    if (stream == nullptr) continue;
    stream->due_ = false;
    CloseStream(*stream, code, false);
  }
  due_.clear();
}

// The windows of single streams for the peer's DATA, which grow by the bytes that the handlers
// consume. ReceiveWindow has the connection's window.

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
  // A stream whose window shrinks may have more consumed bytes than the new threshold; they are
  // given back now.
  by_id_.ForEach([this, size](Stream& stream) {
    const bool receives = !stream.end_received_ && !stream.reset_;
    if (receives && stream.consumed_ >= static_cast<size_t>(size) / 2) GiveBack(stream);
  });
}

}  // namespace resmgr::h2
