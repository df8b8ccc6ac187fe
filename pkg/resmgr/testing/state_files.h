// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/state/testing/failing_file_systems.h"

namespace resmgr::test {

// A base of fixtures before ManagerFixture: outlives the node, whose state is written on a thread.
struct StateFiles {
  CrashingFileSystem files_{1};
};

}  // namespace resmgr::test
