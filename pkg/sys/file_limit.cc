// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/file_limit.h"

#include <algorithm>

#include <sys/resource.h>

namespace resmgr {

namespace {

// Far more than a daemon of a node needs: libraries that go through all possible files stay quick.
constexpr rlim_t kEnough = 65536;
constexpr size_t kUsual = 1024;

}  // namespace

size_t RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUsual;
  const rlim_t wanted = std::min(limit.rlim_max, std::max(limit.rlim_cur, kEnough));
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = wanted;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? wanted : before;
}

}  // namespace resmgr
