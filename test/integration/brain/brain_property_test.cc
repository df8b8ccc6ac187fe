// SPDX-License-Identifier: Apache-2.0
// The invariants of pkg/ARCHITECTURE.md over random lives of nodes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"
#include "test/integration/brain/world.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

constexpr int kSteps = 400;

struct Case {
  const char* name;
  Machine (*machine)();
  const char* reserved;
  const char* section;
};

Machine WithFlags(const Machine& machine, std::string_view isolated, std::string_view offline) {
  Machine::Parts parts{
      .cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed()};
  const CpuSet off = Cpus(offline);
  for (Cpu& cpu : parts.cpus) {
    cpu.isolated = Cpus(isolated).Contains(cpu.id);
    if (!off.Contains(cpu.id)) continue;
    cpu = Cpu{.id = cpu.id};
  }
  for (NumaNode& node : parts.nodes)
    node.cpus -= off;
  parts.allowed -= off;
  return MakeMachine(std::move(parts));
}

const std::vector<Case>& Cases() {
  static const auto* const kCases = new std::vector<Case>{
      {"S1Ht", S1Ht, "0", ""},
      {"S1HtStrict", S1Ht, "0,4", "{Options: {strict-cpu-reservation: true}}"},
      {"S1HtFullCores", S1Ht, "0", "{Options: {full-pcpus-only: true, cpu-quota: keep}}"},
      {"S1HtNoReservation", S1Ht, "", ""},
      {"S2Ht", S2Ht, "0", ""},
      {"S2NoHtSpread", S2NoHt, "7", "{Options: {distribute-cpus-across-cores: true}}"},
      {"M80", M80, "0,40", ""},
      {"M80AcrossNuma", M80, "0", "{Options: {distribute-cpus-across-numa: true}}"},
      {"F80", F80, "79", ""},
      {"L256", L256, "0,128", ""},
      {"Q288", Q288, "0-3", ""},
      {"U16Uncore", U16, "0", "{Options: {prefer-align-cpus-by-uncorecache: true}}"},
      {"U16Smt", U16Smt, "0", ""},
      {"Hybrid", Hybrid, "7", ""},
      {"EightPackages",
       [] { return MakeMachine({.packages = 8, .nodes = 1, .cores = 4, .threads = 2}); }, "0", ""},
      {"FourThreads", [] { return MakeMachine({.packages = 2, .cores = 3, .threads = 4}); }, "0",
       ""},
      {"Isolated", [] { return WithFlags(S1Ht(), "2-3,6-7", ""); }, "0", ""},
      {"IsolatedRelaxed", [] { return WithFlags(M80(), "10-19,50-59", ""); }, "0",
       "{RelaxedIsolation: true}"},
      {"Offline", [] { return WithFlags(S2Ht(), "", "3,6,10"); }, "0", ""},
  };
  return *kCases;
}

class BrainPropertyTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { SetLogLevel(LogLevel::kError); }

  static World::Setup TheSetup() {
    const Case& param = GetParam();
    return {param.machine(), Cpus(param.reserved), param.section};
  }
};

uint64_t SeedOf(int round) {
  const char* const given = std::getenv("RESMGR_SEED");
  const auto seed = given == nullptr ? std::nullopt : ParseUint(given);
  return seed.value_or(20'240'000) + static_cast<uint64_t>(round);
}

TEST_P(BrainPropertyTest, InvariantsHoldThroughARandomLife) {
  size_t started = 0;
  for (int round = 0; round < 3; ++round) {
    const uint64_t seed = SeedOf(round);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    World world(TheSetup(), seed);
    for (int step = 0; step < kSteps; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      world.Step();
      world.Check();
      if (step % 100 == 99) {
        world.Settle();
        world.CheckSettled();
      }
      ASSERT_FALSE(HasFailure()) << world.Journal();
    }
    started += world.started();
    world.End();
    world.CheckSettled();
    ASSERT_FALSE(HasFailure()) << world.Journal();
  }
  EXPECT_GT(started, 10u) << "too quiet to prove anything";
}

TEST_P(BrainPropertyTest, TheSameInputsGiveTheSamePlacements) {
  const auto live = [] {
    World world(TheSetup(), SeedOf(7));
    for (int step = 0; step < kSteps; ++step)
      world.Step();
    std::vector<std::string> life = world.history();
    life.push_back(world.Journal());
    return life;
  };
  const std::vector<std::string> first = live();
  EXPECT_FALSE(first.back().empty());
  EXPECT_EQ(live(), first);
}

INSTANTIATE_TEST_SUITE_P(Machines, BrainPropertyTest, testing::ValuesIn(Cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace resmgr::test
