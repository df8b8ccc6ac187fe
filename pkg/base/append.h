// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace resmgr {

// Cuts the text to its first `kept` characters and appends all parts, each convertible to
// std::string_view and none a view into the text. The text grows once: for short parts that is
// several times cheaper than one append for each. If a text is rebuilt again and again, a
// fmt::memory_buffer saves time, too: unlike a std::string, it does not zero the memory before the
// parts are copied into it. There is no loop over the parts, so that the size of a literal is known
// where it is copied.
template <typename Text, typename... Parts>
void SetParts(Text& text, size_t kept, const Parts&... parts) {
  text.resize(kept + (std::string_view(parts).size() + ... + 0));
  char* to = text.data() + kept;
  const auto copy = [&to](std::string_view part) {
    if (part.empty()) return;
    std::memcpy(to, part.data(), part.size());
    to += part.size();
  };
  (copy(parts), ...);
}

// Appends all parts.
template <typename Text, typename... Parts>
void AppendParts(Text& text, const Parts&... parts) {
  SetParts(text, text.size(), parts...);
}

// Replaces the text by the parts.
template <typename Text, typename... Parts>
void AssignParts(Text& text, const Parts&... parts) {
  SetParts(text, 0, parts...);
}

}  // namespace resmgr
