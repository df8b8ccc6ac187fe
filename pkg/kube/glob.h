// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

// Whether all of `text` matches `pattern`: `*` matches any characters or none, `?` matches one;
// every other character matches itself. For namespaces ("kube-*") and other Kubernetes names.
bool MatchesGlob(std::string_view pattern, std::string_view text);

}  // namespace resmgr
