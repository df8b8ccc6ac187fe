// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

// Names as the API server takes them (apimachinery/pkg/util/validation in Kubernetes; RFC 1123).

// A DNS subdomain: nodes, ConfigMaps, domains. Letters are small, parts between dots begin and end
// with a letter or digit, 253 bytes at most.
bool IsSubdomain(std::string_view name);

// A key of a label or annotation: NAME or SUBDOMAIN/NAME.
bool IsLabelKey(std::string_view key);

}  // namespace resmgr
