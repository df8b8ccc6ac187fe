// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::test {

// A TCP port of 127.0.0.1 that no other program gets by chance, also while nothing listens on it:
// for servers of tests that start later, or again. They have to set SO_REUSEADDR, as most do.
class ReservedPort {
 public:
  // kUnavailable: there is none.
  static StatusOr<ReservedPort> Create();

  int number() const { return number_; }

 private:
  ReservedPort(UniqueFd fd, int number) : fd_(std::move(fd)), number_(number) {}

  UniqueFd fd_;  // bound, and does not listen
  int number_ = 0;
};

}  // namespace resmgr::test
