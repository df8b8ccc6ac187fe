// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/sys/event_loop.h"
#include "pkg/sys/unique_fd.h"
#include "test/support/wait.h"

namespace resmgr::ttrpc::test {

// Two ends of a non-blocking stream socket.
struct SocketPair {
  SocketPair() {
    std::array<int, 2> fds{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()) != 0) {
      return;
    }
    ours.Reset(fds[0]);
    theirs.Reset(fds[1]);
  }
  UniqueFd ours;
  UniqueFd theirs;
};

using resmgr::test::RunUntil;

// Reads all bytes that wait in the socket.
inline std::string ReadNow(const UniqueFd& socket) {
  std::string bytes;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) return bytes;
    bytes.append(buffer.data(), static_cast<size_t>(got));
  }
}

// Writes at most a few hundred KiB.
inline bool WriteNow(const UniqueFd& socket, std::string_view bytes) {
  return ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace resmgr::ttrpc::test
