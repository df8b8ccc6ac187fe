// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstring>
#include <string>
#include <string_view>

namespace resmgr {

// Appends all parts, each convertible to std::string_view and none a view into `text`. The text
// grows once: for short parts that is several times cheaper than one append for each.
template <typename... Parts>
void AppendParts(std::string& text, const Parts&... parts) {
  const std::array<std::string_view, sizeof...(Parts)> views{std::string_view(parts)...};
  size_t end = text.size();
  size_t size = end;
  for (const std::string_view part : views)
    size += part.size();
  text.resize(size);
  for (const std::string_view part : views) {
    if (part.empty()) continue;
    std::memcpy(text.data() + end, part.data(), part.size());
    end += part.size();
  }
}

}  // namespace resmgr
