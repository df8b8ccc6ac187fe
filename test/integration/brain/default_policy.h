// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/policy/registry.h"
#include "pkg/topology/machine.h"

namespace resmgr::test {

// The policy with its default options, on all CPUs of the machine, of which CPU 0 is reserved.
std::unique_ptr<Policy> MakeDefaultPolicy(const PolicyFactory& factory, const Machine& machine);

}  // namespace resmgr::test
