// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/allocator/free_cpus.h"

namespace resmgr {

namespace {

// Limit of splits that are compared. Eight different nodes, the kubelet's own limit, give at most
// 1792.
constexpr int64_t kMaxCompared = 2048;

struct Node {
  int id = -1;
  int free = 0;
};

// A split of a count: `each` CPUs from every node, and the remainder, group by group, from the
// nodes of `remainder_nodes` in turn.
struct NodeSplit {
  std::vector<int> nodes;
  int each = 0;
  std::vector<int> remainder_nodes;
};

double RoundTo3(double value) {
  return std::round(value * 1000) / 1000;
}

// Sets `sizes` to the number of nodes in each class: neighbours with equally many free CPUs.
void ClassSizes(const std::vector<Node>& nodes, std::vector<int>& sizes) {
  sizes.clear();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i == 0 || nodes[i].free != nodes[i - 1].free) sizes.push_back(0);
    ++sizes.back();
  }
}

// The first `counts[i]` members of each class i.
void MembersOf(const std::vector<Node>& nodes, const std::vector<int>& class_sizes,
               const std::vector<int>& counts, std::vector<Node>& members) {
  members.clear();
  size_t begin = 0;
  for (size_t i = 0; i < class_sizes.size(); ++i) {
    for (int j = 0; j < counts[i]; ++j)
      members.push_back(nodes[begin + static_cast<size_t>(j)]);
    begin += static_cast<size_t>(class_sizes[i]);
  }
}

// Searches for the best split over a given number of nodes.
class SplitSearch {
 public:
  // `nodes` are the nodes with free CPUs, in the allocator's order of use.
  SplitSearch(const std::vector<Node>& nodes, int count, int group)
      : nodes_(nodes), count_(count), group_(group) {
    for (const Node& node : nodes) {
      free_sum_ += node.free;
      free_squares_ += int64_t{node.free} * node.free;
    }
    mean_ = RoundTo3(static_cast<double>(free_sum_ - count) / static_cast<double>(nodes.size()));
  }

  std::optional<NodeSplit> Over(int node_count) {
    best_.reset();
    best_balance_ = std::numeric_limits<double>::infinity();
    each_ = count_ / node_count / group_ * group_;
    remainder_ = count_ - each_ * node_count;
    std::vector<Node> eligible;
    for (const Node& node : nodes_) {
      if (node.free >= each_) eligible.push_back(node);
    }
    if (static_cast<int>(eligible.size()) < node_count) return std::nullopt;
    // For each choice of nodes, there are at most 2^node_count ways to place the remainder.
    const int64_t per_choice = remainder_ == 0 ? 1 : int64_t{1} << std::min(node_count, 20);
    std::vector<int> classes;
    ClassSizes(eligible, classes);
    exhaustive_ =
        CountSelections(classes, node_count, kMaxCompared + 1) * per_choice <= kMaxCompared;
    if (exhaustive_) {
      ForEachSelection(classes, node_count, [&](const std::vector<int>& counts) {
        MembersOf(eligible, classes, counts, chosen_);
        Consider();
        return best_balance_ > 0;
      });
    } else {
      chosen_ = MostFree(eligible, static_cast<size_t>(node_count));
      Consider();
    }
    return best_;
  }

 private:
  // The `pick` nodes with the most free CPUs, in the order of `nodes`; among equal ones, the first.
  static std::vector<Node> MostFree(const std::vector<Node>& nodes, size_t pick) {
    std::vector<size_t> places(nodes.size());
    std::iota(places.begin(), places.end(), size_t{0});
    std::stable_sort(places.begin(), places.end(),
                     [&](size_t a, size_t b) { return nodes[a].free > nodes[b].free; });
    places.resize(pick);
    std::sort(places.begin(), places.end());
    std::vector<Node> most;
    most.reserve(pick);
    for (const size_t place : places)
      most.push_back(nodes[place]);
    return most;
  }

  // Standard deviation of free CPUs over all nodes, given the sum of their squares.
  double Balance(int64_t squares) const {
    const auto nodes = static_cast<double>(nodes_.size());
    const auto sum = static_cast<double>(free_sum_ - count_);
    const double variance =
        (static_cast<double>(squares) - 2 * mean_ * sum + nodes * mean_ * mean_) / nodes;
    return RoundTo3(std::sqrt(std::max(variance, 0.0)));
  }

