// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/model/container.h"

namespace resmgr {

// Whether `predecessor`, with which Policy::Allocate places `container`, is an earlier attempt of
// it. A predecessor of another name stands for CPUs in the place that the container asks for, as
// for the parts of claims; to users nothing ran there before. Pure.
inline bool IsFormerAttempt(const Container& container, const Container& predecessor) {
  return container.name == predecessor.name;
}

}  // namespace resmgr
