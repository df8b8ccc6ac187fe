// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/source_filter.h"

#include "pkg/base/parse.h"

namespace resmgr {

StatusOr<SourceFilter> SourceFilter::Parse(std::string_view list) {
  SourceFilter filter = None();
  bool state = true;
  for (const std::string_view piece : Split(list, ',')) {
    const std::string_view item = Trim(piece);
    if (item.empty()) continue;
    const size_t colon = item.find(':');
    if (colon == std::string_view::npos) {
      filter.Set(item, state);
      continue;
    }
    const std::string_view left = Trim(item.substr(0, colon));
    const std::string_view right = Trim(item.substr(colon + 1));
    if (const auto on = ParseBool(left); on && !right.empty()) {
      state = *on;
      filter.Set(right, state);
    } else if (const auto value = ParseBool(right); value && !left.empty()) {
      filter.Set(left, *value);
    } else {
      return InvalidArgument("log source \"{}\" is neither NAME, on:NAME, off:NAME nor NAME:on",
                             Printable(item));
    }
  }
  return filter;
}

bool SourceFilter::Contains(std::string_view source) const {
  const auto found = exceptions_.find(source);
  return found == exceptions_.end() ? all_ : found->second;
}

void SourceFilter::Set(std::string_view source, bool on) {
  const bool none = EqualsIgnoreCase(source, "none");
  if (none || source == "*" || EqualsIgnoreCase(source, "all")) {
    all_ = on != none;
    exceptions_.clear();
    return;
  }
  exceptions_.insert_or_assign(std::string(source), on);
}

}  // namespace resmgr
