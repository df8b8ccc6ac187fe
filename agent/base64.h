// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace resmgr::agent {

// Decodes a base64 text (RFC 4648, section 4), as kubeconfig files hold PEM texts. White space is
// skipped; nullopt for any other character outside the alphabet, and without the padding.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace resmgr::agent
