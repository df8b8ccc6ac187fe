// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>

#include "pkg/docker/testing/fake_engine.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::test {

// An engine that numbers the containers that it creates, and reports each as its creation
// requested.
class StandInEngine {
 public:
  explicit StandInEngine(const std::string& socket)
      : engine_(socket,
                [this](const docker::FakeEngine::Request& request) { return Answer(request); }) {}

  // The body of the last request whose line has this.
  nlohmann::json BodyOf(std::string_view part) const {
    nlohmann::json body;
    for (const auto& request : engine_.requests())
      if (request.line.find(part) != std::string::npos) body = nlohmann::json::parse(request.body);
    return body;
  }
  docker::FakeEngine::Request Last(std::string_view part) const {
    docker::FakeEngine::Request last;
    for (const auto& request : engine_.requests())
      if (request.line.find(part) != std::string::npos) last = request;
    return last;
  }

 private:
  std::optional<std::string> Answer(const docker::FakeEngine::Request& request) {
    const std::string& line = request.line;
    if (line.starts_with("GET /events")) return "";
    if (line.find("/containers/create") != std::string::npos) {
      const std::lock_guard lock(mutex_);
      created_.push_back(nlohmann::json::parse(request.body));
      return docker::JsonReply(201, nlohmann::json{{"Id", IdOf(created_.size())}}.dump());
    }
    if (line.starts_with("GET /containers/json")) return docker::JsonReply(200, "[]");
    if (line.starts_with("GET /containers/")) return Inspect(line.substr(16, 64));
    return docker::JsonReply(200, R"({"Version":"20.10.24"})");
  }
  std::optional<std::string> Inspect(const std::string& id) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < created_.size(); ++i) {
      if (IdOf(i + 1) != id) continue;
      const nlohmann::json host = created_[i].value("HostConfig", nlohmann::json::object());
      const nlohmann::json told = {{"Id", id}, {"Config", created_[i]}, {"HostConfig", host}};
      return docker::JsonReply(200, told.dump());
    }
    return docker::JsonReply(404, R"({"message":"No such container"})");
  }
  static std::string IdOf(size_t number) { return fmt::format("{:064x}", number); }

  std::mutex mutex_;
  std::vector<nlohmann::json> created_;
  docker::FakeEngine engine_;  // ends first
};

// Whether the reply has all bytes of its body.
inline bool IsWholeReply(const std::string& reply) {
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  const size_t head = reply.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  const size_t length = reply.find(kLength);
  if (length >= head) return reply.ends_with("\r\n0\r\n\r\n") || reply.starts_with("HTTP/1.1 204");
  return reply.size() >= head + 4 + std::stoul(reply.substr(length + kLength.size()));
}

// The whole reply to a request at a socket of Docker's API.
inline std::string AskEngine(const std::string& socket, const std::string& method,
                             const std::string& target, const std::string& body) {
  const UniqueFd fd = *ConnectUnix(socket);
  const std::string request =
      fmt::format("{} {} HTTP/1.1\r\nHost: d\r\nContent-Length: {}\r\n\r\n{}", method, target,
                  body.size(), body);
  EXPECT_EQ(::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string reply;
  std::array<char, 65536> piece;
  pollfd polled{.fd = fd.get(), .events = POLLIN, .revents = 0};
  while (!IsWholeReply(reply) && ::poll(&polled, 1, 20'000) == 1) {
    const ssize_t size = ::recv(fd.get(), piece.data(), piece.size(), 0);
    if (size <= 0) break;
    reply.append(piece.data(), static_cast<size_t>(size));
  }
  return reply;
}

}  // namespace resmgr::test
