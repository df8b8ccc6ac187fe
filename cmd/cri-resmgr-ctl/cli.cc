// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/cli.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/base/terminal.h"
#include "pkg/cmdline/command_line.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

namespace {

constexpr std::string_view kProgram = "cri-resmgr-ctl";
constexpr std::string_view kDefaultSocket = "/var/run/cri-resmgr/cri-resmgr-admin.sock";
constexpr std::string_view kSummary =
    "Inspects and changes a running cri-resmgr, and simulates placements without one.";
constexpr std::string_view kExitStatus =
    "0 success; 1 wrong flags or configuration, or no object of that name; 2 the daemon cannot\n"
    "be reached or the output cannot be written; 3 a bug or, of audit, a value that differs.";
constexpr std::string_view kSocketHelp = "The socket of the running daemon (its -admin-socket).";

// Whether the argument is a flag that may take the next argument as its value.
bool WantsMore(std::string_view argument) {
  return argument.size() > 1 && argument[0] == '-' && argument.find('=') == std::string_view::npos;
}

void DeclareSocket(CommandLine& line, std::optional<std::string>& socket) {
  line.Flag("socket", "PATH", kSocketHelp, kDefaultSocket, [&socket](std::string_view path) {
    socket = path;
    return OkStatus();
  });
}

// A command with its flags.
class Invocation {
 public:
  explicit Invocation(Command& command)
      : command_(command),
        line_(fmt::format("{} {}", kProgram, command.name()), command.description()) {
    command_.Declare(line_);
    DeclareSocket(line_, socket_);
  }

  // Reads flags from argv[1] on, unless a former one asked for help.
  Status Read(int argc, const char* const* argv) {
    return line_.help_requested() ? OkStatus() : line_.Parse(argc, argv);
  }
  CommandDocument Document() const { return line_.Document(); }

  Status Run(ProgramView program, std::ostream& out) {
    if (line_.help_requested()) {
      out << line_.Help();
      return OkStatus();
    }
    program.socket = StripUnixPrefix(socket_ ? *socket_ : kDefaultSocket);
    program.socket_told = socket_.has_value();
    command_.Use(program);
    return command_.Run(out);
  }

 private:
  Command& command_;
  std::optional<std::string> socket_;
  CommandLine line_;
};

// The flags of a command line without a command: -help and -version.
struct ProgramLine {
  ProgramLine() : line(kProgram, kSummary) {
    DeclareSocket(line, socket);
    line.Flag("version", "Print the version and exit.", &print_version);
    line.Arguments("COMMAND [FLAG...]", &arguments);
    line.Section("Exit status", kExitStatus);
  }

  CommandLine line;
  std::optional<std::string> socket;
  std::vector<std::string> arguments;
  bool print_version = false;
};

Status RunWithoutCommand(int argc, const char* const* argv, std::string_view version,
                         const CommandList& commands, std::ostream& out) {
  ProgramLine program;
  CommandLine& line = program.line;
  RESMGR_RETURN_IF_ERROR(line.Parse(argc, argv));
  if (line.help_requested()) {
    out << Render(ProgramDocument(commands), line.help_format());
    return OkStatus();
  }
  if (!program.print_version) return InvalidArgument("no command given; -help lists the commands");
  out << kProgram << ' ' << version << '\n';
  return OkStatus();
}

Status Run(int argc, const char* const* argv, std::string_view version, const CommandList& commands,
           std::ostream& out, std::ostream& err) {
  // The first argument that names a command is the command, unless it is the value of a preceding
  // flag.
  std::optional<Status> misread;
  for (int at = 1; at < argc; ++at) {
    const std::string_view argument = argv[at];
    if (argument.starts_with('-')) continue;
    const auto command = std::ranges::find(commands, argument, &Command::name);
    if (command != commands.end()) {
      Invocation invocation(**command);
      // Fails if an argument before the command is not one of its flags.
      const Status status = invocation.Read(at, argv);
      if (status.ok()) {
        RESMGR_RETURN_IF_ERROR(invocation.Read(argc - at, argv + at));
        return invocation.Run({.version = version, .commands = &commands, .notes = &err}, out);
      }
      if (!misread) misread = status;
    }
    if (at == 1 || !WantsMore(argv[at - 1])) {
      return misread.value_or(UnknownCommand(commands, argument));
    }
  }
  if (misread) return *misread;
  return RunWithoutCommand(argc, argv, version, commands, out);
}

}  // namespace

Status UnknownCommand(const CommandList& commands, std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& command : commands)
    known.push_back(command->name());
  const std::string hint = DidYouMean(name, known);
  return InvalidArgument("unknown command \"{}\"{}", Printable(name, 64),
                         hint.empty() ? "; -help lists what there is" : hint);
}

CommandDocument DocumentOf(Command& command) {
  CommandDocument document = Invocation(command).Document();
  document.short_summary = command.summary();
  return document;
}

CommandDocument ProgramDocument(const CommandList& commands) {
  CommandDocument document = ProgramLine().line.Document();
  for (const auto& command : commands)
    document.commands.push_back(DocumentOf(*command));
  return document;
}

int ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kAlreadyExists:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kUnimplemented:
    case StatusCode::kAborted:  // the runtime refused what a configuration would move
      return 1;
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kResourceExhausted:
      return 2;
    case kDrift:
    default:
      return 3;
  }
}

int RunCli(int argc, const char* const* argv, std::string_view version, const CommandList& commands,
           std::ostream& out, std::ostream& err) {
  Status status = Run(argc, argv, version, commands, out, err);
  out.flush();
  // If the disk is full the command must fail, so that scripts notice.
  if (status.ok() && !out) status = Unavailable("the output cannot be written");
  if (!status.ok()) err << kProgram << ": " << PrintableLines(Message(status)) << '\n';
  return ExitCodeOf(status);
}

}  // namespace resmgr
