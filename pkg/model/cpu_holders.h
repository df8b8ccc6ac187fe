// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/model/snapshot.h"

namespace resmgr {

// Why CPUs are not free, for a refusal: "CPU 0 reserved, CPU 1 held by default/dsp/main". If there
// are many holders, those with the most CPUs are named and the rest is counted: "and 5 more". Empty
// where all are free. The container `except` does not count.
std::string DescribeCpuHolders(const Snapshot& snapshot, const CpuSet& reserved,
                               ContainerKey except);

// A container and how much it has of something.
struct Holding {
  const Pod* pod;
  const Container* container;
  int64_t amount;
};
// The same for anything else: "2 GiB held by default/db/main and 5 more"; `text` tells what one
// has. Those with nothing are to be left out by the caller.
std::string DescribeHolders(std::vector<Holding> holders,
                            const std::function<std::string(const Holding&)>& text);

// The CPU time that containers ask for of CPUs that they share: "2500m asked for by 5 containers
// that share". Empty where none does.
std::string DescribeSharers(const Snapshot& snapshot, ContainerKey except);

}  // namespace resmgr
