// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "policies/balloons/balloon_book.h"

namespace resmgr {

// Containers that seem to be in one balloon, with the CPUs on which they run.
struct SeenBalloon {
  CpuSet whole;                // CPUs seen by containers that see all threads; may be empty
  CpuSet threads;              // CPUs seen by containers that hide threads; may be empty
  std::map<int, int> types{};  // the number of containers of each type
  std::vector<int> needed{};   // for each type: CPUs that its balloon needs, without components

  CpuSet all() const { return whole | threads; }
};

// Balloons by which the containers see the CPUs on which they run.
struct BalloonExplanation {
  struct Found {
    int type = 0;
    CpuSet own;
    CpuSet borrowed;
  };
  std::vector<Found> balloons;  // in the order of the seen balloons
  CpuSet empty;                 // the CPUs of balloons without containers
};

// Searches for types and CPUs of balloons, beside those in `book`, by which all containers see the
// CPUs that they do see. Types of the balloon's containers, and the size that these need, are tried
// first. Each explanation is passed to `accept` until it returns true. The search ends after a
// fixed number of steps. False: no explanation was accepted. Pure.
bool ExplainCpus(const BalloonBook& book, const std::vector<SeenBalloon>& seen,
                 const std::function<bool(const BalloonExplanation&)>& accept);

}  // namespace resmgr
