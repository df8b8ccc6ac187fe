// SPDX-License-Identifier: Apache-2.0
#include "webhook/standing.h"

#include <tuple>

namespace resmgr::webhook {

bool LessUseful(const Standing& a, const Standing& b) {
  const auto rank = [](const Standing& standing) {
    if (!standing.reviewed) return 0;
    return standing.waiting ? 1 : 2;
  };
  return std::tuple(rank(a), a.proven_at) < std::tuple(rank(b), b.proven_at);
}

}  // namespace resmgr::webhook
