// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/selections.h"

#include <algorithm>
#include <numeric>

namespace resmgr {

namespace {

class Walker {
 public:
  Walker(const std::vector<int>& class_sizes,
         const std::function<bool(const std::vector<int>&)>& visit)
      : sizes_(class_sizes), visit_(visit), counts_(class_sizes.size()) {
    behind_.assign(sizes_.size() + 1, 0);
    for (size_t i = sizes_.size(); i > 0; --i)
      behind_[i - 1] = behind_[i] + sizes_[i - 1];
  }

  // Fills the classes from `index` on; false if the visitor has stopped.
  bool Walk(size_t index, int pick) {
    if (index == sizes_.size()) return visit_(counts_);
    const int most = std::min(sizes_[index], pick);
    const int least = std::max(0, pick - behind_[index + 1]);
    for (int count = most; count >= least; --count) {
      counts_[index] = count;
      if (!Walk(index + 1, pick - count)) return false;
    }
    return true;
  }

 private:
  const std::vector<int>& sizes_;
  const std::function<bool(const std::vector<int>&)>& visit_;
  std::vector<int> counts_;
  std::vector<int> behind_;  // members of this class and all later ones
};

}  // namespace

int64_t CountSelections(const std::vector<int>& class_sizes, int pick, int64_t limit) {
  // ways[p]: selections of p elements out of the classes so far.
  std::vector<int64_t> ways(static_cast<size_t>(pick) + 1);
  ways[0] = 1;
  for (const int size : class_sizes) {
    for (size_t p = ways.size() - 1; p > 0; --p) {
      const size_t most = std::min(p, static_cast<size_t>(size));
      for (size_t taken = 1; taken <= most; ++taken)
        ways[p] = std::min(limit, ways[p] + ways[p - taken]);
    }
  }
  return ways.back();
}

void ForEachSelection(const std::vector<int>& class_sizes, int pick,
                      const std::function<bool(const std::vector<int>&)>& visit) {
  if (pick > std::accumulate(class_sizes.begin(), class_sizes.end(), 0)) return;
  Walker(class_sizes, visit).Walk(0, pick);
}

}  // namespace resmgr
