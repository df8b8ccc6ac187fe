// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// What a command line has to tell about itself (CommandLine::Document): the one source of -help, of
// manual pages and of the completion in shells. Plain values.
struct FlagDocument {
  std::string name{};        // without dashes
  std::string value_name{};  // empty for a flag that takes no value; "a|b" where it is one of these
  std::string help{};
  std::string default_text{};  // empty: none to show
  std::string group{};
  bool repeatable = false;
};

struct CommandDocument {
  std::string program{};  // of a command of a program both: "cri-resmgr-ctl status"
  std::string summary{};  // paragraphs divided by empty lines; indented lines stay as they are
  std::string arguments_usage{};  // "COMMAND [FLAG...]"; empty: takes none
  std::string short_summary{};    // of a command, for the list of commands
  std::vector<FlagDocument> flags{};
  // Title and text of what else there is to know, in the form of `summary`.
  std::vector<std::pair<std::string, std::string>> sections{};
  std::vector<CommandDocument> commands{};
};

// The last word of a command's `program`.
std::string_view CommandName(const CommandDocument& command);

// How -help shows a document: -help=man writes a manual page of section 8 in troff, -help=bash and
// -help=zsh what these shells complete the command by.
enum class HelpFormat { kText, kMan, kBash, kZsh };

StatusOr<HelpFormat> ParseHelpFormat(std::string_view name);

// Ends with a newline.
std::string Render(const CommandDocument& document, HelpFormat format);

}  // namespace resmgr
