// SPDX-License-Identifier: Apache-2.0
#include "agent/base64.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>

namespace resmgr::agent {

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string dense;
  for (const char c : text)
    if (!absl::ascii_isspace(static_cast<unsigned char>(c))) dense += c;
  std::string bytes;
  // The library also takes '.' for '=', and texts without padding.
  const bool whole = absl::Base64Unescape(dense, &bytes) && absl::Base64Escape(bytes) == dense;
  return whole ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace resmgr::agent
