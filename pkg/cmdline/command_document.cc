// SPDX-License-Identifier: Apache-2.0
#include "pkg/cmdline/command_document.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/cmdline/shell_completion.h"

namespace resmgr {
namespace {

constexpr size_t kHelpColumns = 90;
constexpr std::string_view kHelpIndent = "        ";

void AppendWrapped(std::string_view text, std::string& out) {
  size_t column = 0;
  for (const std::string_view word : Split(text, ' ')) {
    if (column != 0 && column + 1 + word.size() > kHelpColumns) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      out += kHelpIndent;
      column = kHelpIndent.size();
    } else {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  out += '\n';
}

void AppendFlags(const CommandDocument& document, std::string& help) {
  std::string_view group;
  for (const FlagDocument& flag : document.flags) {
    if (flag.group != group) help += fmt::format("\n{}:\n", flag.group);
    group = flag.group;
    help +=
        fmt::format("  -{}{}{}\n", flag.name, flag.value_name.empty() ? "" : " ", flag.value_name);
    AppendWrapped(flag.repeatable ? flag.help + " May be repeated." : flag.help, help);
    if (!flag.default_text.empty()) {
      AppendWrapped(fmt::format("Default: {}", flag.default_text), help);
    }
  }
  help += "\n  -help[=man|bash|zsh]\n";
  AppendWrapped("Print this text, the manual page, or the completion script of a shell, and exit.",
                help);
}

std::string HelpText(const CommandDocument& document) {
  std::string help =
      fmt::format("Usage: {} [FLAG...]{}{}\n\n", document.program,
                  document.arguments_usage.empty() ? "" : " ", document.arguments_usage);
  if (!document.summary.empty()) help += document.summary + "\n\n";
  if (!document.commands.empty()) {
    help += "Commands:\n";
    for (const CommandDocument& command : document.commands)
      help += fmt::format("  {:<15}{}\n", CommandName(command), command.short_summary);
    help += fmt::format(
        "\n\"{} COMMAND -help\" explains a command and its flags, which may stand before or "
        "after it.\n\n",
        document.program);
  }
  help += "A flag takes one or two dashes and its value as -flag value or -flag=value.\n";
  AppendFlags(document, help);
  for (const auto& [title, text] : document.sections)
    help += fmt::format("\n{}:\n{}\n", title, text);
  return help;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return upper;
}

// Returns the text as a quoted argument of a troff request.
std::string Quoted(std::string_view text) {
  return fmt::format("\"{}\"", Replaced(TroffText(text), {{'"', "\\(dq"}}));
}

// Appends paragraphs, which are separated by empty lines. Indented lines are printed unchanged.
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

// The first sentence of the summary, which lists of pages show.
std::string_view Title(std::string_view summary) {
  for (size_t at = 0; at < summary.size(); ++at) {
    const bool end = at + 1 == summary.size() || summary[at + 1] == '\n' || summary[at + 1] == ' ';
    if ((summary[at] == '.' || summary[at] == ':') && end) return summary.substr(0, at);
  }
  return summary;
}

// Uses the macros of man(7), for groff and mandoc. There is no date, so that the same program
// always gives the same page.
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

struct Format {
  std::string_view name;
  HelpFormat format;
  std::string (*render)(const CommandDocument& document);
};
constexpr std::array<Format, 4> kFormats = {{{"text", HelpFormat::kText, HelpText},
                                             {"man", HelpFormat::kMan, ManPage},
                                             {"bash", HelpFormat::kBash, BashCompletion},
                                             {"zsh", HelpFormat::kZsh, ZshCompletion}}};

}  // namespace

std::string_view CommandName(const CommandDocument& command) {
  const std::string_view program = command.program;
  return program.substr(program.rfind(' ') + 1);
}

StatusOr<HelpFormat> ParseHelpFormat(std::string_view name) {
  const auto known = std::ranges::find(kFormats, name, &Format::name);
  if (known != kFormats.end()) return known->format;
  return InvalidArgument("\"{}\" is not one of text, man, bash, zsh", Printable(name, 64));
}

std::string Render(const CommandDocument& document, HelpFormat format) {
  return std::ranges::find(kFormats, format, &Format::format)->render(document);
}

std::string Replaced(std::string_view text,
                     std::initializer_list<std::pair<char, std::string_view>> replacements) {
  std::string replaced;
  for (const char c : text) {
    const auto* const found =
        std::ranges::find(replacements, c, &std::pair<char, std::string_view>::first);
    replaced += found == replacements.end() ? std::string_view(&c, 1) : found->second;
  }
  return replaced;
}

std::string TroffText(std::string_view text) {
  const bool request = text.starts_with('.') || text.starts_with('\'');
  return (request ? "\\&" : "") + Replaced(text, {{'\\', "\\e"}, {'-', "\\-"}});
}

}  // namespace resmgr
