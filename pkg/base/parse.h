// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// A whole decimal number without anything around it; nullopt for anything else, and on overflow.
std::optional<int64_t> ParseInt(std::string_view text);
std::optional<uint64_t> ParseUint(std::string_view text, int base = 10);
// The number of a CPU, a memory node, a process, ...: 0 to `most`.
std::optional<int> ParseId(std::string_view text, int most = std::numeric_limits<int>::max());

// true, false (any case), yes, no, on, off, 1, 0.
std::optional<bool> ParseBool(std::string_view text);

// The text without white space at both ends; a view into the argument.
std::string_view Trim(std::string_view text);

// The pieces between separators, empty ones included; "" gives one empty piece.
std::vector<std::string_view> Split(std::string_view text, char separator);

// Case-insensitive for ASCII: for keys of configuration files and for options.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
std::string ToLower(std::string_view text);

// Whether the text is only ASCII that a terminal shows: no control character, and no byte of 0x80
// or more.
bool IsPlainAscii(std::string_view text);

// Untrusted bytes made fit for a line of a log or a terminal: control characters (utf8.h) and
// invalid UTF-8 as \xNN, from the first `limit` bytes.
std::string Printable(std::string_view text, size_t limit = 256);

}  // namespace resmgr
