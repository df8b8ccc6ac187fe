// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/partition_steps.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {
namespace {

constexpr std::string_view kExclusiveCpusFile = "/cpuset.cpus.exclusive";
constexpr std::string_view kStateFile = "/cpuset.cpus.partition";
// Written as the kernel shows it, so that a killed process leaves the same text as before.
constexpr const char* kNoPartition = "member\n";
// Writing an empty text would do nothing, so "\n" is written for an empty list.
constexpr const char* kNoCpus = "\n";

// A cgroup with exclusive CPUs. If it has no partition of its own, it lies above partitions.
struct CpusetNode {
  std::string directory{};
  CpuSet now{};
  CpuSet target{};
  CpuSet base{};            // above partitions: CPUs for other cgroups, which it keeps
  std::string partition{};  // the wanted state; "": no partition
  std::string state{};      // the state as the kernel shows it

  bool owns() const { return !partition.empty(); }
  bool above(const CpusetNode& other) const { return other.directory.starts_with(directory + "/"); }
  bool moves() const { return owns() && !now.empty() && !now.Intersects(target); }
  bool valid() const { return state == partition; }
};

class PartitionStepper {
 public:
  PartitionStepper(const std::vector<HostValue>& wanted, HostFiles& files) : wanted_(wanted) {
    for (const HostValue& value : wanted)
      if (value.path.ends_with(kExclusiveCpusFile)) AddNode(value, files);
    for (const HostValue& value : wanted)
      if (value.path.ends_with(kStateFile)) AddPartition(value, files);
    // The lowest cgroups come first in the list.
    std::ranges::stable_sort(nodes_, std::greater(), [](const CpusetNode& node) {
      return std::ranges::count(node.directory, '/');
    });
    for (CpusetNode& node : nodes_)
      if (!node.owns()) node.base = node.target - Below(node, &CpusetNode::target);
  }

  std::vector<std::vector<HostValue>> Steps() {
    Shrink();
    while (std::ranges::any_of(nodes_, &CpusetNode::moves)) {
      const std::vector<CpusetNode*> free = FreeToMove();
      if (free.empty()) {
        Release(*std::ranges::find_if(nodes_, &CpusetNode::moves));
      } else {
        Move(free);
      }
    }
    return std::move(steps_);
  }

 private:
  using Writes = std::vector<HostValue>;

  static CpuSet CpusOf(std::string_view text) {
    return CpuSet::Parse(Trim(text)).value_or(CpuSet());
  }
  static std::string DirectoryOf(std::string_view path, std::string_view file) {
    return std::string(path.substr(0, path.size() - file.size()));
  }
  static std::string TextOf(const CpuSet& cpus) { return cpus.empty() ? kNoCpus : cpus.ToString(); }

  void AddNode(const HostValue& value, HostFiles& files) {
    nodes_.push_back({.directory = DirectoryOf(value.path, kExclusiveCpusFile),
                      .now = CpusOf(ReadText(files, value.path)),
                      .target = CpusOf(value.text)});
  }
  void AddPartition(const HostValue& value, HostFiles& files) {
    const std::string directory = DirectoryOf(value.path, kStateFile);
    const auto node = std::ranges::find(nodes_, directory, &CpusetNode::directory);
    if (node == nodes_.end()) return;
    node->partition = value.text;
    node->state = ReadText(files, value.path);
  }

  // The CPUs of all partitions below the cgroup.
  CpuSet Below(const CpusetNode& above, CpuSet CpusetNode::*cpus) const {
    CpuSet all;
    for (const CpusetNode& node : nodes_)
      if (node.owns() && above.above(node)) all |= node.*cpus;
    return all;
  }

