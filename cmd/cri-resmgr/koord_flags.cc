// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr/koord_flags.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/cmdline/command_line.h"

namespace resmgr {
namespace {

constexpr std::string_view kKoordProgram = "koord-runtime-proxy";
constexpr const char* kEndpoint = "/var/run/koord-runtimeproxy/runtimeproxy.sock";
constexpr const char* kHookDirectory = "/etc/runtime/hookserver.d";
constexpr const char* kUseLevel = "use -logger-level and -logger-debug";
constexpr const char* kUseJournal =
    "the log goes to standard error, in lines as -logger-format says";

// The values of -backend-runtime-mode.
struct Backend {
  std::string_view name;
  const char* mode;      // value of -mode
  const char* endpoint;  // the flag for the runtime's socket
};
constexpr std::array<Backend, 2> kBackends = {
    {{"Containerd", "relay", "-runtime-socket"}, {"Docker", "docker", "-docker-socket"}}};

// A flag that exists here under another name, with the same values.
struct Renamed {
  std::string_view name;
  const char* ours;
};
constexpr std::array<Renamed, 4> kRenamed = {{{"koord-runtimeproxy-endpoint", "-relay-socket"},
                                              // The flag's name up to version 1.3, and in all
                                              // documents since.
                                              {"remote-image-service-endpoint", "-image-socket"},
                                              {"runtime-hook-server-key", "-hook-skip-key"},
                                              {"runtime-hook-server-val", "-hook-skip-value"}}};

// A flag of klog, which has no effect here.
struct Meaningless {
  std::string_view name;
  bool is_switch;  // may be given without a value
  const char* instead;
};
constexpr std::array<Meaningless, 13> kMeaningless = {{{"v", false, kUseLevel},
                                                       {"vmodule", false, kUseLevel},
                                                       {"stderrthreshold", false, kUseLevel},
                                                       {"log-backtrace-at", false, kUseLevel},
                                                       {"logtostderr", true, kUseJournal},
                                                       {"alsologtostderr", true, kUseJournal},
                                                       {"log-dir", false, kUseJournal},
                                                       {"log-file", false, kUseJournal},
                                                       {"log-file-max-size", false, kUseJournal},
                                                       {"one-output", true, kUseJournal},
                                                       {"skip-headers", true, kUseJournal},
                                                       {"skip-log-headers", true, kUseJournal},
                                                       {"add-dir-header", true, kUseJournal}}};

// Flags of cri-resmgr that name a configuration file.
constexpr std::array<std::string_view, 3> kConfigFlags = {"config", "force-config",
                                                          "fallback-config"};

template <typename Table>
auto Find(const Table& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, [](const auto& entry) { return entry.name; });
  return found == table.end() ? nullptr : &*found;
}

// One argument: "--name=value", or one that is not a flag.
struct Argument {
  std::string name{};  // klog's names may have _ or -
  std::optional<std::string> value{};
};

Argument Parse(std::string_view text) {
  Argument argument;
  const size_t begin = text.find_first_not_of('-');
  if (begin == 0 || begin == std::string_view::npos || begin > 2) return argument;
  const size_t end = text.find('=');
  argument.name = text.substr(begin, end == std::string_view::npos ? end : end - begin);
  std::ranges::replace(argument.name, '_', '-');
  if (end != std::string_view::npos) argument.value = text.substr(end + 1);
  return argument;
}

// The help, in the format that the argument ("-help=man") says.
StatusOr<std::string> HelpOf(const std::string& argument) {
  CommandLine line(kKoordProgram,
                   "Asks Koordinator's hook servers about the calls of a kubelet: cri-resmgr with "
                   "the flags of\nkoord-runtime-proxy, which it replaces.");
  const CommandLine::Setter ignore = [](std::string_view) { return OkStatus(); };
  for (const Renamed& flag : kRenamed) {
    const char* const by_default = &flag == kRenamed.data() ? kEndpoint : "";
    line.Flag(flag.name, "VALUE", fmt::format("The same as {}.", flag.ours), by_default, ignore);
  }
  line.Flag("remote-runtime-service-endpoint", "PATH",
            "The same as -runtime-socket or, in front of dockerd, -docker-socket.", "", ignore);
  line.Flag("backend-runtime-mode", "Containerd|Docker",
            "Docker: in front of dockerd, as with -mode docker.", kBackends[0].name, ignore);
  line.Group("Flags without effect");
  for (const Meaningless& flag : kMeaningless) {
    line.Flag(flag.name, "VALUE", fmt::format("Instead: {}.", flag.instead), "", ignore);
    if (flag.is_switch) line.Bare(flag.name, "true");
  }
  line.Section(
      "Other flags",
      fmt::format("All flags of cri-resmgr are taken, too: see `cri-resmgr -help`. Unless "
                  "one of them names a configuration,\n-policy is null and -hook-dir is {}.",
                  kHookDirectory));
  const std::array<const char*, 2> argv = {kKoordProgram.data(), argument.c_str()};
  RESMGR_RETURN_IF_ERROR(line.Parse(static_cast<int>(argv.size()), argv.data()));
  return line.Help();
}

class Translation {
 public:
  Translation(int argc, const char* const* argv) : arguments_(argv + 1, argv + argc) {}

