// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/options_file.h"

#include <algorithm>

#include "pkg/base/parse.h"
#include "pkg/config/config_text.h"

namespace resmgr {

namespace {

bool IsNameLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

std::string_view WithoutComment(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
      return Trim(text.substr(0, i));
    }
  }
  return text;
}

// `text` begins with a quote.
StatusOr<std::string> QuotedValue(std::string_view text) {
  const size_t end = text.find(text[0], 1);
  if (end == std::string_view::npos) return InvalidArgument("the quote {} is not closed", text[0]);
  const std::string_view behind = Trim(text.substr(end + 1));
  if (!behind.empty() && behind[0] != '#') {
    return InvalidArgument("\"{}\" follows the closing quote", Printable(behind, 64));
  }
  return std::string(text.substr(1, end - 1));
}

// Parses a line that has more than white space and comment.
Status ParseLine(std::string_view line, OptionLine& option) {
  const auto name_end = std::find_if_not(line.begin(), line.end(), IsNameLetter);
  const auto name_size = static_cast<size_t>(name_end - line.begin());
  option.name = line.substr(0, name_size);
  if (option.name.starts_with('-')) {
    return InvalidArgument(
        "options have no dashes here: write {}",
        Printable(line.substr(std::min(line.find_first_not_of('-'), line.size())), 64));
  }
  std::string_view rest = line.substr(name_size);
  const bool separated =
      !rest.empty() && std::string_view(" \t=:").find(rest[0]) != std::string_view::npos;
  if (option.name.empty() || (!rest.empty() && !separated)) {
    return InvalidArgument("\"{}\" is not an option with its value", Printable(line, 64));
  }
  rest = Trim(rest);
  const bool has_sign = rest.starts_with('=') || rest.starts_with(':');
  if (has_sign) rest = Trim(rest.substr(1));
  if (rest.starts_with('"') || rest.starts_with('\'')) {
    RESMGR_ASSIGN_OR_RETURN(option.value, QuotedValue(rest));
    return OkStatus();
  }
  rest = WithoutComment(rest);
  if (has_sign || !rest.empty()) option.value.emplace(rest);
  return OkStatus();
}

}  // namespace

std::vector<OptionLine> ParseOptionLines(std::string_view text, std::string_view source,
                                         Problems& problems) {
  std::vector<OptionLine> options;
  const StatusOr<std::string_view> checked = CheckConfigText(text, source);
  problems.Add(checked.status());
  size_t number = 0;
  for (const std::string_view line : Split(checked.value_or(""), '\n')) {
    ++number;
    const std::string_view content = Trim(line);
    if (content.empty() || content[0] == '#') continue;
    OptionLine option{
        .name = "", .value = std::nullopt, .where = fmt::format("{}:{}", source, number)};
    const Status status = ParseLine(content, option);
    problems.Add(status, option.where);
    if (status.ok()) options.push_back(std::move(option));
  }
  return options;
}

}  // namespace resmgr
