// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// The description of a command line (CommandLine::Document), from which -help, manual pages and
// shell completion are made. Plain values.
struct FlagDocument {
  std::string name{};        // without dashes
  std::string value_name{};  // empty for a flag without a value; "a|b" for a choice
  std::string help{};
  std::string default_text{};  // empty: not shown
  std::string group{};
  bool repeatable = false;
};

struct CommandDocument {
  std::string program{};  // with the command, if any: "cri-resmgr-ctl status"
  std::string summary{};  // paragraphs separated by empty lines; indented lines stay unchanged
  std::string arguments_usage{};  // "COMMAND [FLAG...]"; empty: no arguments
  std::string short_summary{};    // a command's text in the list of commands
  std::vector<FlagDocument> flags{};
  // Titles and texts of further sections, in the form of `summary`.
  std::vector<std::pair<std::string, std::string>> sections{};
  std::vector<CommandDocument> commands{};
};

// The last word of the command's `program`.
std::string_view CommandName(const CommandDocument& command);

// The output of -help: -help=man writes a manual page of section 8 in troff, -help=bash and
// -help=zsh the completion for these shells.
enum class HelpFormat { kText, kMan, kBash, kZsh };

StatusOr<HelpFormat> ParseHelpFormat(std::string_view name);

// The document in this format; ends with a newline.
std::string Render(const CommandDocument& document, HelpFormat format);

// The text with other texts in place of some characters.
std::string Replaced(std::string_view text,
                     std::initializer_list<std::pair<char, std::string_view>> replacements);

// Escapes a text for troff: hyphens can be copied to a shell, and no line becomes a request.
std::string TroffText(std::string_view text);

}  // namespace resmgr
