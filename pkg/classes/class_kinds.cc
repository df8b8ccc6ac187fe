// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_kind.h"
#include "pkg/classes/isolation_kind.h"
#include "pkg/classes/memory_kind.h"

namespace resmgr {

std::vector<std::unique_ptr<ClassKind>> MakeClassKinds() {
  std::vector<std::unique_ptr<ClassKind>> kinds;
  kinds.push_back(MakeIsolationKind());
  kinds.push_back(MakeMemoryKind());
  return kinds;
}

}  // namespace resmgr
