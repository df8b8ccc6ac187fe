// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace resmgr {

// A request to the HTTP server of the metrics. Its contents are the client's: the server has only
// limited its length (16 KiB with all headers).
struct HttpRequest {
  std::string method{};      // "GET"
  std::string path{};        // decoded, without the query
  std::string query{};       // as sent, without "?"
  std::string host{};        // the header Host; "": none
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

}  // namespace resmgr
