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

}  // namespace resmgr
