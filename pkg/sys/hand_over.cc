// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/hand_over.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

constexpr std::string_view kOwn = "socket own ";
constexpr std::string_view kKept = "socket kept ";
constexpr size_t kFilesOfSocket = 2;

}  // namespace

Status HandOverChannel::Send(std::string_view message, std::span<const int> files) {
  std::string text(message);
  text += '\0';
  iovec piece{text.data(), text.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFilesOfSocket * sizeof(int))> control{};
  if (!files.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(rights), files.data(), files.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(text.size())) return OkStatus();
  return Unavailable("the other daemon takes no messages: {}",
                     sent < 0 ? std::strerror(errno) : "its queue is full");
}

Status HandOverChannel::SendSocket(const OpenSockets::Copy& copy) {
  const std::array<int, kFilesOfSocket> files = {copy.socket.fd.get(), copy.socket.lock.get()};
  return Send(fmt::format("{}{}", copy.socket.kept_by_other ? kKept : kOwn, copy.path), files);
}

Status HandOverChannel::Receive(bool& any) {
  std::array<char, kLongestMessage> bytes;
  iovec piece{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFilesOfSocket * sizeof(int))> control{};
  if (files_ == Files::kTake) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  const ssize_t count = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
  if (count < 0) {
    any = false;
    if (errno == EAGAIN || errno == EINTR) return OkStatus();
    return Unavailable("the connection to the other daemon broke: {}", std::strerror(errno));
  }
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const size_t files = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < files; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(each) + i * sizeof(int), sizeof(int));
      received_files_.emplace_back(fd);
    }
  }
  // Descriptors that do not fit into the buffer are lost, which is intended if none are wanted.
  const bool lost = files_ == Files::kTake && (header.msg_flags & MSG_CTRUNC) != 0;
  if (lost || received_files_.size() > kFilesOfSocket * kMostSockets)
    return InvalidArgument("the other daemon sends too many file descriptors");
  any = count > 0;
  over_ = count == 0;
  received_.append(bytes.data(), static_cast<size_t>(count));
  return OkStatus();
}

StatusOr<std::optional<std::string>> HandOverChannel::Next() {
  for (bool any = true;;) {
    if (const size_t end = received_.find('\0'); end != std::string::npos) {
      std::string message = received_.substr(0, end);
      received_.erase(0, end + 1);
      return std::optional(std::move(message));
    }
    if (received_.size() >= kLongestMessage)
      return InvalidArgument("the other daemon sends a message of more than {} bytes",
                             kLongestMessage);
    if (over_) return Unavailable("the other daemon closed the connection");
    if (!any) return std::optional<std::string>();
    RESMGR_RETURN_IF_ERROR(Receive(any));
  }
}

StatusOr<std::string> HandOverChannel::Await(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    RESMGR_ASSIGN_OR_RETURN(std::optional<std::string> message, Next());
    if (message) return *std::move(message);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return DeadlineExceeded("the other daemon does not answer within {} ms", timeout.count());
    pollfd wait{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    (void)::poll(&wait, 1, static_cast<int>(left.count()));
  }
}

StatusOr<OpenSockets::Copy> HandOverChannel::ReadSocket(std::string_view message) {
  const bool kept = message.starts_with(kKept);
  if ((!kept && !message.starts_with(kOwn)) || received_files_.size() < kFilesOfSocket)
    return InvalidArgument("\"{}\" is not a socket", Printable(message));
  message.remove_prefix(kept ? kKept.size() : kOwn.size());
  OpenSockets::Copy copy{.path = std::string(message), .socket = {}};
  copy.socket.kept_by_other = kept;
  copy.socket.fd = std::move(received_files_.front());
  received_files_.pop_front();
  copy.socket.lock = std::move(received_files_.front());
  received_files_.pop_front();
  return copy;
}

StatusOr<HandOverChannel::Peer> HandOverChannel::peer() const {
  ucred found{};
  socklen_t size = sizeof(found);
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &found, &size) != 0)
    return ErrnoStatus(errno, "cannot find out who connects");
  return Peer{.user = found.uid, .process = found.pid};
}

}  // namespace resmgr
