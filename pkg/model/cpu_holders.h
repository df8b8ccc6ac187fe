// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/model/container.h"
#include "pkg/model/snapshot.h"

namespace resmgr {

// Why CPUs are not free, for a refusal: "CPU 0 reserved, CPU 1 held by default/dsp/main". Of many
// holders, those with the most CPUs are named and the rest is counted: "and 5 more". Empty where
// all are free. The container `except` does not count.
std::string DescribeCpuHolders(const Snapshot& snapshot, const CpuSet& reserved,
                               ContainerKey except);

}  // namespace resmgr
