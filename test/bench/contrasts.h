// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace resmgr::bench {

// The result of a comparison of two daemons that exchange their roles from block to block. All
// values are ratios: 1.01 means one percent more.
struct Crossover {
  double ratio = 1;  // the role that is on, relative to the role that is off
  // With 95 % confidence the ratio is in between.
  double low = 1;
  double high = 1;
  double processes = 1;  // of the second daemon to the first one, in whichever roles
  // Ratios of roles that were only pretended, and so should be 1: one for each other pattern that
  // has nothing in common with the real one. Lowest first.
  std::vector<double> pretended;
};

// Whether the second daemon, not the first one, is on in this block. The roles' order is that of
// Thue and Morse (off on on off, on off off on, ...), so that what changes slowly cancels out.
bool SecondIsOn(size_t block);

// `ratios` are those of the second daemon to the first one in each block; their number is a power
// of two, at least eight. The noise is estimated by the deviations of the pretended ratios from 1.
Crossover Compare(const std::vector<double>& ratios);

}  // namespace resmgr::bench
