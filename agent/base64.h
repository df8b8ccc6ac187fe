// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace resmgr::agent {

// The bytes of a base64 text (RFC 4648, section 4), as kubeconfig files hold PEM texts. White space
// is skipped; nullopt for anything else that does not belong there.
std::optional<std::string> DecodeBase64(std::string_view text);
std::string EncodeBase64(std::string_view bytes);

}  // namespace resmgr::agent
