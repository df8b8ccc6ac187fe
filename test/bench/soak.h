// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pkg/base/status.h"
#include "test/bench/testbed.h"

namespace resmgr::bench {

struct SoakResult {
  int64_t calls = 0;
  int64_t errors = 0;
  std::string first_error;
  double seconds = 0;
  int64_t rss_early_kib = 0;  // after a tenth of the calls
  int64_t rss_late_kib = 0;   // after all calls
};

// Many calls of every kind over cri-resmgr, 32 side by side: versions, lists, containers created
// and removed again.
StatusOr<SoakResult> Soak(Testbed& bed, int64_t calls);

}  // namespace resmgr::bench
