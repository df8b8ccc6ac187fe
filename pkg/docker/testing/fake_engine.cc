// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/testing/fake_engine.h"

#include <array>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

namespace resmgr::docker {
namespace {

constexpr int kTick = 10;  // milliseconds between checks for the end

bool Readable(int fd) {
  pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, kTick) == 1;
}

// False: the peer does not read.
bool SendAll(int fd, std::string_view bytes) {
  constexpr int kPatience = 10'000;  // milliseconds
  while (!bytes.empty()) {
    pollfd polled{.fd = fd, .events = POLLOUT, .revents = 0};
    if (::poll(&polled, 1, kPatience) != 1) return false;
    const ssize_t size = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

size_t LengthOf(const std::string& head) {
  constexpr std::string_view kField = "Content-Length: ";
  const size_t at = head.find(kField);
  return at == std::string::npos ? 0 : std::strtoul(head.c_str() + at + kField.size(), nullptr, 10);
}

}  // namespace

std::string JsonReply(int status, const std::string& body) {
  return fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
      body.size(), body);
}

FakeEngine::FakeEngine(const std::string& path, Answer answer)
    : answer_(std::move(answer)), listener_(*ListeningSocket::Create(path)) {
  accepting_ = std::thread([this] { Accept(); });
}

FakeEngine::~FakeEngine() {
  ends_ = true;
  accepting_.join();
  for (std::thread& served : served_)
    served.join();
}

std::vector<FakeEngine::Request> FakeEngine::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void FakeEngine::Accept() {
  while (!ends_) {
    if (!Readable(listener_.fd())) continue;
    auto accepted = listener_.Accept();
    if (!accepted.ok() || !accepted->has_value()) continue;
    served_.emplace_back([this, fd = **std::move(accepted)] { Serve(fd.get()); });
  }
}

void FakeEngine::Serve(int fd) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  std::string bytes;
  std::array<char, 65536> piece;
  while (!ends_) {
    const size_t head = bytes.find(kEnd);
    const size_t begin = head + kEnd.size();
    if (head != std::string::npos && bytes.size() >= begin + LengthOf(bytes.substr(0, begin))) {
      Request request{.line = bytes.substr(0, bytes.find("\r\n")), .head = bytes.substr(0, begin)};
      request.body = bytes.substr(begin, LengthOf(request.head));
      bytes.erase(0, begin + request.body.size());
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      const auto reply = answer_(request);
      if (!reply) return;
      if (!SendAll(fd, *reply)) return;
      continue;
    }
    if (!Readable(fd)) continue;
    const ssize_t size = ::recv(fd, piece.data(), piece.size(), 0);
    if (size == 0) return;
    if (size > 0) bytes.append(piece.data(), static_cast<size_t>(size));
  }
}

}  // namespace resmgr::docker
