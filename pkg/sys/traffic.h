// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "pkg/sys/tally.h"

namespace resmgr {

// Bytes sent over all connections of one kind. One thread counts; any may read.
class Traffic {
 public:
  void Received(size_t bytes) { received_.Add(static_cast<int64_t>(bytes)); }
  void Sent(size_t bytes) { sent_.Add(static_cast<int64_t>(bytes)); }

  uint64_t received() const { return static_cast<uint64_t>(received_.value()); }
  uint64_t sent() const { return static_cast<uint64_t>(sent_.value()); }

 private:
  Tally received_;
  Tally sent_;
};

}  // namespace resmgr
