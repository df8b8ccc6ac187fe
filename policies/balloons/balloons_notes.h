// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/config/config_node.h"
#include "pkg/config/policy_classes.h"

namespace resmgr {

// Names keys without effect in a section policy.balloons, one sentence each: keys that are read for
// the sake of nri-plugins' files, and the kubelet's devices. None for a section that is wrong. The
// same for any number of types: a list is cut after some names.
std::vector<std::string> BalloonsWithoutEffect(const ConfigNode& section);

// The classes that balloon types and idle CPUs have.
std::vector<NamedClass> BalloonsNamedClasses(const ConfigNode& section);

}  // namespace resmgr
