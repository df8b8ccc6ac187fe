// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace resmgr::bench {

// The command line of a bench of one daemon: --rounds N, --daemon PROGRAM, --cpu N.
struct DaemonOptions {
  int rounds = 1;
  std::string daemon{};  // empty: the built one
  int cpu = 0;           // that everything shares; -1: nothing is pinned
};

// Prints what is wrong to stderr and exits with 1 where it does not understand the arguments.
DaemonOptions ParseDaemonOptions(int argc, char** argv, int rounds);

// Puts this process, and those that it starts from now on, on the options' CPU, before others where
// the user may. False: that CPU cannot be had.
bool TakeCpu(const DaemonOptions& options);

}  // namespace resmgr::bench
