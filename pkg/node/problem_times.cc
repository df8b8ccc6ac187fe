// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/problem_times.h"

namespace resmgr {

std::vector<Problem> ProblemTimes::Completed(std::vector<Problem> problems, Time now) {
  std::map<Key, Time> listed;
  for (Problem& problem : problems) {
    if (problem.since != Time()) continue;
    Key key{problem.kind, problem.objects.empty() ? std::vector{problem.message} : problem.objects};
    const auto known = since_.find(key);
    problem.since = known == since_.end() ? now : known->second;
    listed.emplace(std::move(key), problem.since);
  }
  since_ = std::move(listed);
  return problems;
}

}  // namespace resmgr
