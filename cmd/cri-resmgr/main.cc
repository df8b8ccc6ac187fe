// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/cri-resmgr/exit_code.h"
#include "cmd/cri-resmgr/flags.h"
#include "cmd/cri-resmgr/koord_flags.h"
#include "cmd/cri-resmgr/wiring.h"
#include "pkg/api/protobuf_log.h"
#include "pkg/base/count_text.h"
#include "pkg/base/parse.h"
#include "pkg/config/config_page.h"
#include "pkg/config/print_config.h"
#include "pkg/node/policy_setup.h"
#include "pkg/node/run_node.h"
#include "pkg/node/startup.h"
#include "pkg/sys/inherited_sockets.h"
#include "policies/builtin_policies.h"

namespace resmgr {
namespace {

int Fail(const Status& status) {
  fmt::print(stderr, "cri-resmgr: {}\n", Message(status));
  return ExitCodeOf(status);
}

int ListPolicies(const PolicyRegistry& policies) {
  for (const PolicyFactory& factory : policies.factories()) {
    fmt::print("{:<16} {}\n", factory.name, factory.description);
  }
  return kExitOk;
}

// A configuration that was delivered to an earlier run has precedence over the file's.
int PrintConfigInForce(const NodeOptions& options) {
  const std::optional<KeptConfig> kept = LoadKeptConfig(options);
  if (kept && kept->config.ok()) {
    fmt::print("# From {}, as it was delivered to an earlier run; -reset-config forgets it.\n",
               Printable(kept->source));
  }
  const Config& config = kept && kept->config.ok() ? *kept->config : options.config;
  fmt::print("{}{}", PrintConfig(WithDefaults(config, options.policies)),
             OtherDefaults(config, options.policies));
  return kExitOk;
}

// The arguments, translated into flags of cri-resmgr.
StatusOr<KoordCommandLine> ArgumentsOf(int argc, const char* const* argv) {
  if (argc > 0 && IsKoordProgram(argv[0])) return TranslateKoordFlags(argc, argv);
  return KoordCommandLine{.arguments = {argv, argv + argc}, .warnings = {}};
}

int Main(int argc, const char* const* argv) {
  // Writing to a closed peer or reader must be an error of the write, not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  // Before any file is opened, since inherited sockets are known by their descriptor numbers.
  InheritedSockets::Instance().AddFromEnvironment();
  SendProtobufLogToOurs();
  const PolicyRegistry policies = BuiltinPolicies();
  const auto line = ArgumentsOf(argc, argv);
  if (!line.ok()) return Fail(line.status());
  std::vector<const char*> arguments;
  for (const std::string& argument : line->arguments)
    arguments.push_back(argument.c_str());
  const auto flags =
      ParseFlags(static_cast<int>(arguments.size()), arguments.data(), ChecksWith(policies));
  if (!flags.ok()) return Fail(flags.status());
  if (!flags->help.empty()) {
    fmt::print("{}", flags->help);
    return kExitOk;
  }
  if (flags->version) {
    fmt::print("cri-resmgr {}\n", RESMGR_VERSION);
    return kExitOk;
  }
  if (flags->list_policies) return ListPolicies(policies);
  if (flags->print_schema) {
    fmt::print("{}", ConfigSchema(AllConfigKeys(ChecksWith(policies))));
    return kExitOk;
  }
  if (flags->print_config_page) {
    fmt::print("{}", ConfigManPage(AllConfigKeys(ChecksWith(policies))));
    return kExitOk;
  }
  const NodeOptions options = OptionsOf(*flags, policies);
  if (flags->print_config) return PrintConfigInForce(options);
  if (flags->reset_policy || flags->reset_config) {
    const Status status = Reset(
        options, {.placements = flags->reset_policy, .delivered_config = flags->reset_config});
    if (!status.ok()) return Fail(status);
    fmt::print("forgot {}{}{}\n", flags->reset_policy ? "the placements" : "",
               flags->reset_policy && flags->reset_config ? " and " : "",
               flags->reset_config ? "the delivered configuration" : "");
    return kExitOk;
  }
  auto setup = flags->check_config ? CheckOnly(options) : Prepare(options);
  if (!setup.ok()) return Fail(setup.status());
  setup->warnings.insert(setup->warnings.begin(), line->warnings.begin(), line->warnings.end());
  if (flags->check_config) {
    for (const std::string& warning : setup->warnings)
      fmt::print(stderr, "cri-resmgr: warning: {}\n", warning);
    fmt::print("the configuration is valid: policy {} on {}\n", flags->config.policy.active,
               CountText(setup->machine->online().size(), "CPU"));
    return kExitOk;
  }
  const Status status = RunNode(options, *std::move(setup));
  return status.ok() ? kExitOk : Fail(status);
}

}  // namespace
}  // namespace resmgr

int main(int argc, char** argv) {
  const int code = resmgr::Main(argc, argv);
  if (std::fflush(stdout) == 0) return code;
  fmt::print(stderr, "cri-resmgr: the output cannot be written\n");
  return code == resmgr::kExitOk ? resmgr::kExitEnvironment : code;
}
