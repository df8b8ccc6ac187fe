// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>

#include "pkg/sys/unique_fd.h"
#include "pkg/sys/unix_socket.h"
#include "test/support/raw_http2/raw_http2.h"

namespace resmgr::test {

// A client that sends by hand and reads nothing unless it is asked to.
class RawClient {
 public:
  explicit RawClient(const std::string& socket)
      : socket_(ConnectUnix(socket).value_or(UniqueFd())) {}
  bool connected() const { return socket_.valid(); }

  // Sends all bytes, however long that takes; false: the connection was closed, or no byte was
  // taken for `patience`.
  bool Send(std::string_view bytes, std::chrono::milliseconds patience = kLong) {
    while (!bytes.empty()) {
      pollfd state{socket_.get(), POLLOUT, 0};
      if (::poll(&state, 1, static_cast<int>(patience.count())) != 1) return false;
      const ssize_t sent =
          ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN) return false;
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  bool Start(const std::string& settings = Frame(4, 0, 0, "")) {
    return Send(kHttp2Preface + settings);
  }
  // The bytes that arrive within this time.
  std::string Read(std::chrono::milliseconds patience) {
    std::string bytes(size_t{1} << 16, '\0');
    pollfd state{socket_.get(), POLLIN, 0};
    if (::poll(&state, 1, static_cast<int>(patience.count())) != 1) return "";
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return bytes;
  }
  // Reads until these bytes come, or until the connection ends; returns everything read.
  std::string ReadUntil(std::string_view wanted) {
    std::string all;
    while (all.find(wanted) == std::string::npos) {
      const std::string more = Read(kLong);
      if (more.empty()) break;
      all += more;
    }
    return all;
  }

 private:
  static constexpr std::chrono::seconds kLong{20};

  UniqueFd socket_;
};

}  // namespace resmgr::test
