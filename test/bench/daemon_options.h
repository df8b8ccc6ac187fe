// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace resmgr::bench {

// The command line of a bench of one daemon: --rounds N, --daemon PROGRAM, --cpu N.
struct DaemonOptions {
  int rounds = 1;
  std::string daemon{};  // empty: the built one
  int cpu = 0;           // for Pin
};

// Prints an error to stderr and exits with 1 if the arguments are wrong.
DaemonOptions ParseDaemonOptions(int argc, char** argv, int rounds);

}  // namespace resmgr::bench
