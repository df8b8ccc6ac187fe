// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace resmgr {

// The digit's value; -1: not a hexadecimal digit.
constexpr int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Percent-encoding of URLs (RFC 3986 section 2.1), as Go's net/url reads it. In a form's query a
// '+' is a space. nullopt: a '%' without two hexadecimal digits.
enum class UrlPart { kPath, kQuery };
std::optional<std::string> PercentDecoded(std::string_view text, UrlPart part);
// Keeps a '%' without two hexadecimal digits as it is.
std::string PercentDecodedLeniently(std::string_view text);

// Escapes all but unreserved characters (RFC 3986 section 2.3).
std::string PercentEncoded(std::string_view text);

}  // namespace resmgr
