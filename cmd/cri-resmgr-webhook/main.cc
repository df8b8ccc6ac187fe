// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/cmdline/command_line.h"
#include "pkg/kube/quantity.h"
#include "pkg/log/log.h"
#include "pkg/sys/signal_wakeup.h"
#include "webhook/server.h"

namespace resmgr {
namespace {

// The same exit codes as cri-resmgr has.
enum ExitCode : int { kExitOk = 0, kExitUsage = 1, kExitEnvironment = 2, kExitInternal = 3 };

constexpr std::string_view kSummary =
    "Mutating admission webhook: writes the resource requirements of a pod's containers into its\n"
    "annotation intel.com/resources, where cri-resmgr reads them. Refuses nothing.";

struct Flags {
  webhook::ServerOptions server;
  LogSettings logging;
  bool version = false;
};

Status SetPort(std::string_view value, uint16_t& port) {
  const auto number = ParseUint(value);
  if (!number || *number > std::numeric_limits<uint16_t>::max()) {
    return InvalidArgument("\"{}\" is not a port (0 to 65535)", Printable(value, 64));
  }
  port = static_cast<uint16_t>(*number);
  return OkStatus();
}

void Declare(CommandLine& line, Flags& flags) {
  line.Group("Server");
  line.Flag("address", "IP", "The address to listen on; empty for all.", &flags.server.address);
  line.Flag("port", "PORT", "The port to listen on; 0: any free port, which is logged.", "443",
            [&](std::string_view value) { return SetPort(value, flags.server.port); });
  line.Flag(
      "cert-file", "FILE",
      "The certificate chain in PEM form, the server's own certificate first. It is loaded again "
      "when it changes.",
      &flags.server.certificate_file);
  line.Flag("key-file", "FILE", "The private key of the certificate, in PEM form.",
            &flags.server.key_file);
  line.Flag("shutdown-delay", "TIME",
            "How long it goes on after SIGTERM. For a pod behind a Service some seconds, until API "
            "servers have heard that it ends; with five seconds for the last answers, less than "
            "the pod's grace period.",
            "0s", [&](std::string_view value) -> Status {
              constexpr std::chrono::hours kLongest{1};
              const auto time = ParseDuration(value, kLongest);
              if (!time)
                return InvalidArgument("\"{}\" is not a time up to 1h", Printable(value, 64));
              flags.server.shutdown_delay = *time;
              return OkStatus();
            });
  line.Group("Other");
  line.Flag("logger-level", "LEVEL",
            "The lowest severity that is logged: debug, info, warn or error.", "info",
            [&](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(flags.logging.level, ParseLogLevel(value));
              return OkStatus();
            });
  line.Flag("logger-format", "text|json", "The format of log lines.", "text",
            [&](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(flags.logging.format, ParseLogFormat(value));
              return OkStatus();
            });
  line.Flag("version", "Print the version and exit.", &flags.version);
}

int Fail(int exit_code, const Status& status) {
  fmt::print(stderr, "cri-resmgr-webhook: {}\n", Message(status));
  return exit_code;
}

int Print(std::string_view text) {
  const Status status = PrintOut(text);
  return status.ok() ? kExitOk : Fail(kExitEnvironment, status);
}

int Serve(Flags flags) {
  const LogThread log_thread;
  ConfigureLogging(std::move(flags.logging));
  auto server = webhook::Server::Create(std::move(flags.server));
  if (!server.ok()) {
    const bool usage = server.status().code() == StatusCode::kInvalidArgument;
    return Fail(usage ? kExitUsage : kExitEnvironment, server.status());
  }
  (*server)->HandleSignals();
  const Status status = (*server)->Run();
  return status.ok() ? kExitOk : Fail(kExitInternal, status);
}

int Main(int argc, const char* const* argv) {
  // The server handles SIGHUP as soon as it runs. `pkill -USR1 cri-resmgr`, for the daemon, reaches
  // the webhook, too.
  HoldSignal(SIGHUP);
  HoldSignal(SIGUSR1);
  // Without this, a write to a closed pipe would end the process.
  std::signal(SIGPIPE, SIG_IGN);
  Flags flags;
  CommandLine line("cri-resmgr-webhook", kSummary);
  Declare(line, flags);
  line.Section(
      "Exit status",
      "0 success; 1 wrong flags; 2 wrong environment, such as a port that is in use; 3 a bug.");
  const Status status = line.Parse(argc, argv);
  if (!status.ok()) return Fail(kExitUsage, status);
  if (line.help_requested()) return Print(line.Help());
  if (flags.version) return Print(fmt::format("cri-resmgr-webhook {}\n", RESMGR_VERSION));
  if (flags.server.certificate_file.empty() || flags.server.key_file.empty()) {
    return Fail(kExitUsage, InvalidArgument("-cert-file and -key-file are needed"));
  }
  return Serve(std::move(flags));
}

}  // namespace
}  // namespace resmgr

int main(int argc, char** argv) {
  return resmgr::Main(argc, argv);
}
