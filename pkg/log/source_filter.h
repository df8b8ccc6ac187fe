// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// A selection of log sources: all or none, with exceptions by name. A value type.
class SourceFilter {
 public:
  static SourceFilter All() { return SourceFilter(true); }
  static SourceFilter None() { return SourceFilter(false); }

  // Parses a comma-separated list, read from left to right; later items override earlier ones:
  //   NAME, on:NAME, NAME:on     this source
  //   off:NAME, NAME:off         not this source
  //   * or all                   every source; off:* is the same as none
  //   none                       no source
  // on and off may be any boolean word (true, no, 1, ...). A state in front of a name also applies
  // to the following names that have none: "off:a,b". Unknown sources are accepted, since another
  // version may have them. kInvalidArgument names the malformed item.
  static StatusOr<SourceFilter> Parse(std::string_view list);

  bool Contains(std::string_view source) const;

 private:
  explicit SourceFilter(bool all) : all_(all) {}
  void Set(std::string_view source, bool on);

  bool all_;
  std::map<std::string, bool, std::less<>> exceptions_;
};

}  // namespace resmgr
