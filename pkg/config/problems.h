// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// The mistakes of a configuration, so that its author learns of all at once. A plain value.
class Problems {
 public:
  // More are not told: a text that is no configuration at all would bring thousands.
  static constexpr size_t kMost = 20;

  // OK is none. The status of other Problems brings all of theirs. `origin` stands before each.
  void Add(const Status& status, std::string_view origin = "");
  // There is room for more to be told: else it need not be worked out what to say.
  bool open() const { return lines_.size() < kMost; }

  // OK when there are none; else InvalidArgument with one line for each, in the order in which they
  // came.
  Status ToStatus() const;

 private:
  std::vector<std::string> lines_;
  bool more_ = false;
};

// What ToStatus says, for a line of the log.
std::string OneLine(std::string_view message);

}  // namespace resmgr
