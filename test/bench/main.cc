// SPDX-License-Identifier: Apache-2.0
// resmgr-bench: what cri-resmgr costs between a client and a runtime (README.md beside this file).
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/parse.h"
#include "test/bench/canned_backend.h"
#include "test/bench/hostile.h"
#include "test/bench/measure.h"
#include "test/bench/pin.h"
#include "test/bench/process_stats.h"
#include "test/bench/report.h"
#include "test/bench/samples.h"
#include "test/bench/sampling_cost.h"
#include "test/bench/scenario.h"
#include "test/bench/soak.h"

namespace resmgr::bench {
namespace {

constexpr int kRounds = 21;
constexpr int kQuickRounds = 5;
constexpr double kQuickFactor = 0.5;
constexpr size_t kBlocks = 16;  // of daemons that exchange their roles
constexpr size_t kQuickBlocks = 8;

struct Flags {
  std::string backend;  // serve as the backend on this socket
  DaemonCommand daemon{RESMGR_BINARY_DIR "/cmd/cri-resmgr/cri-resmgr"};
  std::optional<DaemonCommand> other;  // to compare with
  std::string only;                    // part of a scenario's name
  int cpu = 0;                         // -1: do not pin
  int rounds = kRounds;
  double factor = 1;
  int64_t soak = 0;
  int samples = 0;  // containers whose use one of two daemons samples
  size_t blocks = kBlocks;
  bool hostile = false;
  bool json = false;
  bool check = false;
};

constexpr char kUsage[] =
    "usage: resmgr-bench [--quick] [--json] [--check] [--rounds N] [--only PART-OF-NAME]\n"
    "                    [--cpu N (-1: not pinned)] [--daemon COMMAND] [--other COMMAND]\n"
    "                    [--samples CONTAINERS] [--soak CALLS] [--hostile]\n"
    "COMMAND: a cri-resmgr and more flags for it, separated by spaces.\n";

DaemonCommand ToCommand(std::string_view text) {
  DaemonCommand command;
  for (const std::string_view word : Split(text, ' ')) {
    if (command.program.empty()) {
      command.program = word;
    } else if (!word.empty()) {
      command.flags.emplace_back(word);
    }
  }
  return command;
}

bool Parse(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--quick") {
      flags->rounds = kQuickRounds;
      flags->factor = kQuickFactor;
      flags->blocks = kQuickBlocks;
      continue;
    }
    if (flag == "--json" || flag == "--check") {
      (flag == "--json" ? flags->json : flags->check) = true;
      continue;
    }
    if (flag == "--hostile") {
      flags->hostile = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string value = argv[i];
    const auto number = ParseInt(value);
    if (flag == "--backend") {
      flags->backend = value;
    } else if (flag == "--daemon") {
      flags->daemon = ToCommand(value);
    } else if (flag == "--other") {
      flags->other = ToCommand(value);
    } else if (flag == "--only") {
      flags->only = value;
    } else if (flag == "--cpu" && number) {
      flags->cpu = static_cast<int>(*number);
    } else if (flag == "--rounds" && number && *number > 0) {
      flags->rounds = static_cast<int>(*number);
    } else if (flag == "--samples" && number && *number > 0 && *number <= 10'000) {
      flags->samples = static_cast<int>(*number);
    } else if (flag == "--soak" && number && *number > 0) {
      flags->soak = *number;
    } else {
      return false;
    }
  }
  return true;
}

int RunSoak(Testbed& bed, int64_t calls) {
  const auto result = Soak(bed, calls);
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", Describe(result.status()).c_str());
    return 2;
  }
  std::printf(
      "%lld calls in %.1f s, %lld errors%s%s, RSS %lld KiB after a tenth, %lld KiB at the end\n",
      static_cast<long long>(result->calls), result->seconds,
      static_cast<long long>(result->errors), result->errors > 0 ? ": " : "",
      result->first_error.c_str(), static_cast<long long>(result->rss_early_kib),
      static_cast<long long>(result->rss_late_kib));
  return result->errors == 0 ? 0 : 1;
}

StatusOr<ProcessFigures> MeasureProcesses(Testbed& bed) {
  ProcessFigures figures;
  // Before the start-up times: the peak belongs to the calls that were just made.
  figures.byte_relay_peak_kib = PeakRssKib(bed.at(Testbed::kByteRelay).process->pid());
  figures.daemon_peak_kib = PeakRssKib(bed.at(Testbed::kDaemon).process->pid());
  const auto milliseconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  RESMGR_ASSIGN_OR_RETURN(const auto relay, bed.StartUpTime(Testbed::kByteRelay));
  RESMGR_ASSIGN_OR_RETURN(const auto daemon, bed.StartUpTime(Testbed::kDaemon));
  figures.byte_relay_start_ms = milliseconds(relay);
  figures.daemon_start_ms = milliseconds(daemon);
  return figures;
}

