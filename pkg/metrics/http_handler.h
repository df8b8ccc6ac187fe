// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace resmgr {

// A request to the HTTP server of the metrics. The client may have written anything into it: the
// server has bounded its length (16 KiB with all headers), and checked nothing else.
struct HttpRequest {
  std::string method{};  // "GET"
  std::string path{};    // decoded, without the query
  std::string query{};   // as sent, without "?"
  std::string host{};    // the header Host; "": none
  std::string
      fetch_site{};  // the header Sec-Fetch-Site; "": none, as of a client that is no browser
};

struct HttpAnswer {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers{};  // besides type and length
  std::string body{};
};

// Answers the requests for one path and all below it. Called on the threads of the server, several
// at once; may block its thread for a second or so.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  virtual HttpAnswer Answer(const HttpRequest& request) = 0;
};

}  // namespace resmgr
