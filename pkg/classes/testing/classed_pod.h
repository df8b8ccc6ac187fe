// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/classes/class_kind.h"

namespace resmgr::test {

// The only container of a pod, for questions to kinds of classes. It outlives its container().
struct ClassedPod {
  Pod pod{};
  Placement placement{};
  ClassNames of_pool{};
  int64_t memory_limit = 0;
  StringMap own{};  // the container's annotations

  ClassedContainer container() const {
    return {.pod = pod,
            .name = "main",
            .annotations = own,
            .memory_limit = memory_limit,
            .placement = placement,
            .of_pool = of_pool};
  }
};

}  // namespace resmgr::test
