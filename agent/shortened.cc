// SPDX-License-Identifier: Apache-2.0
#include "agent/shortened.h"

#include <string_view>

namespace resmgr::agent {

std::string Shortened(std::string text, size_t limit) {
  constexpr std::string_view kEllipsis = "...";
  if (text.size() <= limit) return text;
  size_t end = limit - kEllipsis.size();
  // Not inside a character of UTF-8.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  text.resize(end);
  return text.append(kEllipsis);
}

}  // namespace resmgr::agent
