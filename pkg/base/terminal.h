// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace resmgr {

// Output whose parts were put together already, fit for a terminal, whatever names are in it. Where
// a single text is at hand, Printable (parse.h) keeps it from adding lines as well.

// As Printable without a limit, but line breaks stay.
std::string PrintableLines(std::string_view text);

// The JSON text as UTF-8, with control characters (utf8.h), which occur only in strings, as \uNNNN.
// Line breaks between members stay.
std::string PrintableJson(std::string_view json);

}  // namespace resmgr
