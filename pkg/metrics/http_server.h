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

// A small HTTP server, for answers that are made at once and short requests without a body; each
// connection ends with its answer. One thread has all connections, and a client that is silent, or
// reads slowly, costs it a descriptor and a buffer, no thread: others make the answers. A client
// has three seconds to send its request and five to read the answer; where there are too many, or
// too much waits for them, the one that has been here longest makes room.
class HttpServer {
 public:
  struct Options {
    size_t quick_threads = 2;  // for requests that are answered at once
    size_t slow_threads = 0;   // for others, which must not delay those
    std::function<bool(const HttpRequest&)> is_slow{};
    // Called on these threads. Outlives the server where it takes too long.
    std::function<HttpAnswer(const HttpRequest&)> answer{};
  };

  // `host` is a name or number of this machine, "": all its addresses; port 0: a free one.
  // Unavailable: it cannot be served.
  static StatusOr<std::unique_ptr<HttpServer>> Create(const std::string& host, int port,
                                                      Options options);
  // Takes a quarter of a second at most: an answer that takes longer is left behind.
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

// The head of a request, up to the empty line. InvalidArgument: it is none. For HttpServer and its
// tests.
StatusOr<HttpRequest> ParseHttpHead(std::string_view head);

}  // namespace resmgr
