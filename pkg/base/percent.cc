// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/percent.h"

#include <algorithm>

#include <fmt/format.h>

#include "pkg/base/characters.h"

namespace resmgr {
namespace {

// The byte that the escape at `at` stands for; -1: no escape is there.
int EscapedByte(std::string_view text, size_t at) {
  if (text[at] != '%' || at + 2 >= text.size()) return -1;
  const int high = HexDigit(text[at + 1]);
  const int low = HexDigit(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool IsUnreserved(char c) {
  return IsLetterOrDigit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

}  // namespace

std::optional<std::string> PercentDecoded(std::string_view text, UrlPart part) {
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '%' && EscapedByte(text, i) < 0) return std::nullopt;
  std::string plus(text);
  if (part == UrlPart::kQuery) std::ranges::replace(plus, '+', ' ');
  return PercentDecodedLeniently(plus);
}

std::string PercentDecodedLeniently(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int byte = EscapedByte(text, i);
    decoded += byte < 0 ? text[i] : static_cast<char>(byte);
    if (byte >= 0) i += 2;
  }
  return decoded;
}

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (IsUnreserved(c)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace resmgr
