// SPDX-License-Identifier: Apache-2.0
#include "pkg/cmdline/man_page.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "pkg/base/parse.h"

namespace resmgr {

namespace {

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return upper;
}

// Escaped for the quotes of a request's argument.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : TroffText(text)) {
    if (c == '"') {
      quoted += "\\(dq";
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// Appends paragraphs, which are separated by empty lines; indented lines are shown unchanged.
void AppendText(std::string_view text, std::string& page) {
  bool verbatim = false;
  bool paragraph = false;
  for (const std::string_view line : Split(text, '\n')) {
    const bool indented = line.starts_with("  ");
    if (verbatim && !indented) page += ".fi\n.RE\n";
    if (!verbatim && indented) page += ".RS 2\n.nf\n";
    verbatim = indented;
    if (line.empty()) {
      paragraph = true;
      continue;
    }
    if (paragraph && !indented) page += ".PP\n";
    paragraph = false;
    page += TroffText(indented ? line.substr(2) : line) + '\n';
  }
  if (verbatim) page += ".fi\n.RE\n";
}

void AppendFlag(const FlagDocument& flag, std::string& page) {
  page += fmt::format(".TP\n\\fB\\-{}\\fR", TroffText(flag.name));
  if (!flag.value_name.empty()) page += fmt::format(" \\fI{}\\fR", TroffText(flag.value_name));
  page += '\n' + TroffText(flag.help) + '\n';
  if (flag.repeatable) page += "May be repeated.\n";
  if (!flag.default_text.empty()) {
    page += fmt::format("Default: {}\n", TroffText(flag.default_text));
  }
}

void AppendFlagGroups(const CommandDocument& document, std::string& page) {
  page +=
      ".SH FLAGS\nA flag takes one or two dashes and its value as \\fB\\-flag value\\fR or "
      "\\fB\\-flag=value\\fR.\n";
  std::string_view group;
  for (const FlagDocument& flag : document.flags) {
    if (flag.group != group) page += fmt::format(".SS {}\n", Quoted(flag.group));
    group = flag.group;
    AppendFlag(flag, page);
  }
  page +=
      ".TP\n\\fB\\-help\\fR[\\fI=man|bash|zsh\\fR]\nPrint a help text, this page, or a shell's "
      "completion, and exit.\n";
}

void AppendCommands(const CommandDocument& document, std::string& page) {
  if (document.commands.empty()) return;
  page += ".SH COMMANDS\nFlags of a command may stand before or after it.\n";
  for (const CommandDocument& command : document.commands) {
    page +=
        fmt::format(".SS \"{}{}{}\"\n", TroffText(CommandName(command)),
                    command.arguments_usage.empty() ? "" : " ", TroffText(command.arguments_usage));
    AppendText(command.summary, page);
    for (const FlagDocument& flag : command.flags) {
      const bool common =
          std::any_of(document.flags.begin(), document.flags.end(),
                      [&](const FlagDocument& other) { return other.name == flag.name; });
      if (!common) AppendFlag(flag, page);
    }
  }
}

// The first sentence of the summary, for lists of pages.
std::string_view Title(std::string_view summary) {
  for (size_t at = 0; at < summary.size(); ++at) {
    const bool end = at + 1 == summary.size() || summary[at + 1] == '\n' || summary[at + 1] == ' ';
    if ((summary[at] == '.' || summary[at] == ':') && end) return summary.substr(0, at);
  }
  return summary;
}

}  // namespace

std::string TroffText(std::string_view text) {
  std::string escaped;
  if (text.starts_with('.') || text.starts_with('\'')) escaped += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string ManPage(const CommandDocument& document) {
  std::string title(Title(document.summary));
  std::replace(title.begin(), title.end(), '\n', ' ');
  std::string page = fmt::format(
      ".\\\" Made by `{} -help=man`.\n.TH {} 8 \"\" \"cri\\-resmgr\" \"System Administration\"\n"
      ".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n[\\fIFLAG\\fR...]{}{}\n.SH DESCRIPTION\n",
      document.program, Quoted(Upper(document.program)), TroffText(document.program),
      TroffText(title), TroffText(document.program), document.arguments_usage.empty() ? "" : " ",
      TroffText(document.arguments_usage));
  AppendText(document.summary, page);
  AppendCommands(document, page);
  AppendFlagGroups(document, page);
  for (const auto& [name, text] : document.sections) {
    page += fmt::format(".SH {}\n", Quoted(Upper(name)));
    AppendText(text, page);
  }
  return page;
}

}  // namespace resmgr
