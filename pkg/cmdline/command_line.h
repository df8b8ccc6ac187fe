// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cmdline/command_document.h"

namespace resmgr {

// The command line of a binary, declared flag by flag: parsing, checking and the help text come
// from the same declarations. Thread-compatible; no global state.
//
//   Options options;
//   CommandLine line("cri-resmgr", "Relays CRI calls and places containers.");
//   line.Group("Sockets");
//   line.Flag("relay-socket", "PATH", "Where kubelets connect.", &options.relay_socket);
//   line.Flag("version", "Print the version and exit.", &options.version);
//   RESMGR_RETURN_IF_ERROR(line.Parse(argc, argv));
//   if (line.help_requested()) fmt::print("{}", line.Help());
//
// Syntax: one or two dashes; `-flag value` or `-flag=value`; a bool is `-flag` or `-flag=false`;
// the last of repeated flags counts, except for lists, which collect; `--` ends the flags; `-`
// alone is a value or an argument, never a flag.
class CommandLine {
 public:
  // Takes one value. An error's message describes the problem; the flag's name is put before it.
  using Setter = std::function<Status(std::string_view value)>;

  // `summary`, the program's purpose, is the beginning of the help.
  CommandLine(std::string_view program, std::string_view summary);

  // Sets the title under which the help shows the flags that are declared next.
  void Group(std::string_view title);

  // Declares a flag. The target must outlive Parse; its value at declaration is the default that
  // the help shows. `value_name` names the value in the help ("FILE").
  void Flag(std::string_view name, std::string_view help, bool* target);
  void Flag(std::string_view name, std::string_view value_name, std::string_view help,
            std::string* target);
  void Flag(std::string_view name, std::string_view value_name, std::string_view help,
            std::optional<std::string>* target);
  void Flag(std::string_view name, std::string_view value_name, std::string_view help,
            int64_t* target);
  // A flag that may be repeated: each occurrence adds one value, unsplit.
  void Flag(std::string_view name, std::string_view value_name, std::string_view help,
            std::vector<std::string>* target);
  // A flag with its own parser, which may be called several times. `default_text` is for the help;
  // "" shows none.
  void Flag(std::string_view name, std::string_view value_name, std::string_view help,
            std::string_view default_text, Setter setter);
  // Declares that the flag, which was declared before, may be given without a value, and then has
  // this one.
  void Bare(std::string_view name, std::string_view value);
  // A flag with one of `choices` as value.
  void Choice(std::string_view name, std::vector<std::string> choices, std::string_view help,
              std::string* target);

  // Accepts arguments that are not flags and collects them, in order, wherever they are among the
  // flags. Without this declaration arguments are errors. `usage` is their form in the help's first
  // line ("COMMAND [ARGUMENT…]").
  void Arguments(std::string_view usage, std::vector<std::string>* target);

  // Adds a section behind the flags, for example exit codes or files. `text` has the form of a
  // summary.
  void Section(std::string_view title, std::string_view text);

  // Reads argv[1] onwards. kInvalidArgument names the flag, the problem, and the closest known
  // name, if any. -help (or -h, or -help=FORMAT) stops the reading without an error.
  Status Parse(int argc, const char* const* argv);
  bool help_requested() const { return help_requested_; }

  // Sets one flag by its name without dashes, for a line of an options file. A missing value is
  // "true" for a bool and an error for other flags.
  Status SetOption(std::string_view name, std::optional<std::string_view> value);

  // Usage, and every flag with its meaning and default, in groups, in the format requested by
  // -help; ends with a newline.
  std::string Help() const { return Render(Document(), help_format_); }
  HelpFormat help_format() const { return help_format_; }
  // The description from which the help is made.
  CommandDocument Document() const;

 private:
  struct Declaration {
    FlagDocument flag{};
    Setter set{};
    std::optional<std::string> bare{};
  };

  const Declaration* Find(std::string_view name) const;
  // `dash` is "-" or "", the prefix of names in messages.
  Status Apply(std::string_view dash, std::string_view name, std::optional<std::string_view> value);
  Status ParseFlag(const std::vector<std::string_view>& arguments, size_t& index);
  Status TakeArgument(std::string_view argument, std::string_view before);

  std::string program_;
  std::string summary_;
  std::string group_ = "Flags";
  std::vector<Declaration> declarations_;
  std::string arguments_usage_;
  std::vector<std::string>* arguments_ = nullptr;
  std::vector<std::pair<std::string, std::string>> sections_;
  bool help_requested_ = false;
  HelpFormat help_format_ = HelpFormat::kText;
};

// Writes the whole text to standard output and flushes it. kUnavailable if not all of it could be
// written: otherwise scripts would not notice a full disk or a closed pipe. SIGPIPE must be
// ignored.
Status PrintOut(std::string_view text);

}  // namespace resmgr
