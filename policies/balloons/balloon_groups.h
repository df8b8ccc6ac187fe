// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"

namespace resmgr {

// The text of groupBy for one container: ${KEY}, or $KEY up to the next $ or the end, stands for
// its value, and $$ for $. Empty if a key has no value.
std::string ExpandGroup(std::string_view text, const Pod& pod, const Container& container);
// InvalidArgument if the text has a key that no container can have, or ${ without }.
Status CheckGroup(std::string_view text);

}  // namespace resmgr
