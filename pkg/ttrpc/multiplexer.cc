// SPDX-License-Identifier: Apache-2.0
#include "pkg/ttrpc/multiplexer.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/uio.h>

#include "pkg/sys/files.h"
#include "pkg/ttrpc/frame.h"

namespace resmgr::ttrpc {
namespace {

constexpr size_t kMostPieces = 16;  // pieces in one write

}  // namespace

Multiplexer::Multiplexer(EventLoop& loop, UniqueFd socket, std::function<void(const Status&)> lost)
    : loop_(loop), socket_(std::move(socket)), lost_(std::move(lost)) {
  watch_ =
      loop_.Watch(socket_.get(), EventLoop::kReadable, [this](int events) { OnEvents(events); });
}

Multiplexer::~Multiplexer() = default;

// During a pause the socket counts as readable only when the connection has ended.
void Multiplexer::OnEvents(int events) {
  const std::weak_ptr<void> alive = lifetime_.token();
  if ((events & EventLoop::kWritable) != 0 && writing_) Write();
  if ((events & EventLoop::kReadable) != 0 && watch_ != nullptr) Read();
  if (!alive.expired()) Watch();
}

void Multiplexer::Watch() {
  if (watch_ == nullptr) return;
  EventLoop::SetEvents(*watch_, (pause_ == nullptr ? EventLoop::kReadable : 0) |
                                    (writing_ ? EventLoop::kWritable : 0));
}

void Multiplexer::Slow(std::chrono::milliseconds pause) {
  if (watch_ == nullptr || pause_ != nullptr) return;
  slow_ = true;
  pause_ = loop_.After(pause, [this] {
    const EventLoop::HandlePtr over = std::move(pause_);
    Watch();
  });
  Watch();
}

void Multiplexer::Read() {
  std::array<char, kReadAtOnce> buffer;
  const size_t most = std::exchange(slow_, false) ? kReadWhenSlow : buffer.size();
  const ssize_t got = ::recv(socket_.get(), buffer.data(), most, 0);
  if (got > 0) {
    Take({buffer.data(), static_cast<size_t>(got)});
  } else if (got == 0) {
    Lose(Unavailable("the peer closed the connection"));
  } else if (errno != EAGAIN && errno != EINTR) {
    Lose(Unavailable("the connection broke: {}", Message(ErrnoStatus(errno, "socket"))));
  }
}

bool Multiplexer::Take(std::string_view bytes) {
  const std::weak_ptr<void> alive = lifetime_.token();
  while (!bytes.empty()) {
    if (left_ == 0 && !TakeHeader(bytes)) return watch_ != nullptr;
    const std::string_view piece = bytes.substr(0, left_);
    bytes.remove_prefix(piece.size());
    left_ -= piece.size();
    const auto receiver = receivers_.find(id_);
    if (receiver == receivers_.end() || piece.empty()) continue;
    receiver->second->OnBytes(piece);
    if (alive.expired() || watch_ == nullptr) return false;
  }
  return true;
}

// False: more bytes are needed, or the trunk is lost.
bool Multiplexer::TakeHeader(std::string_view& bytes) {
  const size_t part = std::min(bytes.size(), kHeaderSize - header_read_);
  bytes.copy(header_.data() + header_read_, part);
  bytes.remove_prefix(part);
  header_read_ += part;
  if (header_read_ < kHeaderSize) return false;
  header_read_ = 0;
  id_ = GetUint32(header_.data());
  left_ = GetUint32(header_.data() + 4);
  if (left_ <= kLongestTrunkFrame) return true;
  Lose(InvalidArgument("the peer announces a frame of {} bytes, {} are the most", left_,
                       kLongestTrunkFrame));
  return false;
}

void Multiplexer::Send(uint32_t id, std::string_view header, std::string body, SharedBytes rest) {
  if (watch_ == nullptr) return;
  const auto frame = [id](size_t size) {
    std::string bytes(kHeaderSize, '\0');
    PutUint32(id, bytes.data());
    PutUint32(static_cast<uint32_t>(size), bytes.data() + 4);
    return bytes;
  };
  const size_t body_size = body.size() + (rest == nullptr ? 0 : rest->size());
  std::string front = frame(header.size()).append(header);
  if (body_size > 0) front.append(frame(body_size));
  unsent_ += front.size() + body_size;
  queue_.push_back({.own = std::move(front)});
  if (!body.empty()) queue_.push_back({.own = std::move(body)});
  if (rest != nullptr && !rest->empty()) queue_.push_back({.own = {}, .shared = std::move(rest)});
  if (unsent_ > kMostUnsent) {
    Lose(ResourceExhausted("the peer does not read: {} bytes wait for it", unsent_));
  } else if (!writing_) {
    Write();
    Watch();
  }
}

void Multiplexer::Write() {
  while (!queue_.empty()) {
    std::array<iovec, kMostPieces> pieces;
    size_t count = 0;
    for (auto piece = queue_.begin(); piece != queue_.end() && count < kMostPieces; ++piece) {
      const std::string_view bytes = piece->bytes().substr(count == 0 ? sent_of_first_ : 0);
      pieces.at(count++) = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) {
      return Lose(Unavailable("the connection broke: {}", Message(ErrnoStatus(errno, "socket"))));
    }
    unsent_ -= static_cast<size_t>(sent);
    sent_of_first_ += static_cast<size_t>(sent);
    while (!queue_.empty() && sent_of_first_ >= queue_.front().bytes().size()) {
      sent_of_first_ -= queue_.front().bytes().size();
      queue_.pop_front();
    }
  }
  writing_ = !queue_.empty();
}

void Multiplexer::Lose(Status why) {
  if (watch_ == nullptr) return;
  watch_.reset();
  pause_.reset();
  queue_.clear();
  unsent_ = 0;
  writing_ = false;
  // Reported in a later turn of the loop, so that Send never calls its caller back.
  losing_ = loop_.After(std::chrono::milliseconds(0), [this, why = std::move(why)] {
    socket_.Reset();
    if (const auto lost = std::exchange(lost_, nullptr)) lost(why);
  });
}

}  // namespace resmgr::ttrpc
