// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

// Whether all of `text` matches `pattern`: `*` stands for any characters, none included, `?` for
// one; every other character for itself. For namespaces ("kube-*") and other Kubernetes names.
bool MatchesGlob(std::string_view pattern, std::string_view text);

}  // namespace resmgr
