// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/terminal.h"

#include <algorithm>
#include <clocale>
#include <cwchar>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"

namespace resmgr {
namespace {

// The text of a cell on a terminal, and its width in columns.
struct Shown {
  std::string text;
  size_t width = 0;
};

// The columns that a character takes: two if it is a wide one (East Asian, emoji), none if it is
// combined with the one before. One where the system does not know (it lacks the locale C.UTF-8).
size_t ColumnsOf(std::string_view character) {
  if (character.size() == 1) return 1;
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) return 1;
  const locale_t former = ::uselocale(utf8);
  const int columns = ::wcwidth(static_cast<wchar_t>(CodePointOf(character)));
  ::uselocale(former);
  return columns < 0 ? 1 : static_cast<size_t>(columns);
}

// Takes the first character off the text, which is Printable's.
std::string_view TakeCharacter(std::string_view& text) {
  const std::string_view character = text.substr(0, std::max(Utf8Length(text), size_t{1}));
  text.remove_prefix(character.size());
  return character;
}

Shown Show(const std::string& cell) {
  Shown shown{.text = Printable(cell, cell.size())};
  for (std::string_view rest = shown.text; !rest.empty();)
    shown.width += ColumnsOf(TakeCharacter(rest));
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

// Cuts a cell to `width` columns, or one less in place of half a wide character.
void Cut(Shown& cell, size_t width) {
  if (cell.width <= width) return;
  std::string_view rest = cell.text;
  size_t kept = 0;
  size_t columns = 1;  // that of the ellipsis
  while (!rest.empty()) {
    const size_t more = ColumnsOf(TakeCharacter(rest));
    if (columns + more > width) break;
    columns += more;
    kept = cell.text.size() - rest.size();
  }
  cell.text.resize(kept);
  cell.text += "…";
  cell.width = columns;
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
