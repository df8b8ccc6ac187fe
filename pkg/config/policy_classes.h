// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/config_node.h"
#include "pkg/config/config_section.h"

namespace resmgr {

// Names of classes by their kinds, as a policy gives them to its pools.
using PoolClassNames = std::map<std::string, std::string, std::less<>>;

using PolicyClassTexts = std::map<std::string, ConfigNode, std::less<>>;

// A class that the text of a policy names. A value type.
struct NamedClass {
  std::string kind{};   // "cpu"
  std::string name{};   // "turbo"
  std::string where{};  // "balloonTypes dsp: cpuClass"
};

// The key that names a class of this kind ("cpuClass" for "cpu"), and the class.
void DescribePoolClass(ConfigSection& section, std::string_view kind, PoolClassNames& classes,
                       std::string_view help);
// Describes the keys of all kinds.
void DescribePoolClasses(ConfigSection& section, PoolClassNames& classes);
// Adds the classes named at one place of a policy's text.
void AddNamed(const PoolClassNames& classes, std::string_view where,
              std::vector<NamedClass>& named);

// The keys `cpuClasses`, `turboDomain` and `schedulingClasses` of a policy's section are those of
// `classes`, kept in `raw` as they were written.
void DescribePolicyClasses(ConfigSection& section, PolicyClassTexts& raw);
// Checks the values of these keys; an error names its place.
Status CheckPolicyClasses(const ConfigNode& section, std::string_view path);

// Adds to `config` what a policy's section says about classes (`cpuClasses`, `turboDomain`,
// `schedulingClasses`, `controllableInterrupts`), in force while that policy is active. The section
// is at `path`, and has been checked.
void AddPolicyClasses(const ConfigNode& section, std::string_view path, ClassesConfig& config);

// InvalidArgument names the first class that does not exist, and the existing ones of its kind.
Status CheckNamedClasses(const std::vector<NamedClass>& named, const ClassesConfig& config);

// A sentence for each class of AllowedNamespaces.Classes that does not exist: if its name is
// mistyped, the pods of all namespaces of its kind may choose the class that is meant.
std::vector<std::string> UnknownAllowedClasses(const ClassesConfig& config);

// InvalidArgument: the classes that a policy's section names and that do not exist, one per line
// and each with its place. `path` is the section's.
Status CheckClassesOfSection(const std::vector<NamedClass>& named, const ClassesConfig& config,
                             const ConfigNode& section, std::string_view path);

}  // namespace resmgr
