// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/table.h"

#include <algorithm>

#include <fmt/format.h>

namespace resmgr {

std::string FormatTable(const std::vector<TableRow>& rows) {
  std::vector<size_t> widths;
  for (const TableRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const TableRow& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i)
      text += fmt::format("{:<{}}", row[i], widths[i] + 2);
    text += row.back() + '\n';
  }
  return text;
}

}  // namespace resmgr
