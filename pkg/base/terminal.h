// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// Whole outputs, made fit for a terminal, whatever names are in them. For a single text use
// Printable (parse.h), which escapes line breaks as well.

// As Printable without a limit, but line breaks stay.
std::string PrintableLines(std::string_view text);

// The JSON text as UTF-8, with control characters (utf8.h), which occur only in strings, as \uNNNN.
// Line breaks between members stay.
std::string PrintableJson(std::string_view json);

using TableRow = std::vector<std::string>;

// For a terminal: columns as wide as their widest cell, two blanks between them, one line per row.
// Control characters in a cell are shown as Printable (parse.h) shows them. Rows must not be empty;
// they may differ in length.
std::string FormatTable(const std::vector<TableRow>& rows);

// How a terminal shows a table.
struct TableStyle {
  // Columns of the terminal: the widest cells of a wider table are cut and end with "…". 0: any.
  size_t width = 0;
  // The code of the colour (SGR, "32") of a cell with this text; "" for none. May be empty.
  std::function<std::string_view(std::string_view cell)> colour{};
};
std::string FormatTable(const std::vector<TableRow>& rows, const TableStyle& style);

}  // namespace resmgr
