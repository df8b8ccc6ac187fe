// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "pkg/base/parse.h"
#include "pkg/metrics/http_server.h"

namespace resmgr {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string Decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low < 0) {
      result += text[i];
    } else {
      result += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return result;
}

bool IsSame(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

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
  request.path = Decoded(whole.substr(0, question));
  request.query = whole.substr(std::min(question + 1, whole.size()));
  while (!head.empty()) {
    const std::string_view header = TakeLine(head);
    const size_t colon = header.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = header.substr(0, colon);
    const std::string_view value = Trim(header.substr(colon + 1));
    if (IsSame(name, "Host")) request.host = value;
    if (IsSame(name, "Sec-Fetch-Site")) request.fetch_site = value;
  }
  return request;
}

}  // namespace resmgr