  StatusOr<KoordCommandLine> Run(const char* program) {
    while (next_ < arguments_.size() && help_.empty())
      RESMGR_RETURN_IF_ERROR(Take(arguments_[next_++]));
    if (!help_.empty()) return KoordCommandLine{.help = std::move(help_)};
    if (runtime_) Say(backend_->endpoint, *runtime_);
    Say("-mode", backend_->mode);
    KoordCommandLine line{.arguments = {program, "-relay-socket", kEndpoint},
                          .warnings = std::move(warnings_)};
    // With a configuration file of cri-resmgr, that file sets the policy and the hook servers.
    if (!own_configuration_) {
      line.arguments.insert(line.arguments.end(), {"-policy", "null", "-hook-dir", kHookDirectory});
    }
    // The last of repeated flags counts, so these follow the defaults.
    line.arguments.insert(line.arguments.end(), translated_.begin(), translated_.end());
    line.arguments.insert(line.arguments.end(), passed_.begin(), passed_.end());
    return line;
  }

 private:
  Status Take(const std::string& text) {
    Argument argument = Parse(text);
    if (argument.name == "help" || argument.name == "h") {
      RESMGR_ASSIGN_OR_RETURN(help_, HelpOf(text));
    } else if (const Renamed* const renamed = Find(kRenamed, argument.name)) {
      RESMGR_ASSIGN_OR_RETURN(const std::string value, ValueOf(argument));
      Say(renamed->ours, value);
    } else if (argument.name == "remote-runtime-service-endpoint") {
      RESMGR_ASSIGN_OR_RETURN(runtime_, ValueOf(argument));
    } else if (argument.name == "backend-runtime-mode") {
      return TakeBackend(argument);
    } else if (const Meaningless* const meaningless = Find(kMeaningless, argument.name)) {
      if (!meaningless->is_switch) RESMGR_RETURN_IF_ERROR(ValueOf(argument).status());
      warnings_.push_back(fmt::format("-{} of {} has no effect: {}", argument.name, kKoordProgram,
                                      meaningless->instead));
    } else {
      own_configuration_ |= std::ranges::find(kConfigFlags, argument.name) != kConfigFlags.end();
      passed_.push_back(text);
    }
    return OkStatus();
  }

  Status TakeBackend(Argument& argument) {
    RESMGR_ASSIGN_OR_RETURN(const std::string name, ValueOf(argument));
    backend_ = Find(kBackends, name);
    if (backend_ != nullptr) return OkStatus();
    return InvalidArgument("-backend-runtime-mode: \"{}\" is not one of Containerd, Docker",
                           Printable(name));
  }

  StatusOr<std::string> ValueOf(const Argument& argument) {
    if (argument.value) return *argument.value;
    if (next_ == arguments_.size()) return InvalidArgument("-{}: needs a value", argument.name);
    return arguments_[next_++];
  }

  void Say(std::string flag, std::string value) {
    translated_.push_back(std::move(flag));
    translated_.push_back(std::move(value));
  }

  const std::vector<std::string> arguments_;
  size_t next_ = 0;
  const Backend* backend_ = kBackends.data();
  std::optional<std::string> runtime_;
  std::string help_;
  bool own_configuration_ = false;
  std::vector<std::string> translated_;
  std::vector<std::string> passed_;
  std::vector<std::string> warnings_;
};

}  // namespace

bool IsKoordProgram(std::string_view program) {
  return program.substr(program.rfind('/') + 1) == kKoordProgram;
}

StatusOr<KoordCommandLine> TranslateKoordFlags(int argc, const char* const* argv) {
  return Translation(argc, argv).Run(argv[0]);
}

}  // namespace resmgr
