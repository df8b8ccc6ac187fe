// SPDX-License-Identifier: Apache-2.0
#include "webhook/routes.h"

#include "pkg/base/parse.h"

namespace resmgr::webhook {

namespace {

HttpReply TextReply(unsigned status, std::string_view text) {
  return {status, "text/plain", std::string(text)};
}

// Parameters are ignored: "application/json; charset=utf-8" is JSON as well.
bool IsJson(std::string_view content_type) {
  return EqualsIgnoreCase(Trim(content_type.substr(0, content_type.find(';'))), "application/json");
}

}  // namespace

HttpReply Serve(const HttpRequest& request, bool ready) {
  // The path without the query; an API server adds "?timeout=5s".
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  if (path == "/healthz") {
    if (request.method == "HEAD") return TextReply(ready ? 200 : 503, "");
    if (request.method != "GET") return TextReply(405, "use GET\n");
    return ready ? TextReply(200, "ok\n") : TextReply(503, "it is about to end\n");
  }
  if (path != "/" && path != "/mutate") return TextReply(404, "reviews are taken at /mutate\n");
  if (request.method != "POST") return TextReply(405, "use POST\n");
  if (!IsJson(request.content_type))
    return TextReply(415, "the content type must be application/json\n");
  return ReviewAdmission(request.body);
}

}  // namespace resmgr::webhook
