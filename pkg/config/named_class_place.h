// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/config_node.h"
#include "pkg/config/policy_classes.h"

namespace resmgr {

// The value in a policy's section that names this class: the first one with its name below a key of
// its kind ("cpuClass", "idleCPUClass"). nullptr: there is none.
const ConfigNode* FindNamedClass(const ConfigNode& section, const NamedClass& named);

// InvalidArgument: the classes that a policy's section names and that do not exist, one per line
// and each with its place. `path` is the section's.
Status CheckClassesOfSection(const std::vector<NamedClass>& named, const ClassesConfig& config,
                             const ConfigNode& section, std::string_view path);

}  // namespace resmgr
