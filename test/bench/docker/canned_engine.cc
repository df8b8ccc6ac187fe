// SPDX-License-Identifier: Apache-2.0
#include "test/bench/docker/canned_engine.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "pkg/base/parse.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::bench {
namespace {

constexpr std::string_view kEndOfHead = "\r\n\r\n";
constexpr std::string_view kLength = "Content-Length: ";
// dockerd 20.10's to GET /version.
constexpr size_t kBodySize = 850;

std::string Reply() {
  return fmt::format(
      "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n"
      "Docker-Experimental: false\r\nOstype: linux\r\nServer: Docker/20.10.24 (linux)\r\n"
      "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: {}\r\n\r\n{}",
      kBodySize, std::string(kBodySize, 'v'));
}

size_t LengthIn(std::string_view head) {
  const size_t at = head.find(kLength);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = head.substr(at + kLength.size());
  return ParseUint(rest.substr(0, rest.find('\r'))).value_or(0);
}

void Serve(const UniqueFd& fd, const std::string& reply) {
  std::array<char, 65536> buffer{};
  std::string head;
  while (true) {
    // The rest of the head, and perhaps a part of the body.
    size_t end = std::string::npos;
    while ((end = head.find(kEndOfHead)) == std::string::npos) {
      const ssize_t size = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
      if (size <= 0) return;
      head.append(buffer.data(), static_cast<size_t>(size));
    }
    end += kEndOfHead.size();
    size_t missing = LengthIn(std::string_view(head).substr(0, end));
    const size_t here = std::min(missing, head.size() - end);
    head.erase(0, end + here);
    missing -= here;
    while (missing > 0) {
      const ssize_t size = ::recv(fd.get(), buffer.data(), std::min(missing, buffer.size()), 0);
      if (size <= 0) return;
      missing -= static_cast<size_t>(size);
    }
    if (::send(fd.get(), reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
  }
}

}  // namespace

int ServeCannedEngine(const std::string& socket) {
  auto listener = ListeningSocket::Create(socket);
  if (!listener.ok()) {
    std::fprintf(stderr, "%s\n", Describe(listener.status()).c_str());
    return 2;
  }
  const std::string reply = Reply();
  while (true) {
    pollfd waiting{.fd = listener->fd(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, -1);
    auto accepted = listener->Accept();
    if (!accepted.ok() || !accepted->has_value()) continue;
    const int flags = ::fcntl((*accepted)->get(), F_GETFL);
    ::fcntl((*accepted)->get(), F_SETFL, flags & ~O_NONBLOCK);
    std::thread([fd = **std::move(accepted), &reply] { Serve(fd, reply); }).detach();
  }
}

}  // namespace resmgr::bench
