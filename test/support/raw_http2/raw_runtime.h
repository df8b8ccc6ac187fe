// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::test {

// A runtime whose answers are frames by hand: for one that is slow, or breaks the protocol. Each
// connection has a thread of its own. It ignores its peer's windows.
class RawRuntime {
 public:
  struct Script {
    // The bytes that it sends when a request's header fields are here; "" is no answer. By path.
    std::function<std::string(uint32_t stream, const std::string& path)> answer;
    // The first frames of each connection; SETTINGS must be among them.
    std::string greeting;
    // DATA is answered with windows as large as it was.
    bool opens_windows = true;
  };

  static StatusOr<std::unique_ptr<RawRuntime>> Start(const std::string& socket, Script script);
  ~RawRuntime();

  // Requests for this path so far.
  int Requests(const std::string& path) const;

 private:
  class Peer;
  RawRuntime(ListeningSocket listener, Script script);
  void Accept();

  ListeningSocket listener_;
  const Script script_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> paths_;
  std::vector<std::thread> peers_;
  std::thread acceptor_;
};

}  // namespace resmgr::test
