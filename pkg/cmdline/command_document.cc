// SPDX-License-Identifier: Apache-2.0
#include "pkg/cmdline/command_document.h"

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/cmdline/man_page.h"
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

}  // namespace

std::string_view CommandName(const CommandDocument& command) {
  const std::string_view program = command.program;
  return program.substr(program.rfind(' ') + 1);
}

StatusOr<HelpFormat> ParseHelpFormat(std::string_view name) {
  if (name == "text") return HelpFormat::kText;
  if (name == "man") return HelpFormat::kMan;
  if (name == "bash") return HelpFormat::kBash;
  if (name == "zsh") return HelpFormat::kZsh;
  return InvalidArgument("\"{}\" is not one of text, man, bash, zsh", Printable(name, 64));
}

std::string Render(const CommandDocument& document, HelpFormat format) {
  switch (format) {
    case HelpFormat::kMan:
      return ManPage(document);
    case HelpFormat::kBash:
      return BashCompletion(document);
    case HelpFormat::kZsh:
      return ZshCompletion(document);
    case HelpFormat::kText:
      break;
  }
  return HelpText(document);
}

}  // namespace resmgr
