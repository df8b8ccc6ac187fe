// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "pkg/sys/unique_fd.h"
#include "test/support/wait.h"

namespace resmgr::docker {

inline bool Ready(int fd, short events, int timeout = 20'000) {
  pollfd polled{.fd = fd, .events = events, .revents = 0};
  return ::poll(&polled, 1, timeout) == 1;
}

// One end of a connection, as a test plays it.
class End {
 public:
  explicit End(UniqueFd fd) : fd_(std::move(fd)) {}

  void Send(std::string_view text) const {
    while (!text.empty()) {
      ASSERT_TRUE(Ready(fd_.get(), POLLOUT));
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      ASSERT_GT(sent, 0);
      text.remove_prefix(static_cast<size_t>(sent));
    }
  }
  // The number of bytes that were sent before there was an answer.
  size_t SendUntilAnswered(std::string_view bytes) const {
    size_t sent = 0;
    pollfd polled{.fd = fd_.get(), .events = POLLOUT | POLLIN, .revents = 0};
    while (sent < bytes.size() && ::poll(&polled, 1, 10'000) == 1 &&
           (polled.revents & POLLIN) == 0) {
      const ssize_t size =
          ::send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (size <= 0) break;
      sent += static_cast<size_t>(size);
    }
    return sent;
  }
  // Waits until the other end has read all bytes.
  bool WaitUntilRead() const {
    int unread = 1;
    return test::Eventually(
               [&] { return ::ioctl(fd_.get(), SIOCOUTQ, &unread) != 0 || unread == 0; }) &&
           unread == 0;
  }
  // Receives `most` bytes, or all bytes before the end, or before `pause` ms without a byte, which
  // count from the first one.
  std::string Receive(size_t most, int pause = 20'000) const {
    std::string text;
    std::array<char, 65536> piece;
    while (text.size() < most && Ready(fd_.get(), POLLIN, text.empty() ? 20'000 : pause)) {
      const ssize_t got =
          ::recv(fd_.get(), piece.data(), std::min(piece.size(), most - text.size()), 0);
      if (got <= 0) break;
      text.append(piece.data(), static_cast<size_t>(got));
    }
    return text;
  }
  std::string ReceiveAll() const { return Receive(std::string::npos); }
  void Expect(std::string_view text) const { EXPECT_EQ(Receive(text.size()), text); }
  bool Silent() const { return !Ready(fd_.get(), POLLIN, 50); }
  // The number of bytes that the other side takes before the sender has to wait.
  size_t Fill() const {
    const std::string piece(65536, 'x');
    size_t sent = 0;
    while (Ready(fd_.get(), POLLOUT, 200)) {
      const ssize_t size = ::send(fd_.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
      if (size > 0) sent += static_cast<size_t>(size);
    }
    return sent;
  }
  void HalfClose() const { ::shutdown(fd_.get(), SHUT_WR); }
  void Close() { fd_.Reset(); }

 private:
  UniqueFd fd_;
};

}  // namespace resmgr::docker