  // Compares the nodes chosen_, with every choice of nodes for the remainder, with the best split
  // so far.
  void Consider() {
    int64_t squares = free_squares_;
    int groups = 0;
    for (const Node& node : chosen_) {
      const int64_t left = node.free - each_;
      squares += left * left - int64_t{node.free} * node.free;
      groups += node.free / group_;
    }
    if (groups * group_ < count_) return;
    if (remainder_ == 0) {
      takers_.clear();
      Keep(Balance(squares));
      return;
    }
    candidates_.clear();
    for (const Node& node : chosen_) {
      if (node.free - each_ >= group_) candidates_.push_back({node.id, node.free - each_});
    }
    ClassSizes(candidates_, candidate_classes_);
    for (auto pick = static_cast<int>(candidates_.size()); pick > 0; --pick) {
      if (exhaustive_) {
        ForEachSelection(candidate_classes_, pick, [&](const std::vector<int>& counts) {
          MembersOf(candidates_, candidate_classes_, counts, takers_);
          ConsiderRemainder(squares);
          return best_balance_ > 0;
        });
      } else {
        takers_ = MostFree(candidates_, static_cast<size_t>(pick));
        ConsiderRemainder(squares);
      }
    }
  }

  // Gives the remainder to takers_, group by group in turn, as the allocation will do.
  void ConsiderRemainder(int64_t squares) {
    left_ = takers_;
    int groups = 0;
    for (const Node& node : takers_)
      groups += node.free / group_;
    if (groups * group_ < remainder_) return;
    for (int remainder = remainder_; remainder > 0;) {
      for (Node& node : left_) {
        if (remainder == 0) break;
        if (node.free < group_) continue;
        node.free -= group_;
        remainder -= group_;
      }
    }
    for (size_t i = 0; i < takers_.size(); ++i) {
      squares +=
          int64_t{left_[i].free} * left_[i].free - int64_t{takers_[i].free} * takers_[i].free;
    }
    Keep(Balance(squares));
  }

  void Keep(double balance) {
    if (balance >= best_balance_) return;
    best_balance_ = balance;
    best_ = NodeSplit();
    best_->each = each_;
    for (const Node& node : chosen_)
      best_->nodes.push_back(node.id);
    for (const Node& node : takers_)
      best_->remainder_nodes.push_back(node.id);
  }

  const std::vector<Node>& nodes_;
  const int count_;
  const int group_;
  int64_t free_sum_ = 0;
  int64_t free_squares_ = 0;
  double mean_ = 0;  // mean number of free CPUs that will be left on a node

  // State of the running search:
  int each_ = 0;
  int remainder_ = 0;
  bool exhaustive_ = true;
  double best_balance_ = 0;
  std::optional<NodeSplit> best_;
  // The choice under examination. Members, so that thousands of choices need no allocation.
  std::vector<Node> chosen_;
  std::vector<Node> candidates_;
  std::vector<int> candidate_classes_;
  std::vector<Node> takers_;
  std::vector<Node> left_;
};

// Allocates a split, packed inside every node.
StatusOr<CpuSet> TakeSplit(const Machine& machine, const CpuSet& usable, const NodeSplit& split,
                           int count, int group) {
  CpuSet taken;
  const auto take = [&](int node, int cpus) -> Status {
    const CpuSet free = (NodeCpus(machine, node) & usable) - taken;
    RESMGR_ASSIGN_OR_RETURN(const CpuSet part, TakePacked(machine, free, cpus, {}));
    taken |= part;
    return OkStatus();
  };
  for (const int node : split.nodes)
    RESMGR_RETURN_IF_ERROR(take(node, split.each));
  while (taken.size() < count) {
    const int before = taken.size();
    for (const int node : split.remainder_nodes) {
      const int free = ((NodeCpus(machine, node) & usable) - taken).size();
      if (taken.size() < count && free >= group) RESMGR_RETURN_IF_ERROR(take(node, group));
    }
    if (taken.size() == before) return Internal("a split of {} CPUs cannot be carried out", count);
  }
  return taken;
}

}  // namespace

StatusOr<CpuSet> TakeDistributed(const Machine& machine, const CpuSet& available, int count,
                                 int group_size) {
  if (group_size < 1) return InvalidArgument("groups of {} CPUs", group_size);
  const CpuSet usable = available & machine.online();
  RESMGR_RETURN_IF_ERROR(CheckCount(usable, count));
  if (count > 0 && count % group_size == 0) {
    const FreeCpus free(machine, usable);
    std::vector<Node> nodes;
    for (const int node : free.NodesInOrder())
      nodes.push_back({node, free.InNode(node)});
    SplitSearch search(nodes, count, group_size);
    const int most = std::min(count / group_size, static_cast<int>(nodes.size()));
    for (int node_count = 1; node_count <= most; ++node_count) {
      if (const std::optional<NodeSplit> split = search.Over(node_count)) {
        return TakeSplit(machine, usable, *split, count, group_size);
      }
    }
  }
  return TakePacked(machine, usable, count, {});
}

}  // namespace resmgr
