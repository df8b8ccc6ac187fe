// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace resmgr {

// The number of bytes (1 to 4) of the first character of UTF-8 text; 0 if the bytes are invalid, as
// overlong forms, surrogates and code points above U+10FFFF are (RFC 3629). `text` is not empty.
size_t Utf8Length(std::string_view text);

// Checks eight bytes at a time: a request to create a container has dozens of texts.
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

// The text in at most `limit` bytes (3 or more). If it is cut, it ends with "...", and no UTF-8
// character is cut in two.
std::string Utf8Cut(std::string_view text, size_t limit);

// The text with the replacement character (U+FFFD) in place of each byte that is invalid UTF-8.
std::string Utf8Repaired(std::string_view text);

// A name in the form in which Go, and thus dockerd, compares members of JSON: ASCII in lower case,
// and the two other characters that fold to "s" and "k" as these letters.
std::string FoldedName(std::string_view name);

// The code point of a whole UTF-8 character.
char32_t CodePointOf(std::string_view character);

// Whether a terminal or a log would act on a whole character instead of showing it: the control
// characters of ASCII, DEL and C1 (a newline, too), the separators of lines and paragraphs, the
// byte order mark, and the marks that reverse the direction of the text behind them.
bool IsControl(std::string_view character);

}  // namespace resmgr
