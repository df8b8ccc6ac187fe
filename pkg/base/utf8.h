// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace resmgr {

// How many bytes (1 to 4) the first character of UTF-8 text takes; 0 where the bytes are none:
// overlong forms, surrogates and what is above U+10FFFF included (RFC 3629). `text` is not empty.
size_t Utf8Length(std::string_view text);

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
