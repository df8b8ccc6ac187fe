// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "policies/balloons/balloon_book.h"

namespace resmgr {

// Containers of one balloon, by the CPUs on which they run.
struct SeenBalloon {
  CpuSet whole;                // of those that do not hide threads; empty: there are none
  CpuSet threads;              // of those that do; empty: there are none
  std::map<int, int> types{};  // the number of containers of each type
  std::vector<int> needed{};   // by type: the CPUs that such a balloon needs, without components

  CpuSet all() const { return whole | threads; }
};

// Balloons that show containers the CPUs on which they run.
struct BalloonExplanation {
  struct Found {
    int type = 0;
    CpuSet own;
    CpuSet borrowed;
  };
  std::vector<Found> balloons;  // in the order of those that were seen
  CpuSet empty;                 // the CPUs of balloons without containers
};

// Searches for types and CPUs of balloons by which all containers see what they do, beside the
// balloons that `book` has. Balloons of the types of their containers and of the size that these
// need come first. Each explanation is offered to `accept` until that takes one. The search ends
// after a fixed number of steps. False: none was taken. Pure.
bool ExplainCpus(const BalloonBook& book, const std::vector<SeenBalloon>& seen,
                 const std::function<bool(const BalloonExplanation&)>& accept);

}  // namespace resmgr
