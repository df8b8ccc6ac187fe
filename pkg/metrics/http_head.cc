// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/metrics/http_server.h"

namespace resmgr {
namespace {

// Removes and returns the next line, without its end.
std::string_view TakeLine(std::string_view& rest) {
  const size_t end = std::min(rest.find("\r\n"), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 2, rest.size()));
  return line;
}

}  // namespace

StatusOr<HttpRequest> ParseHttpHead(std::string_view head) {
  HttpRequest request;
  const std::string_view line = TakeLine(head);
  const size_t method = line.find(' ');
  const size_t target = line.rfind(' ');
  if (method == std::string_view::npos || method == 0 || target <= method + 1 ||
      !line.substr(target + 1).starts_with("HTTP/1.") || line[method + 1] != '/') {
    return InvalidArgument("it is not an HTTP/1 request");
  }
  request.method = line.substr(0, method);
  const std::string_view whole = line.substr(method + 1, target - method - 1);
  const size_t question = std::min(whole.find('?'), whole.size());
  request.path = PercentDecodedLeniently(whole.substr(0, question));
  request.query = whole.substr(std::min(question + 1, whole.size()));
  while (!head.empty()) {
    const std::string_view header = TakeLine(head);
    const size_t colon = header.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = header.substr(0, colon);
    const std::string_view value = Trim(header.substr(colon + 1));
    if (EqualsIgnoreCase(name, "Host")) request.host = value;
    if (EqualsIgnoreCase(name, "Sec-Fetch-Site")) request.fetch_site = value;
  }
  return request;
}

}  // namespace resmgr
