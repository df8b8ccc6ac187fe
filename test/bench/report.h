// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/bench/measure.h"

namespace resmgr::bench {

// Figures measured once per process instead of per call.
struct ProcessFigures {
  double byte_relay_start_ms = 0;
  double daemon_start_ms = 0;
  int64_t byte_relay_peak_kib = 0;
  int64_t daemon_peak_kib = 0;

  static constexpr double kStartLimitMs = 30;
  // 14 MiB of it are pages of the program and its libraries.
  static constexpr int64_t kPeakLimitKib = int64_t{24} * 1024;
};

// A table for people; every figure that has a target is marked. Where there is another daemon, a
// second table compares with it.
std::string Table(const std::vector<Summary>& summaries, const ProcessFigures& figures);
// One JSON document with the same figures.
std::string Json(const std::vector<Summary>& summaries, const ProcessFigures& figures);
// Whether every target is met.
bool AllMet(const std::vector<Summary>& summaries, const ProcessFigures& figures);

}  // namespace resmgr::bench
