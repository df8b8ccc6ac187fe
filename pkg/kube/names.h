// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

// Checks names as the API server does (apimachinery/pkg/util/validation in Kubernetes; RFC 1123).

// Whether the name is a DNS subdomain (nodes, ConfigMaps, domains): lower-case letters, parts
// between dots begin and end with a letter or digit, at most 253 bytes.
bool IsSubdomain(std::string_view name);

// Whether the key is valid for a label or annotation: NAME or SUBDOMAIN/NAME.
bool IsLabelKey(std::string_view key);

}  // namespace resmgr
