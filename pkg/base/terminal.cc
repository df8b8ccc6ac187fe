// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/terminal.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"

namespace resmgr {
namespace {

// The text of a cell on a terminal, and its width: one column for each character.
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

// The least width that a column is cut to.
constexpr size_t kNarrowest = 8;

size_t WholeWidth(const std::vector<size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), size_t{2} * (widths.size() - 1));
}

// Takes from the widest columns until all fit.
void Narrow(std::vector<size_t>& widths, size_t width) {
  for (size_t whole = WholeWidth(widths); whole > width; whole = WholeWidth(widths)) {
    const auto widest = std::ranges::max_element(widths);
    if (*widest <= kNarrowest) return;
    size_t next = kNarrowest;
    for (const size_t each : widths) {
      if (each < *widest) next = std::max(next, each);
    }
    *widest -= std::min(*widest - next, whole - width);
  }
}

// Cuts a cell to `width` characters.
void Cut(Shown& cell, size_t width) {
  if (cell.width <= width) return;
  size_t at = 0;
  for (size_t characters = 0; at < cell.text.size(); ++at) {
    if ((static_cast<unsigned char>(cell.text[at]) & 0xc0) != 0x80 && characters++ == width - 1)
      break;
  }
  cell.text.resize(at);
  cell.text += "…";
  cell.width = width;
}

}  // namespace

std::string PrintableLines(std::string_view text) {
  std::string lines;
  for (;;) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    lines += Printable(line, line.size());
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string PrintableJson(std::string_view json) {
  std::string printable;
  printable.reserve(json.size());
  while (!json.empty()) {
    const size_t length = Utf8Length(json);
    const std::string_view character = json.substr(0, length == 0 ? 1 : length);
    if (length == 0) {
      printable += "\\ufffd";
    } else if (!IsControl(character) || character == "\n") {
      printable += character;
    } else {
      printable += fmt::format("\\u{:04x}", static_cast<unsigned>(CodePointOf(character)));
    }
    json.remove_prefix(character.size());
  }
  return printable;
}

std::string FormatTable(const std::vector<TableRow>& rows) {
  return FormatTable(rows, TableStyle());
}

std::string FormatTable(const std::vector<TableRow>& rows, const TableStyle& style) {
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
  if (style.width > 0 && !widths.empty()) Narrow(widths, style.width);
  std::string text;
  for (std::vector<Shown>& cells : shown) {
    for (size_t i = 0; i < cells.size(); ++i) {
      Shown& cell = cells[i];
      const std::string_view colour = style.colour ? style.colour(cell.text) : std::string_view();
      if (style.width > 0) Cut(cell, widths[i]);
      if (!colour.empty()) text += fmt::format("\x1b[{}m", colour);
      text += cell.text;
      if (!colour.empty()) text += "\x1b[0m";
      if (i + 1 < cells.size()) text.append(widths[i] + 2 - cell.width, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace resmgr
