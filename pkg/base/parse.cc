// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/parse.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "pkg/base/characters.h"
#include "pkg/base/utf8.h"

namespace resmgr {

namespace {

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, base);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

bool IsSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

}  // namespace

std::optional<int64_t> ParseInt(std::string_view text) {
  return ParseNumber<int64_t>(text);
}

std::optional<uint64_t> ParseUint(std::string_view text, int base) {
  return ParseNumber<uint64_t>(text, base);
}

std::optional<int> ParseId(std::string_view text, int most) {
  const std::optional<int> id = ParseNumber<int>(text);
  return id && *id >= 0 && *id <= most ? id : std::nullopt;
}

std::optional<bool> ParseBool(std::string_view text) {
  const std::string lower = ToLower(text);
  if (lower == "true" || lower == "yes" || lower == "on" || lower == "1") return true;
  if (lower == "false" || lower == "no" || lower == "off" || lower == "0") return false;
  return std::nullopt;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back()))
    text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerCase);
  return lower;
}

bool IsPlainAscii(std::string_view text) {
  // Eight bytes at a time, since each log line is checked.
  constexpr uint64_t kEach = 0x0101010101010101;
  uint64_t found = 0;
  while (text.size() >= sizeof(uint64_t)) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data(), sizeof(bytes));
    // Sets the highest bit of each byte that is at least 0x80, below 0x20, or 0x7f. A borrow can
    // only come from a byte that is one of these, so no text without them matches.
    found |= bytes | (bytes - kEach * 0x20) | (bytes + kEach);
    text.remove_prefix(sizeof(bytes));
  }
  if ((found & kEach * 0x80) != 0) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string Printable(std::string_view text, size_t limit) {
  if (text.size() <= limit && IsPlainAscii(text)) return std::string(text);
  std::string printable;
  std::string_view rest = text;
  size_t room = limit;
  while (!rest.empty()) {
    const size_t length = std::max<size_t>(Utf8Length(rest), 1);
    if (length > room) break;
    const std::string_view character = rest.substr(0, length);
    if (Utf8Length(rest) > 0 && !IsControl(character)) {
      printable += character;
    } else {
      for (const char c : character)
        printable += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    rest.remove_prefix(length);
    room -= length;
  }
  if (!rest.empty()) printable += "...";
  return printable;
}

}  // namespace resmgr
