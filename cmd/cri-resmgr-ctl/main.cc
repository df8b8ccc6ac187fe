// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "cmd/cri-resmgr-ctl/cli.h"

int main(int argc, char** argv) {
  return resmgr::RunCli(argc, argv, RESMGR_VERSION, resmgr::AllCommands(), std::cout, std::cerr);
}
