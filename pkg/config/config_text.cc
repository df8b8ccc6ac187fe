// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_text.h"

#include <algorithm>

namespace resmgr {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsText(char c) {
  const auto byte = static_cast<unsigned char>(c);
  // The bytes 0xfe and 0xff are invalid in UTF-8, but begin texts in UTF-16.
  return c == '\t' || c == '\n' || c == '\r' || (byte >= 0x20 && byte != 0x7f && byte < 0xfe);
}

}  // namespace

StatusOr<std::string_view> CheckConfigText(std::string_view text, std::string_view source,
                                           size_t max_size) {
  if (text.size() > max_size) {
    return InvalidArgument("{}:1: it has {} bytes, more than {}", source, text.size(), max_size);
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const auto bad = std::find_if_not(text.begin(), text.end(), IsText);
  if (bad != text.end()) {
    return InvalidArgument("{}:{}: byte 0x{:02x} is not allowed in a text", source,
                           std::count(text.begin(), bad, '\n') + 1,
                           static_cast<unsigned char>(*bad));
  }
  return text;
}

}  // namespace resmgr
