// SPDX-License-Identifier: Apache-2.0
#include "test/bench/sampling_cost.h"

#include <array>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "test/bench/figures.h"
#include "test/bench/measure.h"
#include "test/bench/order.h"
#include "test/bench/process_stats.h"

namespace resmgr::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kDaemons[] = {Testbed::kDaemon, Testbed::kOther};

// One block's figures about one kind of call, by daemon.
struct Block {
  std::array<std::vector<double>, 2> p50;
  std::array<double, 2> cpu{};  // of the calls alone
  std::array<double, 2> cpu_of_all{};

  // Medians of pairs, so that what slows both down for a while cancels out.
  double P50Ratio() const {
    std::vector<double> ratios;
    for (size_t i = 0; i < p50[0].size(); ++i)
      ratios.push_back(p50[1][i] / p50[0][i]);
    return Median(std::move(ratios));
  }
  // Sums: most bursts meet no sample, and one that does has to count.
  double CpuRatio() const { return cpu[1] / cpu[0]; }
  double CpuOfAllRatio() const { return cpu_of_all[1] / cpu_of_all[0]; }
};

StatusOr<std::vector<Block>> RunBlock(Testbed& bed, const std::vector<Scenario>& scenarios,
                                      std::chrono::nanoseconds time, int* number) {
  std::vector<Block> blocks(scenarios.size());
  const Clock::time_point end = Clock::now() + time;
  for (size_t round = 0; round == 0 || Clock::now() < end; ++round) {
    for (size_t s = 0; s < scenarios.size(); ++s) {
      for (const size_t daemon : OrderOf(round, std::size(kDaemons))) {
        RESMGR_ASSIGN_OR_RETURN(const Sample sample,
                                RunBurst(bed.at(kDaemons[daemon]), scenarios[s], number));
        blocks[s].p50[daemon].push_back(sample.p50);
        blocks[s].cpu[daemon] += sample.cpu_of_calls;
        blocks[s].cpu_of_all[daemon] += sample.cpu;
      }
    }
  }
  return blocks;
}

Status SwitchRoles(Testbed& bed, const SampledContainers& sampled, size_t block) {
  for (size_t daemon = 0; daemon < std::size(kDaemons); ++daemon) {
    const size_t index = kDaemons[daemon];
    const bool on = (daemon == 1) == SecondIsOn(block);
    RESMGR_RETURN_IF_ERROR(sampled.Switch(bed.at(index), index, on));
  }
  return OkStatus();
}

// The times are those of the daemon that does not sample.
SamplingCost CostOf(const Scenario& scenario, const std::vector<Block>& blocks) {
  std::vector<double> p50_ratios;
  std::vector<double> cpu_ratios;
  std::vector<double> all_ratios;
  std::vector<double> p50;
  std::vector<double> cpu;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const size_t off = SecondIsOn(i) ? 0 : 1;
    const std::vector<double>& bursts = blocks[i].p50[off];
    p50.push_back(Median(bursts));
    cpu.push_back(blocks[i].cpu[off] / static_cast<double>(bursts.size()));
    p50_ratios.push_back(blocks[i].P50Ratio());
    cpu_ratios.push_back(blocks[i].CpuRatio());
    all_ratios.push_back(blocks[i].CpuOfAllRatio());
  }
  return {.name = scenario.name,
          .concurrency = scenario.concurrency,
          .p50 = Median(std::move(p50)),
          .cpu = Median(std::move(cpu)),
          .p50_with = Compare(p50_ratios),
          .cpu_with = Compare(cpu_ratios),
          .cpu_of_all = Compare(all_ratios).ratio};
}

// Geometric means over all kinds of calls, in each block.
std::vector<double> MeansOf(const std::vector<std::vector<Block>>& kinds,
                            double (Block::*ratio)() const) {
  std::vector<double> means;
  for (size_t i = 0; i < kinds.front().size(); ++i) {
    double sum = 0;
    for (const std::vector<Block>& blocks : kinds)
      sum += std::log((blocks[i].*ratio)());
    means.push_back(std::exp(sum / static_cast<double>(kinds.size())));
  }
  return means;
}

SamplingCost CostOfAll(const std::vector<std::vector<Block>>& kinds) {
  return {.name = "all",
          .p50_with = Compare(MeansOf(kinds, &Block::P50Ratio)),
          .cpu_with = Compare(MeansOf(kinds, &Block::CpuRatio)),
          .cpu_of_all = Compare(MeansOf(kinds, &Block::CpuOfAllRatio)).ratio};
}

