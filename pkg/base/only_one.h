// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iterator>
#include <string_view>

namespace resmgr {

// The value of an ordered map whose key begins with this text, where it is the only one or the
// whole key: runtimes and people name pod sandboxes and containers by beginnings of their ids. A
// default-constructed value (nullptr) if no key or several match, and for "".
template <typename Map>
typename Map::mapped_type OnlyOneThatBeginsWith(const Map& by_id, std::string_view beginning) {
  if (beginning.empty()) return {};
  const auto found = by_id.lower_bound(beginning);
  if (found == by_id.end() || !found->first.starts_with(beginning)) return {};
  if (found->first.size() == beginning.size()) return found->second;
  const auto next = std::next(found);
  const bool unique = next == by_id.end() || !next->first.starts_with(beginning);
  return unique ? found->second : typename Map::mapped_type{};
}

}  // namespace resmgr
