// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/metrics/http_handler.h"

namespace resmgr {

// A small HTTP server for quick answers to short requests without a body; each connection ends with
// its answer. One thread has all connections, and a client that is silent, or reads slowly, costs a
// descriptor and a buffer, but no thread: other threads make the answers. A client has three
// seconds to send its request and five to read the answer; if there are too many clients, or too
// many unread bytes, the oldest client is closed.
class HttpServer {
 public:
  struct Options {
    size_t quick_threads = 2;  // for quick answers
    size_t slow_threads = 0;   // for other answers, which must not delay quick ones
    std::function<bool(const HttpRequest&)> is_slow{};
    // Called on these threads. Outlives the server if it takes too long.
    std::function<HttpAnswer(const HttpRequest&)> answer{};
  };

  // `host` is a name or address of this machine, "": all its addresses; port 0: a free one.
  // kUnavailable: the address cannot be used.
  static StatusOr<std::unique_ptr<HttpServer>> Create(const std::string& host, int port,
                                                      Options options);
  // Takes at most a quarter of a second: an answer that takes longer is left behind.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }

 private:
  struct State;
  HttpServer(std::shared_ptr<State> state, int port);

  const std::shared_ptr<State> state_;
  const int port_;
};

// Parses the head of a request, up to the empty line. kInvalidArgument: malformed. For HttpServer
// and its tests.
StatusOr<HttpRequest> ParseHttpHead(std::string_view head);

}  // namespace resmgr
