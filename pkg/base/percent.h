// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace resmgr {

// Percent-encoding of URLs (RFC 3986 section 2.1), as Go's net/url reads it. In a form's query a
// '+' is a space. nullopt: a '%' without two hexadecimal digits.
enum class UrlPart { kPath, kQuery };
std::optional<std::string> PercentDecoded(std::string_view text, UrlPart part);
// Keeps a '%' without two hexadecimal digits as it is.
std::string PercentDecodedLeniently(std::string_view text);

// Escapes all but unreserved characters (RFC 3986 section 2.3).
std::string PercentEncoded(std::string_view text);

}  // namespace resmgr
