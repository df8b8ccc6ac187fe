// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cmd/cri-resmgr-ctl/cli.h"

namespace resmgr::test {

// The exit code and output of a run of cri-resmgr-ctl.
struct Outcome {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// Runs cri-resmgr-ctl 1.2.3 within this process. `arguments` follow the program's name.
inline Outcome Ctl(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"cri-resmgr-ctl"};
  for (const std::string& argument : arguments)
    argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  Outcome outcome;
  outcome.exit_code =
      RunCli(static_cast<int>(argv.size()), argv.data(), "1.2.3", AllCommands(), out, err);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

}  // namespace resmgr::test
