// SPDX-License-Identifier: Apache-2.0
#include "test/bench/contrasts.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::bench {
namespace {

constexpr size_t kBlocks = 16;

// The second daemon costs `processes` times as much as the first one, and `on` times more whichever
// is on; `drift` times more with each block.
std::vector<double> Ratios(double on, double processes, double drift = 1) {
  std::vector<double> ratios;
  for (size_t block = 0; block < kBlocks; ++block)
    ratios.push_back(processes * (SecondIsOn(block) ? on : 1 / on) *
                     std::pow(drift, static_cast<double>(block)));
  return ratios;
}

TEST(ContrastsTest, RolesAreEquallyOftenThoseOfEachDaemon) {
  size_t on = 0;
  for (size_t block = 0; block < kBlocks; ++block)
    on += SecondIsOn(block) ? 1 : 0;
  EXPECT_EQ(on, kBlocks / 2);
  EXPECT_FALSE(SecondIsOn(0));
  EXPECT_TRUE(SecondIsOn(1));
  EXPECT_TRUE(SecondIsOn(2));
  EXPECT_FALSE(SecondIsOn(3));
}

TEST(ContrastsTest, TheRolesEffectIsToldApartFromThatOfTheProcesses) {
  const Crossover result = Compare(Ratios(1.03, 1.2));
  EXPECT_NEAR(result.ratio, 1.03, 1e-9);
  EXPECT_NEAR(result.processes, 1.2, 1e-9);
  EXPECT_NEAR(result.low, 1.03, 1e-9) << "there is no noise";
  EXPECT_NEAR(result.high, 1.03, 1e-9);
  EXPECT_EQ(result.pretended.size(), kBlocks - 2);
}

TEST(ContrastsTest, ASlowDriftChangesNothingButTheInterval) {
  const Crossover result = Compare(Ratios(1.03, 1, 1.01));
  EXPECT_NEAR(result.ratio, 1.03, 1e-9);
  EXPECT_LT(result.low, 1.02);
  EXPECT_GT(result.high, 1.04);
}

TEST(ContrastsTest, TheIntervalHoldsTheTruthAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 0.05);
  int within = 0;
  constexpr int kRuns = 4000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> ratios = Ratios(1.005, 0.97);
    for (double& ratio : ratios)
      ratio *= std::exp(noise(random));
    const Crossover result = Compare(ratios);
    within += result.low <= 1.005 && 1.005 <= result.high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(within) / kRuns, 0.95, 0.015);
}

}  // namespace
}  // namespace resmgr::bench
