// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

// Whether all of `text` matches `pattern`: `*` matches any characters or none, `?` matches one,
// `[a-z_]` one of these and `[^a-z_]` one other; every other character matches itself, and so does
// a
// `[` without its `]`. For namespaces ("kube-*") and other Kubernetes names.
bool MatchesGlob(std::string_view pattern, std::string_view text);

// Whether each `[` of the pattern has its `]`.
bool IsGlob(std::string_view pattern);

}  // namespace resmgr
