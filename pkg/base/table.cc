// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/table.h"

#include <algorithm>

#include "pkg/base/parse.h"
namespace resmgr {

namespace {

// What a terminal shows of a cell, and how wide that is: one column for each character.
struct Shown {
  std::string text;
  size_t width = 0;
};

Shown Show(const std::string& cell) {
  Shown shown{.text = Printable(cell, cell.size())};
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  shown.width = static_cast<size_t>(std::ranges::count_if(shown.text, begins));
  return shown;
}

}  // namespace

std::string FormatTable(const std::vector<TableRow>& rows) {
  std::vector<std::vector<Shown>> shown;
  std::vector<size_t> widths;
  for (const TableRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    std::vector<Shown>& cells = shown.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      cells.push_back(Show(row[i]));
      widths[i] = std::max(widths[i], cells[i].width);
    }
  }
  std::string text;
  for (const std::vector<Shown>& cells : shown) {
    for (size_t i = 0; i + 1 < cells.size(); ++i) {
      text += cells[i].text;
      text.append(widths[i] + 2 - cells[i].width, ' ');
    }
    text += cells.back().text + '\n';
  }
  return text;
}

}  // namespace resmgr
