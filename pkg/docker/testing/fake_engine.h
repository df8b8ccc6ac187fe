// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pkg/sys/unix_socket.h"

namespace resmgr::docker {

// A dockerd whose answers the test gives, on threads of its own. Thread-safe.
class FakeEngine {
 public:
  struct Request {
    std::string line;  // "POST /containers/create HTTP/1.1"
    std::string head{};
    std::string body{};
  };
  // The bytes of the reply. nullopt: closes the connection without one; "": hangs.
  using Answer = std::function<std::optional<std::string>(const Request&)>;

  FakeEngine(const std::string& path, Answer answer);
  ~FakeEngine();
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  // All requests so far.
  std::vector<Request> requests() const;

 private:
  void Accept();
  void Serve(int fd);

  const Answer answer_;
  ListeningSocket listener_;
  std::atomic<bool> ends_{false};
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::list<std::thread> served_;
  std::thread accepting_;
};

// An HTTP/1.1 reply with its length.
std::string JsonReply(int status, const std::string& body);

}  // namespace resmgr::docker
