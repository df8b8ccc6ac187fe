// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pkg/model/problem.h"

namespace resmgr {

// Remembers when each problem was listed first, for problems whose part does not know since when
// they are. Thread-compatible.
class ProblemTimes {
 public:
  using Time = std::chrono::system_clock::time_point;

  // The same, each with its time. A problem that is not listed is forgotten.
  std::vector<Problem> Completed(std::vector<Problem> problems,
                                 Time now = std::chrono::system_clock::now());

 private:
  // By kind and objects or, without these, the message, in which numbers may change.
  using Key = std::pair<std::string, std::vector<std::string>>;

  std::map<Key, Time> since_;
};

}  // namespace resmgr
