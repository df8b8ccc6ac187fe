// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/problems_json.h"

#include "pkg/admin/rfc3339.h"

namespace resmgr {

nlohmann::ordered_json ProblemsJson(const std::vector<Problem>& problems) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Problem& problem : problems) {
    list.push_back({{"kind", problem.kind},
                    {"since", Rfc3339(problem.since)},
                    {"message", problem.message},
                    {"objects", problem.objects},
                    {"next", problem.next}});
  }
  return list;
}

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
