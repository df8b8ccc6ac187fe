// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace resmgr {

// How many bytes (1 to 4) the first character of UTF-8 text takes; 0 where the bytes are none:
// overlong forms, surrogates and what is above U+10FFFF included (RFC 3629). `text` is not empty.
size_t Utf8Length(std::string_view text);

// Eight bytes at a time: requests of creations have dozens of texts.
inline bool IsAscii(std::string_view text) {
  uint64_t bits = 0;
  uint64_t word = 0;
  for (; text.size() >= sizeof(word); text.remove_prefix(sizeof(word))) {
    std::memcpy(&word, text.data(), sizeof(word));
    bits |= word;
  }
  for (const char c : text)
    bits |= static_cast<uint8_t>(c);
  return (bits & 0x8080'8080'8080'8080) == 0;
}

// Text of at most `limit` bytes (3 or more): where it is cut, "..." is its end, and no character of
// UTF-8 is cut in two.
std::string Utf8Cut(std::string_view text, size_t limit);

// The text with the replacement character (U+FFFD) in place of each byte that is no UTF-8.
std::string Utf8Repaired(std::string_view text);

// The number of a whole character in Unicode.
char32_t CodePointOf(std::string_view character);

// Whether a whole character does something to a terminal or a log in place of being shown there:
// the control characters of ASCII, DEL and C1 (a newline, too), the separators of lines and
// paragraphs, the byte order mark, and the marks that reverse the direction of the text behind
// them.
bool IsControl(std::string_view character);

}  // namespace resmgr
