// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// Collects the mistakes of a configuration, so that its author sees all at once. A plain value.
class Problems {
 public:
  // Limit of reported problems: a text that is not a configuration at all would have thousands.
  static constexpr size_t kMost = 20;

  // Adds a status that is not OK. The status of other Problems adds all of theirs. `origin` is put
  // before each.
  void Add(const Status& status, std::string_view origin = "");
  // False when further problems are not reported, so that their messages need not be computed.
  bool open() const { return lines_.size() < kMost; }

  // OK without problems; else kInvalidArgument with one line for each, in their order.
  Status ToStatus() const;

 private:
  std::vector<std::string> lines_;
  bool more_ = false;
};

// The message of ToStatus as one line for the log.
std::string OneLine(std::string_view message);

}  // namespace resmgr
