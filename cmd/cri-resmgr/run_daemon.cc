// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr/run_daemon.h"

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "cmd/cri-resmgr/flags.h"
#include "cmd/cri-resmgr/koord_flags.h"
#include "cmd/cri-resmgr/wiring.h"
#include "pkg/api/protobuf_log.h"
#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/cmdline/command_line.h"
#include "pkg/config/config_key.h"
#include "pkg/config/print_config.h"
#include "pkg/node/policy_setup.h"
#include "pkg/node/run_node.h"
#include "pkg/node/startup.h"
#include "pkg/sys/inherited_sockets.h"
#include "pkg/sys/signal_wakeup.h"
#include "policies/builtin_policies.h"

namespace resmgr {
namespace {

int Fail(const Status& status) {
  fmt::print(stderr, "cri-resmgr: {}\n", Message(status));
  return ExitCodeOf(status);
}

int Print(std::string_view text) {
  const Status status = PrintOut(text);
  return status.ok() ? kExitOk : Fail(status);
}

int ListPolicies(const PolicyRegistry& policies) {
  std::string list;
  for (const PolicyFactory& factory : policies.factories())
    list += fmt::format("{:<16} {}\n", factory.name, factory.description);
  return Print(list);
}

// Prints the configuration that a start would use: one that an agent delivered to an earlier run
// has precedence over the file.
int PrintConfigInForce(const NodeOptions& options) {
  const std::optional<KeptConfig> kept = LoadKeptConfig(options);
  std::string text;
  if (kept && kept->config.ok()) {
    text =
        fmt::format("# From {}, as it was delivered to an earlier run; -reset-config forgets it.\n",
                    Printable(kept->source));
  }
  const Config& config = kept && kept->config.ok() ? *kept->config : options.config;
  text += PrintConfig(WithDefaults(config, options.policies));
  return Print(text + OtherDefaults(config, options.policies));
}

// The arguments as flags of cri-resmgr, translated if the program is called koord-runtime-proxy.
StatusOr<KoordCommandLine> ArgumentsOf(int argc, const char* const* argv) {
  if (argc > 0 && IsKoordProgram(argv[0])) return TranslateKoordFlags(argc, argv);
  return KoordCommandLine{.arguments = {argv, argv + argc}, .warnings = {}};
}

}  // namespace

int RunDaemon(int argc, const char* const* argv, std::string_view version) {
  HoldSignal(SIGHUP);
  HoldSignal(SIGUSR1);
  // Without this, a write to a closed connection or pipe would end the process.
  std::signal(SIGPIPE, SIG_IGN);
  // Before any other file is opened, since inherited sockets are identified by their descriptor
  // numbers.
  InheritedSockets::Instance().AddFromEnvironment();
  SendProtobufLogToOurs();
  const PolicyRegistry policies = BuiltinPolicies();
  const auto line = ArgumentsOf(argc, argv);
  if (!line.ok()) return Fail(line.status());
  if (!line->help.empty()) return Print(line->help);
  std::vector<const char*> arguments;
  for (const std::string& argument : line->arguments)
    arguments.push_back(argument.c_str());
  const auto flags =
      ParseFlags(static_cast<int>(arguments.size()), arguments.data(), ChecksWith(policies));
  if (!flags.ok()) return Fail(flags.status());
  if (!flags->help.empty()) return Print(flags->help);
  if (flags->version) return Print(fmt::format("cri-resmgr {}\n", version));
  if (flags->list_policies) return ListPolicies(policies);
  if (flags->print_schema) return Print(ConfigSchema(AllConfigKeys(ChecksWith(policies))));
  if (flags->print_config_page) return Print(ConfigManPage(AllConfigKeys(ChecksWith(policies))));
  const NodeOptions options = OptionsOf(*flags, policies, version);
  if (flags->print_config) return PrintConfigInForce(options);
  if (flags->reset_policy || flags->reset_config) {
    const Status status = Reset(
        options, {.placements = flags->reset_policy, .delivered_config = flags->reset_config});
    if (!status.ok()) return Fail(status);
    return Print(fmt::format("forgot {}{}{}\n", flags->reset_policy ? "the placements" : "",
                             flags->reset_policy && flags->reset_config ? " and " : "",
                             flags->reset_config ? "the delivered configuration" : ""));
  }
  auto setup = flags->check_config ? CheckOnly(options) : Prepare(options);
  if (!setup.ok()) return Fail(setup.status());
  setup->warnings.insert(setup->warnings.begin(), line->warnings.begin(), line->warnings.end());
  if (flags->check_config) {
    for (const std::string& warning : setup->warnings)
      fmt::print(stderr, "cri-resmgr: warning: {}\n", warning);
    return Print(fmt::format("the configuration is valid: policy {} on {}\n",
                             flags->config.policy.active,
                             CountText(setup->machine->online().size(), "CPU")));
  }
  const Status status = RunNode(options, *std::move(setup));
  return status.ok() ? kExitOk : Fail(status);
}

}  // namespace resmgr
