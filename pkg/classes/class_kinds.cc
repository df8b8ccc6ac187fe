// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_kinds.h"

namespace resmgr {

std::vector<std::unique_ptr<ClassKind>> MakeClassKinds(const ClassContext& context) {
  std::vector<std::unique_ptr<ClassKind>> kinds;
  kinds.push_back(MakeIsolationKind(context));
  kinds.push_back(MakeMemoryKind(context));
  kinds.push_back(MakeBlockioKind(context));
  kinds.push_back(MakeSchedulingKind(context));
  kinds.push_back(MakeRdtKind(context));
  kinds.push_back(MakeRdtMonitorKind());
  kinds.push_back(MakeCpuKind());
  return kinds;
}

}  // namespace resmgr
