// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace resmgr {

// Selections of `pick` elements out of several classes of interchangeable ones. class_sizes[i] is
// the number of elements in class i; element i of a selection is the number taken from class i.

// The number of selections; stops counting at `limit`.
int64_t CountSelections(const std::vector<int>& class_sizes, int pick, int64_t limit);

// Visits the selections in lexicographic order: those with the most elements of the first class
// first. `visit` returns false to stop.
void ForEachSelection(const std::vector<int>& class_sizes, int pick,
                      const std::function<bool(const std::vector<int>&)>& visit);

}  // namespace resmgr
