// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/terminal.h"

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"

namespace resmgr {

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

}  // namespace resmgr
