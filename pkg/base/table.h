// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace resmgr {

using TableRow = std::vector<std::string>;

// For a terminal: columns as wide as their widest cell, two blanks between them, one line per row.
// Control characters in a cell are shown as Printable (parse.h) shows them. Rows must not be empty;
// they may differ in length.
std::string FormatTable(const std::vector<TableRow>& rows);

}  // namespace resmgr
