// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr::test {

// The time that the brain takes to take over 1000 containers, from the moment that the runtime has
// listed them to the last update that is sent: adoption, their saved state, the policy's plan and
// its check. Printed by policy, machine and occasion, in microseconds on the clock and of the
// processor, which a busy machine does not lengthen. False when the median of the latter is beyond
// its target. Ends the program if a result is wrong.
bool MeasureResync();

}  // namespace resmgr::test
