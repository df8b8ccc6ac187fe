// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// A request to the HTTP server of the metrics. The server has checked only the form and the length
// (16 KiB with all headers): the contents are as the client chose them.
struct HttpRequest {
  std::string method{};      // "GET"
  std::string path{};        // decoded, without the query
  std::string query{};       // as sent, without "?"
  std::string host{};        // the header Host; "": none
  std::string origin{};      // the header Origin; "": none
  std::string fetch_site{};  // the header Sec-Fetch-Site; "": none, usual outside of browsers
};

struct HttpAnswer {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers{};  // besides type and length
  std::string body{};
};

// Answers the requests for one path and all paths below it. Called on the threads of the server,
// several at once; may block its thread for about a second.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  virtual HttpAnswer Answer(const HttpRequest& request) = 0;
};

// A small HTTP server for quick answers to short requests without a body; each connection ends with
// its answer. One thread has all connections, and a client that is silent, or reads slowly, costs a
// descriptor and a buffer, but no thread: other threads make the answers. A client has three
// seconds to send its request and five to read the answer; if there are too many clients, or too
// many unread bytes, old clients are closed.
class HttpServer {
 public:
  struct Options {
    size_t quick_threads = 2;  // for quick answers
    size_t slow_threads = 0;   // for other answers, which must not delay quick ones
    std::function<bool(const HttpRequest&)> is_slow{};
    // Called on these threads. A call that takes too long may go on after the server's end.
    std::function<HttpAnswer(const HttpRequest&)> answer{};
  };

  // `host` is a name or address of this machine, "": all its addresses; port 0: a free one.
  // kUnavailable: the address cannot be used.
  static StatusOr<std::unique_ptr<HttpServer>> Create(const std::string& host, int port,
                                                      Options options);
  // Waits at most a quarter of a second for answers under way; slower ones are abandoned.
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
