// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/utf8.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

size_t LengthByFirstByte(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

// The number of ASCII bytes at the beginning of the text. Checks eight at a time: nearly all text
// is ASCII alone.
size_t AsciiLength(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t length = 0;
  for (; length + sizeof(uint64_t) <= text.size(); length += sizeof(uint64_t)) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + length, sizeof(bytes));
    if ((bytes & kHighBits) != 0) break;
  }
  while (length < text.size() && static_cast<unsigned char>(text[length]) < 0x80)
    ++length;
  return length;
}

}  // namespace

std::string FoldedName(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOthers = {
      {{"\u017f", "s"}, {"\u212a", "k"}}};
  std::string folded = ToLower(name);
  for (const auto& [other, letter] : kOthers) {
    for (size_t at = folded.find(other); at != std::string::npos; at = folded.find(other, at))
      folded.replace(at, other.size(), letter);
  }
  return folded;
}

char32_t CodePointOf(std::string_view character) {
  constexpr std::array<unsigned, 5> kFirstBits = {0, 0x7f, 0x1f, 0x0f, 0x07};
  char32_t code = static_cast<unsigned char>(character[0]) & kFirstBits.at(character.size());
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

size_t Utf8Length(std::string_view text) {
  const size_t length = LengthByFirstByte(static_cast<unsigned char>(text[0]));
  if (length <= 1) return length;
  if (length > text.size()) return 0;
  for (const char c : text.substr(1, length - 1)) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) return 0;
  }
  const char32_t code = CodePointOf(text.substr(0, length));
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kLeast.at(length) || surrogate || code > 0x10ffff ? 0 : length;
}

std::string Utf8Cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  constexpr std::string_view kEllipsis = "...";
  constexpr size_t kLongest = 4;
  size_t end = limit - kEllipsis.size();
  // Moves back to the first byte of a character that reaches beyond the end.
  for (size_t back = 1; back < kLongest && back <= end; ++back) {
    if (Utf8Length(text.substr(end - back)) > back) {
      end -= back;
      break;
    }
  }
  return std::string(text.substr(0, end)).append(kEllipsis);
}

std::string Utf8Repaired(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string repaired;
  repaired.reserve(text.size());
  while (true) {
    const size_t ascii = AsciiLength(text);
    repaired.append(text.substr(0, ascii));
    text.remove_prefix(ascii);
    if (text.empty()) break;
    const size_t length = Utf8Length(text);
    repaired.append(length == 0 ? kReplacement : text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return repaired;
}

bool IsControl(std::string_view character) {
  const char32_t code = CodePointOf(character);
  if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return true;
  const bool separates = code == 0x2028 || code == 0x2029 || code == 0xfeff;
  const bool turns = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return separates || turns;
}

}  // namespace resmgr
