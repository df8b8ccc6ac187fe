// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"

namespace resmgr {

// Whether a module of cri-resource-manager, or a key of `control` of nri-plugins, defines classes:
// "cpu", "rdt", "blockio".
bool IsControlKey(std::string_view key);

// Adds what `value` defines to `classes`, the entries of that module, and to `notes` a sentence for
// each key that is left out or means something else. `path` is the place of `value`, for notes and
// errors. InvalidArgument: a value is of the wrong kind.
Status ConvertControl(std::string_view key, const ConfigNode& value, std::string_view path,
                      std::vector<ConfigNode::Entry>& classes, std::vector<std::string>& notes);

}  // namespace resmgr
