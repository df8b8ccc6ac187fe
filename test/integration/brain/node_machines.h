// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/topology/machine.h"

namespace resmgr::test {

struct NamedMachine {
  std::string name;  // fit for a test's name
  Machine machine;
};

// Machines of many kinds: 1 to 8 packages, 1, 2 and 4 threads per core, several nodes per package
// and packages per node, nodes without CPUs, CPUs that are offline, isolated, hybrid or not
// allowed, 1024 CPUs; hand-made ones and all of test/data/topology. Made once for a process: each
// file is read by a child.
const std::vector<NamedMachine>& AllMachines();

}  // namespace resmgr::test