std::vector<Scenario> ChosenScenarios(const Flags& flags) {
  std::vector<Scenario> scenarios = AllScenarios(flags.factor);
  std::erase_if(scenarios, [&](const Scenario& scenario) {
    return scenario.name.find(flags.only) == std::string::npos;
  });
  return scenarios;
}

Status RunSamples(Testbed& bed, const Flags& flags, const SampledContainers& sampled, bool* met) {
  std::vector<Scenario> scenarios = ChosenScenarios(flags);
  // Small calls notice the most.
  std::erase_if(scenarios, [](const Scenario& scenario) { return !scenario.added_limit; });
  if (scenarios.empty()) return InvalidArgument("no call's name contains '{}'", flags.only);
  for (const size_t i : {Testbed::kDaemon, Testbed::kOther}) {
    RESMGR_RETURN_IF_ERROR(RunPod(*bed.at(i).client));
    RESMGR_RETURN_IF_ERROR(sampled.Run(*bed.at(i).client));
  }
  RESMGR_ASSIGN_OR_RETURN(const auto costs, MeasureSampling(bed, sampled, scenarios, flags.blocks));
  std::fputs(SamplingTable(costs).c_str(), stdout);
  const auto peak = [&bed](size_t index) {
    return static_cast<double>(PeakRssKib(bed.at(index).process->pid())) / 1024.0;
  };
  std::printf("peak RSS of the two daemons with %d containers: %.1f and %.1f MiB\n",
              sampled.containers(), peak(Testbed::kDaemon), peak(Testbed::kOther));
  *met = costs.Met();
  return OkStatus();
}

Status RunBench(Testbed& bed, const Flags& flags, bool* met) {
  const std::vector<Scenario> scenarios = ChosenScenarios(flags);
  for (size_t i = Testbed::kDaemon; i < bed.candidates(); ++i)
    RESMGR_RETURN_IF_ERROR(RunPod(*bed.at(i).client));
  RESMGR_ASSIGN_OR_RETURN(const auto summaries, Measure(bed, scenarios, flags.rounds));
  RESMGR_ASSIGN_OR_RETURN(const auto figures, MeasureProcesses(bed));
  std::fputs((flags.json ? Json(summaries, figures) : Table(summaries, figures)).c_str(), stdout);
  *met = AllMet(summaries, figures);
  return OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  if (!Parse(argc, argv, &flags)) {
    std::fputs(kUsage, stderr);
    return 1;
  }
  if (!flags.backend.empty()) return CannedBackend().Run(flags.backend);
  if (flags.hostile) {
    const Status shown = RunHostile(flags.daemon.program);
    if (!shown.ok()) std::fprintf(stderr, "%s\n", Describe(shown).c_str());
    return shown.ok() ? 0 : 2;
  }
  if (!Pin(flags.cpu)) {
    std::fprintf(stderr, "cannot run on CPU %d\n", flags.cpu);
    return 2;
  }
  std::optional<SampledContainers> sampled;
  if (flags.samples > 0) {
    auto made = SampledContainers::Make(flags.samples);
    if (!made.ok()) {
      std::fprintf(stderr, "%s\n", Describe(made.status()).c_str());
      return 2;
    }
    sampled.emplace(*std::move(made));
    flags.other = sampled->Of(flags.daemon, Testbed::kOther);
    flags.daemon = sampled->Of(flags.daemon, Testbed::kDaemon);
  }
  const auto bed = Testbed::Start(flags.daemon, flags.other);
  if (!bed.ok()) {
    std::fprintf(stderr, "%s\n", Describe(bed.status()).c_str());
    return 2;
  }
  if (flags.soak > 0) return RunSoak(**bed, flags.soak);
  bool met = false;
  if (const Status status =
          sampled ? RunSamples(**bed, flags, *sampled, &met) : RunBench(**bed, flags, &met);
      !status.ok()) {
    std::fprintf(stderr, "%s\n", Describe(status).c_str());
    return 2;
  }
  return met || !flags.check ? 0 : 1;
}

}  // namespace
}  // namespace resmgr::bench

int main(int argc, char** argv) {
  return resmgr::bench::Main(argc, argv);
}
