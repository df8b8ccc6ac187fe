// SPDX-License-Identifier: Apache-2.0
#include "pkg/cmdline/command_line.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"

namespace resmgr {
namespace {

// The name in "-name", "--name", "-name=value"; empty if the argument is not a flag.
std::string_view FlagName(std::string_view argument) {
  if (argument.size() < 2 || argument[0] != '-') return "";
  argument.remove_prefix(argument[1] == '-' ? 2 : 1);
  return argument.substr(0, argument.find('='));
}

bool IsFlag(std::string_view argument) {
  return argument.size() >= 2 && argument[0] == '-' && argument != "--";
}

}  // namespace

CommandLine::CommandLine(std::string_view program, std::string_view summary)
    : program_(program), summary_(summary) {}

void CommandLine::Group(std::string_view title) {
  group_ = title;
}

void CommandLine::Flag(std::string_view name, std::string_view help, bool* target) {
  Flag(name, "", help, *target ? "true" : "", [target](std::string_view value) -> Status {
    const std::optional<bool> parsed = ParseBool(value);
    if (!parsed) return InvalidArgument("\"{}\" is not true or false", Printable(value));
    *target = *parsed;
    return OkStatus();
  });
}

void CommandLine::Flag(std::string_view name, std::string_view value_name, std::string_view help,
                       std::string* target) {
  Flag(name, value_name, help, *target, [target](std::string_view value) -> Status {
    *target = value;
    return OkStatus();
  });
}

void CommandLine::Flag(std::string_view name, std::string_view value_name, std::string_view help,
                       std::optional<std::string>* target) {
  Flag(name, value_name, help, target->value_or(""), [target](std::string_view value) -> Status {
    target->emplace(value);
    return OkStatus();
  });
}

void CommandLine::Flag(std::string_view name, std::string_view value_name, std::string_view help,
                       int64_t* target) {
  Flag(name, value_name, help, fmt::format("{}", *target),
       [target](std::string_view value) -> Status {
         const std::optional<int64_t> parsed = ParseInt(value);
         if (!parsed) return InvalidArgument("\"{}\" is not a whole number", Printable(value));
         *target = *parsed;
         return OkStatus();
       });
}

void CommandLine::Flag(std::string_view name, std::string_view value_name, std::string_view help,
                       std::vector<std::string>* target) {
  Flag(name, value_name, help, fmt::format("{}", fmt::join(*target, " ")),
       [target](std::string_view value) -> Status {
         target->emplace_back(value);
         return OkStatus();
       });
  declarations_.back().flag.repeatable = true;
}

void CommandLine::Flag(std::string_view name, std::string_view value_name, std::string_view help,
                       std::string_view default_text, Setter setter) {
  declarations_.push_back({.flag = {.name = std::string(name),
                                    .value_name = std::string(value_name),
                                    .help = std::string(help),
                                    .default_text = std::string(default_text),
                                    .group = group_},
                           .set = std::move(setter)});
}

void CommandLine::Bare(std::string_view name, std::string_view value) {
  for (Declaration& declaration : declarations_)
    if (declaration.flag.name == name) declaration.bare = value;
}

void CommandLine::Choice(std::string_view name, std::vector<std::string> choices,
                         std::string_view help, std::string* target) {
  const std::string value_name = fmt::format("{}", fmt::join(choices, "|"));
  Flag(name, value_name, help, *target,
       [target, choices = std::move(choices)](std::string_view value) -> Status {
         const auto found = std::find(choices.begin(), choices.end(), value);
         if (found == choices.end()) {
           return InvalidArgument("\"{}\" is not one of {}", Printable(value),
                                  fmt::join(choices, ", "));
         }
         *target = *found;
         return OkStatus();
       });
}

void CommandLine::Arguments(std::string_view usage, std::vector<std::string>* target) {
  arguments_usage_ = usage;
  arguments_ = target;
}

void CommandLine::Section(std::string_view title, std::string_view text) {
  sections_.emplace_back(title, text);
}

const CommandLine::Declaration* CommandLine::Find(std::string_view name) const {
  const auto found = std::find_if(declarations_.begin(), declarations_.end(),
                                  [name](const Declaration& d) { return d.flag.name == name; });
  return found == declarations_.end() ? nullptr : &*found;
}

Status CommandLine::Apply(std::string_view dash, std::string_view name,
                          std::optional<std::string_view> value) {
  const Declaration* declaration = Find(name);
  if (declaration == nullptr) {
    std::vector<std::string_view> known;
    for (const Declaration& other : declarations_)
      known.push_back(other.flag.name);
    const std::string hint = DidYouMean(name, known, dash);
    return InvalidArgument("unknown {} {}{}{}", dash.empty() ? "option" : "flag", dash,
                           Printable(name, 64),
                           hint.empty() ? "; -help lists what there is" : hint);
  }
  if (!value && declaration->bare) value = *declaration->bare;
  if (!value) {
    if (!declaration->flag.value_name.empty()) {
      return InvalidArgument("{}{}: needs a value ({})", dash, name, declaration->flag.value_name);
    }
    value = "true";
  }
  return Annotate(declaration->set(*value), fmt::format("{}{}", dash, name));
}

Status CommandLine::SetOption(std::string_view name, std::optional<std::string_view> value) {
  return Apply("", name, value);
}

Status CommandLine::ParseFlag(const std::vector<std::string_view>& arguments, size_t& index) {
  const std::string_view argument = arguments[index];
  const std::string_view name = FlagName(argument);
  const size_t equals = argument.find('=');
  if (name == "help" || name == "h") {
    if (equals != std::string_view::npos) {
      const auto format = ParseHelpFormat(argument.substr(equals + 1));
      if (!format.ok()) return Annotate(format.status(), "-help");
      help_format_ = *format;
    }
    help_requested_ = true;
    return OkStatus();
  }
  if (equals != std::string_view::npos) return Apply("-", name, argument.substr(equals + 1));
  const Declaration* declaration = Find(name);
  if (declaration == nullptr || declaration->flag.value_name.empty() ||
      index + 1 == arguments.size()) {
    return Apply("-", name, std::nullopt);
  }
  // Without this check a forgotten value would silently consume the next flag.
  const std::string_view next = arguments[index + 1];
  if (IsFlag(next) && Find(FlagName(next)) != nullptr) {
    if (declaration->bare) return Apply("-", name, std::nullopt);
    return InvalidArgument(
        "-{}: needs a value ({}), but the flag {} follows; write -{}={} if meant", name,
        declaration->flag.value_name, next, name, next);
  }
  ++index;
  return Apply("-", name, next);
}

Status CommandLine::TakeArgument(std::string_view argument, std::string_view before) {
  if (arguments_ != nullptr) {
    arguments_->emplace_back(argument);
    return OkStatus();
  }
  const Declaration* flag = IsFlag(before) ? Find(FlagName(before)) : nullptr;
  if (flag != nullptr && flag->flag.value_name.empty() && ParseBool(argument)) {
    return InvalidArgument("unexpected argument \"{}\"; write -{}={}", argument, flag->flag.name,
                           argument);
  }
  return InvalidArgument("unexpected argument \"{}\"; flags begin with a dash, -help lists them",
                         Printable(argument));
}

Status CommandLine::Parse(int argc, const char* const* argv) {
  const std::vector<std::string_view> arguments(argv + std::min(argc, 1), argv + argc);
  bool flags_ended = false;
  for (size_t index = 0; index < arguments.size() && !help_requested_; ++index) {
    const std::string_view argument = arguments[index];
    if (!flags_ended && argument == "--") {
      flags_ended = true;
    } else if (!flags_ended && IsFlag(argument)) {
      RESMGR_RETURN_IF_ERROR(ParseFlag(arguments, index));
    } else {
      RESMGR_RETURN_IF_ERROR(TakeArgument(argument, index == 0 ? "" : arguments[index - 1]));
    }
  }
  return OkStatus();
}

CommandDocument CommandLine::Document() const {
  CommandDocument document = {.program = program_,
                              .summary = summary_,
                              .arguments_usage = arguments_usage_,
                              .sections = sections_};
  for (const Declaration& declaration : declarations_)
    document.flags.push_back(declaration.flag);
  return document;
}

Status PrintOut(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return OkStatus();
  return Unavailable("the output cannot be written: {}", std::generic_category().message(errno));
}

}  // namespace resmgr
