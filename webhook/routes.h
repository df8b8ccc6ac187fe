// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "webhook/review.h"

namespace resmgr::webhook {

struct HttpRequest {
  std::string_view method{};
  std::string_view target{};  // path and query
  std::string_view content_type{};
  std::string_view body{};
};

// Answers one request: POST of application/json to / or /mutate is a review, GET or HEAD of
// /healthz reports whether the server is `ready` for more clients (else 503). All others get 404,
// 405 or 415. A pure function.
HttpReply Serve(const HttpRequest& request, bool ready = true);

}  // namespace resmgr::webhook
