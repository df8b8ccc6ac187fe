// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// Makes whole outputs fit for a terminal, whatever bytes their names contain. For a single text use
// Printable (parse.h), which escapes line breaks as well.

// As Printable without a limit, but line breaks stay.
std::string PrintableLines(std::string_view text);

// The JSON text as UTF-8, with control characters (utf8.h) as \uNNNN; in JSON they occur only in
// strings. Line breaks between members stay.
std::string PrintableJson(std::string_view json);

using TableRow = std::vector<std::string>;

// A table for a terminal: columns as wide as their widest cell, two blanks between them, one line
// per row. Control characters in a cell are escaped as by Printable (parse.h). Rows must not be
// empty; they may differ in length.
std::string FormatTable(const std::vector<TableRow>& rows);

// How a terminal shows a table.
struct TableStyle {
  // Columns of the terminal. If the table is wider, its widest cells are cut and end with "…". 0:
  // no limit.
  size_t width = 0;
  // Returns the colour code (SGR, "32") for a cell with this text, "" for none. May be empty.
  std::function<std::string_view(std::string_view cell)> colour{};
};
std::string FormatTable(const std::vector<TableRow>& rows, const TableStyle& style);

}  // namespace resmgr
