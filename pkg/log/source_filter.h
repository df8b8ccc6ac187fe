// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// Which sources of log messages are meant: all or none, with exceptions by name. A value.
class SourceFilter {
 public:
  static SourceFilter All() { return SourceFilter(true); }
  static SourceFilter None() { return SourceFilter(false); }

  // A comma-separated list, read from left to right, later items over earlier ones:
  //   NAME, on:NAME, NAME:on     this source
  //   off:NAME, NAME:off         not this source
  //   * or all                   every source; off:* is the same as none
  //   none                       no source
  // on and off may be any boolean word (true, no, 1, ...). A state in front of a name also holds
  // for the bare names that follow it: "off:a,b". Unknown sources are fine: they may come
  // with another version. kInvalidArgument names the item that cannot be read.
  static StatusOr<SourceFilter> Parse(std::string_view list);

  bool Contains(std::string_view source) const;

 private:
  explicit SourceFilter(bool all) : all_(all) {}
  void Set(std::string_view source, bool on);

  bool all_;
  std::map<std::string, bool, std::less<>> exceptions_;
};

}  // namespace resmgr
