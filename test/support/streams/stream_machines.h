// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/topology/machine.h"

namespace resmgr::test {

struct StreamMachine {
  const char* name;  // a word
  Machine (*make)();
  const char* reserved;  // CPUs for the system
};

// Twenty machines: from 2 to 288 CPUs, with one to four threads in a core, with several dies, with
// packages of different sizes, with offline and with isolated CPUs.
const std::vector<StreamMachine>& StreamMachines();

}  // namespace resmgr::test
