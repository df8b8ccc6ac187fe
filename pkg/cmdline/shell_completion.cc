// SPDX-License-Identifier: Apache-2.0
#include "pkg/cmdline/shell_completion.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pkg/base/parse.h"

namespace resmgr {

namespace {

bool IsWord(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

// The words of "show|check FILE|set FILE": show, check, set; also of "[nodes|cpus]". Words in
// capitals, which name values, are left out.
std::vector<std::string_view> Words(std::string_view usage) {
  std::vector<std::string_view> words;
  if (usage.find('|') == std::string_view::npos) return words;
  if (usage.starts_with('[') && usage.find(']') + 1 == usage.size())
    usage = usage.substr(1, usage.size() - 2);
  for (const std::string_view alternative : Split(usage, '|')) {
    const std::string_view word = alternative.substr(0, alternative.find(' '));
    if (IsWord(word)) words.push_back(word);
  }
  return words;
}

using Names = std::vector<std::string_view>;

Names CommandNames(const CommandDocument& document) {
  Names names;
  for (const CommandDocument& command : document.commands)
    names.push_back(CommandName(command));
  return names;
}

// The words that a command takes as its first argument. `names`: the program's commands.
Names ArgumentWords(const CommandDocument& command, const Names& names) {
  return command.arguments_usage == "[COMMAND]" ? names : Words(command.arguments_usage);
}

bool IsFile(std::string_view value_name) {
  return value_name == "FILE" || value_name == "PATH" || value_name == "SOCKET";
}

bool IsDirectory(std::string_view value_name) {
  return value_name == "DIR";
}

// The command that prints existing names of a kind, if the program has such a command. Shell
// completion calls it, with the -socket of the command line that is being completed.
constexpr std::string_view kLiveCommand = "complete";
constexpr std::string_view kBashSocket =
    "  local j socket=()\n"
    "  for ((j = 1; j < COMP_CWORD - 1; j++)); do\n"
    "    [[ ${COMP_WORDS[j]} == -socket || ${COMP_WORDS[j]} == --socket ]] || continue\n"
    "    [ \"${COMP_WORDS[j + 1]}\" != '=' ] || ((j++))\n"
    "    [ $((j + 1)) -ge \"$COMP_CWORD\" ] || socket=(-socket \"${COMP_WORDS[j + 1]}\")\n"
    "  done\n";
// Once one of the words was given, others are not completed.
constexpr std::string_view kBashFirstWord =
    "  for ((i++; i < COMP_CWORD; i++)); do\n"
    "    [[ \" $words \" != *\" ${COMP_WORDS[i]} \"* ]] || words=''\n"
    "  done\n";
// Passes on -socket in a zsh command, whether it was given before or after the command.
constexpr std::string_view kZshSocket =
    "$socket ${opt_args[-socket]:+-socket} ${opt_args[-socket]}";

bool HasLiveNames(const CommandDocument& document) {
  return std::ranges::any_of(document.commands, [](const CommandDocument& command) {
    return CommandName(command) == kLiveCommand;
  });
}

// The kind of existing names that a value or an argument of this form takes; "" if there is none.
std::string_view LiveKind(std::string_view usage) {
  if (usage == "NAMESPACE") return "namespaces";
  if (usage == "POD") return "pods";
  if (usage == "POOL") return "pools";
  if (usage.find("POD[/CONTAINER]") != std::string_view::npos) return "containers";
  return usage.find("SOURCE") != std::string_view::npos ? "log-sources" : "";
}

std::string_view LiveKind(const FlagDocument& flag) {
  return flag.name == "policy" ? "policies" : LiveKind(flag.value_name);
}

std::string FunctionName(std::string_view program) {
  return "_" + Replaced(program, {{'-', "_"}, {' ', "_"}});
}

// The bash code for one command: it sets the shell variables `flags` and `words` to what can be
// completed, and `value` to the way in which the value of $flag is completed. With `live`, existing
// names, such as those of pods, are asked from the running daemon. `words` are those that can stand
// first behind the command.
std::string BashCase(const CommandDocument& document, const Names& words, std::string_view indent,
                     bool live) {
  std::vector<std::string> flags;
  std::string values;
  for (const FlagDocument& flag : document.flags) {
    flags.push_back("-" + flag.name);
    if (flag.value_name.empty()) continue;
    const auto choices = Words(flag.value_name);
    std::string how = "none";
    if (!choices.empty()) how = fmt::format("words '{}'", fmt::join(choices, " "));
    if (IsFile(flag.value_name)) how = "files";
    if (IsDirectory(flag.value_name)) how = "directories";
    const std::string_view kind = live ? LiveKind(flag) : "";
    if (!kind.empty()) how = fmt::format("live {}", kind);
    values += fmt::format("{}  -{}) value=\"{}\" ;;\n", indent, flag.name, how);
  }
  flags.emplace_back("-help");
  std::string text = fmt::format("{}flags='{}'\n{}words='{}'\n", indent, fmt::join(flags, " "),
                                 indent, fmt::join(words, " "));
  const std::string_view kind = live ? LiveKind(document.arguments_usage) : "";
  if (!kind.empty()) text += fmt::format("{}live='{}'\n", indent, kind);
  if (!values.empty()) {
    text += fmt::format("{}case $flag in\n{}{}esac\n", indent, values, indent);
  }
  return text;
}

std::string InQuotes(std::string_view text) {
  return fmt::format("'{}'", Replaced(text, {{'\'', "'\\''"}, {'\n', " "}}));
}

// Escapes characters with a meaning in a specification of zsh's _arguments.
std::string ZshText(std::string_view text) {
  return Replaced(text, {{'[', "\\["}, {']', "\\]"}, {':', "\\:"}, {'\\', "\\\\"}});
}

std::string FirstSentence(std::string_view text) {
  const size_t end = std::min(text.find(". "), text.find(".\n"));
  std::string sentence(text.substr(0, end));
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

// An action of zsh's _arguments that completes existing names of the kind.
std::string ZshLive(std::string_view program, std::string_view kind) {
  return fmt::format("{{compadd -- ${{(f)\"$({} {} {} {} 2>/dev/null)\"}}}}",
                     program.substr(0, program.find(' ')), kLiveCommand, kind, kZshSocket);
}

// `program` is "" if it cannot print existing names.
std::string ZshFlag(const FlagDocument& flag, std::string_view program) {
  std::string text = flag.repeatable ? "*-" : "-";
  text += flag.name;
  if (!flag.value_name.empty()) text += '=';
  text += fmt::format("[{}]", ZshText(FirstSentence(flag.help)));
  if (!flag.value_name.empty()) {
    text += fmt::format(":{}:", ZshText(flag.value_name));
    const auto words = Words(flag.value_name);
    if (!words.empty()) text += fmt::format("({})", fmt::join(words, " "));
    if (IsFile(flag.value_name)) text += "_files";
    if (IsDirectory(flag.value_name)) text += "_files -/";
    const std::string_view kind = program.empty() ? "" : LiveKind(flag);
    if (!kind.empty()) text += ZshLive(program, kind);
  }
  return InQuotes(text);
}

// A call of _arguments with the flags and arguments of one command.
std::string ZshArguments(const CommandDocument& document, const Names& words,
                         std::string_view indent, std::string_view rest, bool live) {
  const std::string_view program = live ? std::string_view(document.program) : "";
  std::string text = fmt::format("{}_arguments -C", indent);
  for (const FlagDocument& flag : document.flags)
    text += fmt::format(" \\\n{}  {}", indent, ZshFlag(flag, program));
  text += fmt::format(" \\\n{}  '-help[Explain it and exit]'", indent);
  if (!words.empty()) text += fmt::format(" \\\n{}  '1:what:({})'", indent, fmt::join(words, " "));
  const std::string_view kind = live ? LiveKind(document.arguments_usage) : "";
  if (!kind.empty()) {
    text += fmt::format(" \\\n{}  {}", indent,
                        InQuotes(fmt::format("*:name:{}", ZshLive(program, kind))));
  }
  if (!rest.empty()) text += fmt::format(" \\\n{}  {}", indent, rest);
  return text + '\n';
}

}  // namespace

std::string BashCompletion(const CommandDocument& document) {
  const std::string function = FunctionName(document.program);
  const bool live = HasLiveNames(document);
  std::string text = fmt::format(
      "# Made by `{} -help=bash`.\n{}() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} flag=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  local flags words live='' value='' command=''\n"
      "  # Bash takes -flag=value for three words.\n"
      "  [ \"$cur\" != '=' ] || cur=\n"
      "  [ \"$flag\" != '=' ] || flag=${{COMP_WORDS[COMP_CWORD - 2]}}\n"
      "  [[ $flag != --* ]] || flag=${{flag#-}}\n",
      document.program, function);
  const Names names = CommandNames(document);
  if (!names.empty()) {
    text += fmt::format(
        "  local i\n  for ((i = 1; i < COMP_CWORD; i++)); do\n    case ${{COMP_WORDS[i]}} in\n"
        "      {})\n        command=${{COMP_WORDS[i]}}\n        break\n        ;;\n    esac\n  "
        "done\n",
        fmt::join(names, " | "));
  }
  if (live) text += kBashSocket;
  text += "  case $command in\n";
  for (const CommandDocument& command : document.commands) {
    text += fmt::format("    {})\n{}      ;;\n", CommandName(command),
                        BashCase(command, ArgumentWords(command, names), "      ", live));
  }
  text += fmt::format("    *)\n{}      ;;\n  esac\n", BashCase(document, names, "      ", live));
  if (!names.empty()) text += kBashFirstWord;
  const std::string live_case =
      live ? fmt::format(
                 "    live*)\n      compopt +o filenames 2>/dev/null\n"
                 "      mapfile -t COMPREPLY < <(compgen -W \"$({} {} \"${{value#live }}\" "
                 "\"${{socket[@]}}\" 2>/dev/null)\" -- \"$cur\")\n      ;;\n",
                 document.program, kLiveCommand)
           : "";
  text += fmt::format(
      "  if [[ -z $value && $cur == --* ]]; then\n    value=\"words '-${{flags// -/ --}}'\"\n"
      "  elif [[ -z $value && $cur == -* ]]; then\n    value=\"words '$flags'\"\n"
      "  elif [[ -z $value && -n $words ]]; then\n    value=\"words '$words'\"\n"
      "  elif [[ -z $value && -n $live ]]; then\n    value=\"live $live\"\n  fi\n"
      "  case $value in\n    none) COMPREPLY=() ;;\n    words*)\n"
      "      value=${{value#words \\'}}\n"
      "      mapfile -t COMPREPLY < <(compgen -W \"${{value%\\'}}\" -- \"$cur\")\n      ;;\n"
      "{}"
      "    directories) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;\n"
      "    *) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n  esac\n}}\n"
      "complete -o filenames -F {} {}\n",
      live_case, function, document.program);
  return text;
}

std::string ZshCompletion(const CommandDocument& document) {
  std::string text = fmt::format(
      "#compdef {}\n# Made by `{} -help=zsh`.\nlocal curcontext=$curcontext state\n"
      "local -A opt_args\nlocal -a socket\n",
      document.program, document.program);
  const Names commands = CommandNames(document);
  if (commands.empty()) return text + ZshArguments(document, {}, "", "", false);
  const bool live = HasLiveNames(document);
  std::string names;
  for (const CommandDocument& command : document.commands) {
    std::string summary = ZshText(FirstSentence(command.short_summary));
    std::replace(summary.begin(), summary.end(), '"', ' ');
    names += fmt::format("{}{}\\:\"{}\"", names.empty() ? "" : " ", CommandName(command), summary);
  }
  text += ZshArguments(
      document, {}, "",
      fmt::format("{} '*::argument:->rest'", InQuotes(fmt::format("1:command:(({}))", names))),
      false);
  text +=
      "[[ $state == rest ]] || return\n"
      "[[ -z ${opt_args[-socket]} ]] || socket=(-socket ${opt_args[-socket]})\ncase $words[1] in\n";
  for (const CommandDocument& command : document.commands) {
    const bool files = command.arguments_usage.find("FILE") != std::string::npos ||
                       command.arguments_usage.starts_with("SCENARIO");
    text += fmt::format("  {})\n{}    ;;\n", CommandName(command),
                        ZshArguments(command, ArgumentWords(command, commands), "    ",
                                     files ? "'*:file:_files'" : "", live));
  }
  return text + "esac\n";
}

}  // namespace resmgr
