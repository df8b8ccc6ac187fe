// SPDX-License-Identifier: Apache-2.0
#include "test/bench/docker/http_client.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>

#include "pkg/base/parse.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::bench {
namespace {

constexpr std::string_view kEndOfReplyHead = "\r\n\r\n";
constexpr std::string_view kLengthField = "Content-Length: ";

}  // namespace

Status HttpClient::Call(std::string_view request) {
  if (!fd_.valid()) {
    RESMGR_ASSIGN_OR_RETURN(fd_, ConnectUnix(socket_));
    ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) & ~O_NONBLOCK);
  }
  while (!request.empty()) {
    const ssize_t size = ::send(fd_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (size < 0) return Unavailable("send: {}", std::strerror(errno));
    request.remove_prefix(static_cast<size_t>(size));
  }
  return ReadReply();
}

Status HttpClient::ReadReply() {
  std::array<char, 16384> buffer{};
  reply_.clear();
  size_t whole = std::string::npos;
  while (reply_.size() < whole) {
    const ssize_t size = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) return Unavailable("no whole reply: {}", reply_);
    reply_.append(buffer.data(), static_cast<size_t>(size));
    const size_t end = reply_.find(kEndOfReplyHead);
    if (whole != std::string::npos || end == std::string::npos) continue;
    const size_t at = reply_.find(kLengthField);
    if (at >= end) return Unavailable("a reply without a length: {}", reply_);
    const size_t begin = at + kLengthField.size();
    const auto length =
        ParseUint(std::string_view(reply_).substr(begin, reply_.find('\r', begin) - begin));
    if (!length) return Unavailable("a reply without a length: {}", reply_);
    whole = end + kEndOfReplyHead.size() + *length;
  }
  return reply_.starts_with("HTTP/1.1 2") ? OkStatus() : Unavailable("{}", reply_);
}

}  // namespace resmgr::bench
