// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/measured_use.h"
#include "policies/balloons/balloon_book.h"

namespace resmgr {

// Lets balloons of types that follow use borrow idle CPUs, and give them back. Nothing changes
// while the use of a balloon's CPUs is between the bounds of its type (the dead band), nor before
// the type's pause has passed since the last change. A change leads to the middle of the band, by
// half of the balloon's CPUs at most. Where too few CPUs are idle, each goes to the balloon that
// then uses most of each of its CPUs. A balloon with a container that was not measured does not
// shrink. Pure.
void FollowMeasuredUse(BalloonBook& book, const policy::MeasuredUse& use);

}  // namespace resmgr
