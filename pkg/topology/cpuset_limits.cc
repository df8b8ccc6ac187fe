// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/cpuset_limits.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <unistd.h>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
#include "pkg/sys/cgroups.h"
#include "pkg/topology/kernel_lists.h"

namespace resmgr {
namespace {

// Limits, since other programs may make any number of cgroups.
constexpr size_t kMostDirectories = 2048;
constexpr size_t kMostPartitions = 256;
// Limit of causes named in one text.
constexpr int kMostNamed = 4;

std::string Text(const std::string& path) {
  return ReadKernelText(path).value_or("");
}

// The set in the file; empty if the file is missing or empty.
template <typename Set>
Set ReadList(const std::string& path) {
  return Set::Parse(Text(path)).value_or(Set());
}

bool HasWord(std::string_view line, std::string_view word) {
  const std::vector<std::string_view> words = Split(line, ' ');
  return std::ranges::find(words, word) != words.end();
}

// "CPU 5", "CPUs 5-7".
std::string CpusText(const CpuSet& cpus) {
  return fmt::format("{} {}", cpus.size() == 1 ? "CPU" : "CPUs", cpus.ToString());
}

void Add(std::string& text, std::string_view more) {
  if (more.empty()) return;
  text += fmt::format("{}{}", text.empty() ? "" : "; ", more);
}

std::string_view WithoutSlash(std::string_view path) {
  while (path.starts_with('/'))
    path.remove_prefix(1);
  return path;
}

// The paths from below the root to the path itself: "/a", "/a/b"; empty if the path cannot be a
// cgroup's.
std::vector<std::string> Steps(std::string_view path) {
  std::vector<std::string> steps;
  if (!CanBeCgroup(path)) return steps;
  std::string step;
  for (const std::string_view name : Split(WithoutSlash(path), '/')) {
    if (name.empty()) continue;
    step += fmt::format("/{}", name);
    steps.push_back(step);
  }
  return steps;
}

// The cgroup of pods with the cgroup driver systemd, and without.
constexpr std::array<std::string_view, 2> kPods = {"kubepods.slice", "kubepods"};

bool Exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

CpusetHierarchy HierarchyOf(const CgroupPlaces& places) {
  CpusetHierarchy hierarchy = CpusetHierarchy::At(places.root + "/sys/fs/cgroup");
  hierarchy.online = places.root + hierarchy.online;
  return hierarchy;
}

// The names of the directories in a directory, sorted; at most `most` of them.
std::vector<std::string> DirectoriesIn(const std::string& directory, size_t most) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(directory.c_str()), &closedir);
  if (open == nullptr) return names;
  while (names.size() < most) {
    const dirent* const entry = readdir(open.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && !name.starts_with('.')) names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// CPUs that the processes of a cgroup may use, and those that partitions below it took. Empty:
// unknown.
CpuSet ReadAllowedCpus(const CpusetHierarchy& hierarchy, const std::string& directory) {
  if (hierarchy.unified) {
    return ReadList<CpuSet>(directory + "/cpuset.cpus.effective") |
           ReadList<CpuSet>(directory + "/cpuset.cpus.exclusive.effective");
  }
  const auto effective = ReadList<CpuSet>(directory + "/cpuset.effective_cpus");
  return effective.empty() ? ReadList<CpuSet>(directory + "/cpuset.cpus") : effective;
}

NodeSet ReadAllowedMems(const CpusetHierarchy& hierarchy, const std::string& directory) {
  if (hierarchy.unified) return ReadList<NodeSet>(directory + "/cpuset.mems.effective");
  const auto effective = ReadList<NodeSet>(directory + "/cpuset.effective_mems");
  return effective.empty() ? ReadList<NodeSet>(directory + "/cpuset.mems") : effective;
}

// The sets of the cgroup with this path ("/a/b"; "" is the root), or of the nearest cgroup above
// that has sets.
CgroupSets ReadNearest(const CpusetHierarchy& hierarchy, std::string path) {
  CgroupSets sets;
  for (;;) {
    const std::string directory = hierarchy.mount + path;
    if (sets.name.empty() && Exists(directory)) sets.name = path.empty() ? "/" : path;
    if (sets.cpus.empty()) sets.cpus = ReadAllowedCpus(hierarchy, directory);
    if (sets.mems.empty()) sets.mems = ReadAllowedMems(hierarchy, directory);
    const bool complete = !sets.cpus.empty() && !sets.mems.empty();
    if (complete || path.empty()) return sets;
    path.resize(path.rfind('/'));
  }
}

// Whether a kubelet may name its cgroup of pods so: "kubepods", "kubepods.slice", and
// "a-b-kubepods.slice" below a.slice.
bool IsPodsName(std::string_view name) {
  return name == kPods[0] || name == kPods[1] || name.ends_with(fmt::format("-{}", kPods[0]));
}

// Whether the name has a container's id: such cgroups are skipped, since a kubelet within a
// container is not this node's.
bool HasContainerId(std::string_view name) {
  constexpr size_t kIdDigits = 64;
  size_t digits = 0;
  for (const char c : name) {
    digits = IsDigit(c) || (c >= 'a' && c <= 'f') ? digits + 1 : 0;
    if (digits == kIdDigits) return true;
  }
  return false;
}

// Finds the cgroup of pods of a kubelet with --cgroup-root: the match nearest to the root; "" if
// there is none, or if several are equally near.
std::string FindPods(const CpusetHierarchy& hierarchy) {
  constexpr size_t kMostLevels = 5;
  constexpr size_t kMostLookedAt = 2048;
  std::vector<std::string> level = {""};
  size_t looked_at = 0;
  for (size_t i = 0; i < kMostLevels && !level.empty(); ++i) {
    std::vector<std::string> next;
    std::vector<std::string> found;
    for (const std::string& path : level) {
      const size_t room = kMostLookedAt - std::min(kMostLookedAt, looked_at + next.size());
      for (const std::string& name : DirectoriesIn(hierarchy.mount + path, room)) {
        if (HasContainerId(name)) continue;
        next.push_back(fmt::format("{}/{}", path, name));
        if (IsPodsName(name)) found.push_back(next.back());
      }
    }
    if (!found.empty()) return found.size() == 1 ? found[0] : "";
    looked_at += next.size();
    level = std::move(next);
  }
  return "";
}

std::string PodsPath(const CgroupPlaces& places, const CpusetHierarchy& hierarchy) {
  const std::string_view told = WithoutSlash(places.pods);
  if (!told.empty()) return "/" + SlicePath(told);
  for (const std::string_view name : kPods) {
    std::string path = fmt::format("/{}", name);
    if (Exists(hierarchy.mount + path)) return path;
  }
  return FindPods(hierarchy);
}

// The path of this process in /proc/self/cgroup: "0::/system.slice/a.service" on v2, "9:cpuset:/a"
// on v1; nullopt without such a line.
std::optional<std::string> OwnPath(const CgroupPlaces& places, bool unified) {
  const std::string text = Text(places.root + "/proc/self/cgroup");
  for (const std::string_view line : Split(text, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    const std::vector<std::string_view> controllers = Split(names, ',');
    const bool cpuset = std::ranges::find(controllers, "cpuset") != controllers.end();
    if (unified ? names.empty() : cpuset) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

std::string Because(const CgroupSets& sets) {
  return sets.why.empty() ? "" : fmt::format(" ({})", sets.why);
}

// "CPUs 0-3 and memory nodes 0"; empty sets are left out.
std::string Named(const CpuSet& cpus, const NodeSet& mems) {
  std::string text;
  if (!cpus.empty()) text = fmt::format("CPUs {}", cpus.ToString());
  if (!cpus.empty() && !mems.empty()) text += " and ";
  if (!mems.empty()) text += fmt::format("memory nodes {}", mems.ToString());
  return text;
}

}  // namespace

CpusetHierarchy CpusetHierarchy::At(const std::string& cgroups) {
  const bool unified = access((cgroups + "/cgroup.controllers").c_str(), F_OK) == 0;
  return {.mount = unified ? cgroups : cgroups + "/cpuset", .unified = unified};
}

CpusetLimits::CpusetLimits(CpusetHierarchy hierarchy) : hierarchy_(std::move(hierarchy)) {}

std::string CpusetLimits::Directory(std::string_view path) const {
  return fmt::format("{}{}", hierarchy_.mount, path);
}

std::string CpusetLimits::WhyNot(std::string_view path, const CpuSet& cpus) {
  std::string text;
  CpuSet lost = cpus;
  if (const auto online = ReadList<CpuSet>(hierarchy_.online); !online.empty()) {
    const CpuSet offline = lost - online;
    if (!offline.empty()) {
      Add(text,
          fmt::format("{} {} offline", CpusText(offline), offline.size() == 1 ? "is" : "are"));
    }
    lost = lost - offline;
  }
  Add(text, TakeAbove(path, lost));
  if (!lost.empty() && hierarchy_.unified) Add(text, TakePartitions(path, lost));
  return text;
}

// Removes from `lost` the CPUs that cgroups above exclude, and names these cgroups. A set that
// would leave no CPU has no effect.
std::string CpusetLimits::TakeAbove(std::string_view path, CpuSet& lost) const {
  std::string text;
  for (const std::string& step : Steps(path)) {
    const std::string directory = Directory(step);
    auto told = ReadList<CpuSet>(directory + "/cpuset.cpus");
    // The CPUs of a partition may be in another file.
    if (told.empty()) {
      if (const auto partition = ReadPartition(step)) told = partition->cpus;
    }
    if (told.empty()) continue;
    const CpuSet withheld = lost - told - ReadAllowedCpus(hierarchy_, directory);
    if (withheld.empty()) continue;
    Add(text,
        fmt::format("{} allows {} only: widen its cpuset.cpus", Printable(step), CpusText(told)));
    lost = lost - withheld;
  }
  return text;
}

// Removes from `lost` the CPUs of partitions that do not contain the cgroup, and names these
// partitions.
std::string CpusetLimits::TakePartitions(std::string_view path, CpuSet& lost) {
  const std::string inside = fmt::format("/{}/", WithoutSlash(path));
  std::string text;
  int named = 0;
  for (const Partition& partition : Partitions()) {
    const CpuSet taken = lost & partition.cpus;
    if (taken.empty() || inside.starts_with(partition.path + "/")) continue;
    if (++named > kMostNamed) {
      Add(text, "more partitions have others");
      break;
    }
    Add(text, fmt::format("{} {} to the partition of {}: write member into its "
                          "cpuset.cpus.partition",
                          CpusText(taken), taken.size() == 1 ? "belongs" : "belong",
                          Printable(partition.path)));
    lost = lost - taken;
  }
  return text;
}

std::string CpusetLimits::WhyNot(std::string_view path, const NodeSet& mems) const {
  std::string text;
  NodeSet lost = mems;
  for (const std::string& step : Steps(path)) {
    const std::string directory = Directory(step);
    const auto told = ReadList<NodeSet>(directory + "/cpuset.mems");
    if (told.empty()) continue;
    const NodeSet withheld = lost - told - ReadAllowedMems(hierarchy_, directory);
    if (withheld.empty()) continue;
    Add(text, fmt::format("{} allows memory nodes {} only: widen its cpuset.mems", Printable(step),
                          told.ToString()));
    lost = lost - withheld;
  }
  return text;
}

std::string CpusetLimits::WhyNone(std::string_view path) const {
  if (!hierarchy_.unified) return "";
  const std::vector<std::string> steps = Steps(path);
  for (const std::string& step : steps) {
    const std::string type = Text(Directory(step) + "/cgroup.type");
    if (type == "threaded") {
      return fmt::format(
          "cgroup.type of {} is \"threaded\", so it takes no container: make it anew",
          Printable(step));
    }
    if (type != "domain invalid") continue;
    return fmt::format(
        "cgroup.type of {} is \"domain invalid\", because the cgroup above it has threaded ones: "
        "remove these",
        Printable(step));
  }
  const std::string all = Text(Directory("/cgroup.controllers"));
  if (!all.empty() && !HasWord(all, "cpuset")) {
    return "cgroup v2 has no controller cpuset on this machine (cgroup.controllers): boot without "
           "cgroup_disable=cpuset and without hierarchies of cgroup v1";
  }
  std::string above;
  for (const std::string& step : steps) {
    const std::string enabled = Directory(above) + "/cgroup.subtree_control";
    if (access(enabled.c_str(), F_OK) == 0 && !HasWord(Text(enabled), "cpuset")) {
      return fmt::format(
          "the controller cpuset is not enabled in cgroup.subtree_control of {}: write +cpuset "
          "into it",
          above.empty() ? "/" : Printable(above));
    }
    above = step;
  }
  return "";
}

std::string CpusetLimits::Conflicts(std::string_view above, std::string_view own,
                                    const CpuSet& cpus) const {
  // Limit of cgroups looked at.
  constexpr size_t kMostBeside = 512;
  const std::string beside = Directory(above);
  if (hierarchy_.unified) {
    for (const std::string& name : DirectoriesIn(beside, kMostBeside)) {
      const std::string path = fmt::format("{}/{}", above, name);
      if (path == own) continue;
      const CpuSet taken = cpus & ReadList<CpuSet>(Directory(path) + "/cpuset.cpus.exclusive");
      if (taken.empty()) continue;
      return fmt::format("{} {} in cpuset.cpus.exclusive of {}: write fewer into it",
                         CpusText(taken), taken.size() == 1 ? "is" : "are", Printable(path));
    }
    return "";
  }
  if (own.empty()) return "";
  for (const std::string& name : DirectoriesIn(Directory(own), kMostBeside)) {
    const std::string path = fmt::format("{}/{}", own, name);
    const CpuSet more = ReadList<CpuSet>(Directory(path) + "/cpuset.cpus") - cpus;
    if (more.empty()) continue;
    return fmt::format("{}, which the container made, has {}: write fewer into its cpuset.cpus",
                       Printable(path), CpusText(more));
  }
  return "";
}

CpuSet CpusetLimits::AllowedCpus(std::string_view path) const {
  return ReadAllowedCpus(hierarchy_, Directory(path));
}

NodeSet CpusetLimits::AllowedMems(std::string_view path) const {
  return ReadAllowedMems(hierarchy_, Directory(path));
}

// The partition of this cgroup. An invalid one ("root invalid (...)") takes no CPUs, so it does not
// count.
std::optional<CpusetLimits::Partition> CpusetLimits::ReadPartition(const std::string& path) const {
  const std::string directory = Directory(path);
  const std::string kind = Text(directory + "/cpuset.cpus.partition");
  if (kind != "root" && kind != "isolated") return std::nullopt;
  CpuSet cpus = ReadAllowedCpus(hierarchy_, directory);
  if (cpus.empty()) return std::nullopt;
  return Partition{.path = path, .cpus = std::move(cpus)};
}

// The partitions that were found, those nearest to the root first.
const std::vector<CpusetLimits::Partition>& CpusetLimits::Partitions() {
  if (partitions_) return *partitions_;
  partitions_.emplace();
  std::vector<std::string> paths = {""};
  for (size_t i = 0; i < paths.size() && partitions_->size() < kMostPartitions; ++i) {
    const std::string path = paths[i];
    if (auto partition = ReadPartition(path); partition && !path.empty())
      partitions_->push_back(*std::move(partition));
    const size_t room = kMostDirectories - paths.size();
    for (const std::string& name : DirectoriesIn(Directory(path), room))
      paths.push_back(fmt::format("{}/{}", path, name));
  }
  return *partitions_;
}

CgroupSets ReadPodsCgroup(const CgroupPlaces& places) {
  const CpusetHierarchy hierarchy = HierarchyOf(places);
  CgroupSets sets = ReadNearest(hierarchy, PodsPath(places, hierarchy));
  if (sets.cpus.empty()) return sets;
  const CpuSet missing = ReadList<CpuSet>(hierarchy.online) - sets.cpus;
  if (!missing.empty()) sets.why = CpusetLimits(hierarchy).WhyNot(sets.name, missing);
  return sets;
}

std::optional<CgroupSets> ReadOwnCgroup(const CgroupPlaces& places) {
  const CpusetHierarchy hierarchy = HierarchyOf(places);
  const std::optional<std::string> path = OwnPath(places, hierarchy.unified);
  // In a container, "/" is the root of its cgroup namespace, and paths outside begin with "/..":
  // the place in the whole hierarchy is not visible.
  if (!path || !path->starts_with('/') || *path == "/" || path->starts_with("/..")) {
    return std::nullopt;
  }
  const std::string pods = PodsPath(places, hierarchy);
  const bool in_pod = path->find("/kubepods") != std::string::npos ||
                      (!pods.empty() && path->starts_with(pods + "/"));
  if (in_pod) return std::nullopt;
  return ReadNearest(hierarchy, *path);
}

std::vector<std::string> CgroupDifferences(const Machine& machine, const CgroupSets& pods,
                                           const std::optional<CgroupSets>& own) {
  std::vector<std::string> differences;
  const NodeSet with_memory = NodesWithMemory(machine);
  const std::string missing =
      Named(machine.online() - machine.allowed(), with_memory - machine.allowed_nodes());
  if (!missing.empty()) {
    differences.push_back(
        fmt::format("the cgroup of pods ({}) may not use {} of this machine: containers are placed "
                    "on the others{}",
                    Printable(pods.name), missing, Because(pods)));
  }
  if (!own) return differences;
  const std::string more =
      Named(own->cpus.empty() ? CpuSet() : machine.allowed() - own->cpus,
            own->mems.empty() ? NodeSet() : (machine.allowed_nodes() & with_memory) - own->mems);
  if (more.empty()) return differences;
  differences.push_back(fmt::format(
      "the cgroup of this process ({}) may not use {}, but that of pods ({}) may: containers are "
      "placed there as well",
      Printable(own->name), more, Printable(pods.name)));
  return differences;
}

}  // namespace resmgr