  void Set(CpusetNode& node, const CpuSet& cpus, Writes& writes) {
    if (node.now == cpus) return;
    node.now = cpus;
    writes.push_back({node.directory + std::string(kExclusiveCpusFile), TextOf(cpus)});
  }
  void SetState(CpusetNode& node, std::string state, Writes& writes) {
    if (node.state == state) return;
    node.state = std::move(state);
    writes.push_back({node.directory + std::string(kStateFile), node.state});
  }
  // Cgroups above keep the CPUs that partitions below them have, and their own.
  void ShrinkAbove(Writes& writes) {
    for (CpusetNode& node : nodes_) {
      if (node.owns()) continue;
      // Other CPUs are removed now; CPUs for a partition that is yet to move are added with its
      // move.
      const CpuSet kept = node.base | Below(node, &CpusetNode::now);
      Set(node, node.now & kept, writes);
    }
  }

  void Shrink() {
    Writes writes;
    for (CpusetNode& node : nodes_) {
      if (!node.owns() || node.moves()) continue;
      Set(node, node.now & node.target, writes);
    }
    ShrinkAbove(writes);
    AddStep(writes);
  }
  // The partitions that can move now: no other partition has CPUs that they are to get.
  std::vector<CpusetNode*> FreeToMove() {
    std::vector<CpusetNode*> free;
    for (CpusetNode& node : nodes_) {
      if (!node.moves()) continue;
      const bool taken = std::ranges::any_of(nodes_, [&node](const CpusetNode& other) {
        return other.owns() && &other != &node && other.now.Intersects(node.target);
      });
      if (!taken) free.push_back(&node);
    }
    return free;
  }
  void Move(const std::vector<CpusetNode*>& moving) {
    Writes grow;
    // Cgroups above get the new CPUs before the partitions, the highest cgroup first.
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      CpuSet cpus = node->now;
      for (const CpusetNode* const one : moving)
        if (!node->owns() && node->above(*one)) cpus |= one->target;
      Set(*node, cpus, grow);
    }
    AddStep(grow);
    Writes writes;
    for (CpusetNode* const one : moving) {
      Set(*one, one->target, writes);
      SetState(*one, one->partition, writes);
    }
    ShrinkAbove(writes);
    AddStep(writes);
  }
  void Release(CpusetNode& node) {
    Writes writes;
    SetState(node, kNoPartition, writes);
    Set(node, {}, writes);
    ShrinkAbove(writes);
    AddStep(writes);
  }

  // Adds these writes as a step. Other files of partitions keep their present values in it; files
  // that belong to no partition get their final values.
  void AddStep(const Writes& writes) {
    if (writes.empty()) return;
    std::vector<HostValue>& step = steps_.emplace_back(writes);
    for (const HostValue& value : wanted_) {
      const auto same = [&value](const HostValue& write) { return write.path == value.path; };
      if (std::ranges::any_of(writes, same)) continue;
      step.emplace_back(value).text = TextNow(value);
    }
  }
  std::string TextNow(const HostValue& value) const {
    for (const CpusetNode& node : nodes_) {
      if (!value.path.starts_with(node.directory)) continue;
      const std::string_view file = std::string_view(value.path).substr(node.directory.size());
      if (file == kExclusiveCpusFile) return TextOf(node.now);
      if (file == kStateFile && node.owns()) return node.state;
    }
    return value.text;
  }

  const std::vector<HostValue>& wanted_;
  std::vector<CpusetNode> nodes_;  // lowest first
  std::vector<std::vector<HostValue>> steps_;
};

}  // namespace

std::vector<std::vector<HostValue>> PartitionSteps(const std::vector<HostValue>& wanted,
                                                   HostFiles& files) {
  return PartitionStepper(wanted, files).Steps();
}

HostKeeper::Result KeepInSteps(const std::vector<HostValue>& wanted, HostKeeper& keeper) {
  std::vector<std::string> notes;
  for (const std::vector<HostValue>& step : PartitionSteps(wanted, keeper.files())) {
    HostKeeper::Result result = keeper.Keep(step);
    notes.insert(notes.end(), result.notes.begin(), result.notes.end());
  }
  HostKeeper::Result result = keeper.Keep(wanted);
  result.notes.insert(result.notes.begin(), notes.begin(), notes.end());
  return result;
}

}  // namespace resmgr
