// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr/run_daemon.h"

int main(int argc, char** argv) {
  return resmgr::RunDaemon(argc, argv, RESMGR_VERSION);
}
