// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr::test {

// How long the brain takes to put itself in the picture about 1000 containers, from the moment that
// the runtime has listed them to the last update that is sent: adoption, what the state remembers
// of them, the policy's plan and its check. Printed by policy, machine and occasion, in
// microseconds on the clock and of the processor, which a busy machine does not lengthen. False
// when the median of the latter is beyond its target. Ends the program where anything else came
// out than has to.
bool MeasureResync();

}  // namespace resmgr::test