// CPU time of threads that ended; samples are taken on such threads.
std::chrono::nanoseconds EndedThreads(const Candidate& candidate) {
  return CpuTime(candidate.process->pid()) - CpuTimeWithout(candidate.process->pid(), "usage");
}

// The part of one CPU that the samples of one block take: of the daemon that is on, less the same
// of the other one.
class OwnCost {
 public:
  OwnCost(Testbed& bed, size_t block)
      : on_(bed.at(kDaemons[SecondIsOn(block) ? 1 : 0])),
        off_(bed.at(kDaemons[SecondIsOn(block) ? 0 : 1])) {}

  double Percent() const {
    const auto time = EndedThreads(on_) - on_before_ - (EndedThreads(off_) - off_before_);
    return 100 * std::chrono::duration<double>(time) / (Clock::now() - begun_);
  }

 private:
  const Candidate& on_;
  const Candidate& off_;
  std::chrono::nanoseconds on_before_ = EndedThreads(on_);
  std::chrono::nanoseconds off_before_ = EndedThreads(off_);
  Clock::time_point begun_ = Clock::now();
};

std::string Interval(const Crossover& result) {
  return fmt::format("{:.4f} [{:.4f}, {:.4f}]", result.ratio, result.low, result.high);
}

std::string Pretended(const Crossover& result) {
  return fmt::format("{:.3f} to {:.3f}", result.pretended.front(), result.pretended.back());
}

const char* Verdict(const SamplingCost& cost) {
  if (cost.Met()) return "ok";
  const bool missed =
      cost.p50_with.low > SamplingCost::kLimit || cost.cpu_with.low > SamplingCost::kLimit;
  return missed ? "NO" : "open";
}

}  // namespace

StatusOr<SamplingCosts> MeasureSampling(Testbed& bed, const SampledContainers& sampled,
                                        const std::vector<Scenario>& scenarios, size_t blocks) {
  constexpr auto kBlock = 2 * SampledContainers::kInterval + std::chrono::seconds(1);
  std::vector<std::vector<Block>> kinds(scenarios.size());
  SamplingCosts costs;
  int number = 0;
  // Warms everything up.
  RESMGR_RETURN_IF_ERROR(RunBlock(bed, scenarios, SampledContainers::kInterval, &number).status());
  for (size_t block = 0; block < blocks; ++block) {
    RESMGR_RETURN_IF_ERROR(SwitchRoles(bed, sampled, block));
    const OwnCost own(bed, block);
    RESMGR_ASSIGN_OR_RETURN(auto results, RunBlock(bed, scenarios, kBlock, &number));
    costs.own += own.Percent() / static_cast<double>(blocks);
    for (size_t s = 0; s < scenarios.size(); ++s)
      kinds[s].push_back(std::move(results[s]));
  }
  for (size_t s = 0; s < scenarios.size(); ++s)
    costs.calls.push_back(CostOf(scenarios[s], kinds[s]));
  costs.calls.push_back(CostOfAll(kinds));
  return costs;
}

std::string SamplingTable(const SamplingCosts& costs) {
  std::string text = fmt::format(
      "{:<21}{:>3}  {:>7}  {:<25}  {:<14}  {:>7}  {:<25}  {:<14}  {:>11}  {:>9}  <={:.2f}\n",
      "call", "c", "p50 us", "p50 with/without, 95 %", "A/A", "CPU us", "CPU with/without, 95 %",
      "A/A", "2nd/1st", "+ samples", SamplingCost::kLimit);
  for (const SamplingCost& cost : costs.calls) {
    const auto shown = [&cost](double value, int digits) {
      return cost.concurrency == 0 ? "-" : fmt::format("{:.{}f}", value, digits);
    };
    text += fmt::format(
        "{:<21}{:>3}  {:>7}  {:<25}  {:<14}  {:>7}  {:<25}  {:<14}  {:.3f} {:.3f}  {:>9.4f}  {}\n",
        cost.name, shown(cost.concurrency, 0), shown(cost.p50, 0), Interval(cost.p50_with),
        Pretended(cost.p50_with), shown(cost.cpu, 1), Interval(cost.cpu_with),
        Pretended(cost.cpu_with), cost.p50_with.processes, cost.cpu_with.processes, cost.cpu_of_all,
        Verdict(cost));
  }
  return text + fmt::format("samples themselves: {:.3f} % of one CPU  <={:.1f} {}\n", costs.own,
                            SamplingCosts::kOwnLimit,
                            costs.own <= SamplingCosts::kOwnLimit ? "ok" : "NO");
}

}  // namespace resmgr::bench
