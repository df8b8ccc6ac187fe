// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace resmgr {

// Choosing `pick` out of several classes of interchangeable things, element i of `class_sizes`
// being how many there are in class i. Element i of a selection is how many come from class i.

// How many selections there are; stops counting at `limit`.
int64_t CountSelections(const std::vector<int>& class_sizes, int pick, int64_t limit);

// Visits them in lexicographic order of the first members of each class: the most from the first
// class first. `visit` returns false to stop.
void ForEachSelection(const std::vector<int>& class_sizes, int pick,
                      const std::function<bool(const std::vector<int>&)>& visit);

}  // namespace resmgr
