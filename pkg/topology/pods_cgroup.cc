// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/pods_cgroup.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/cgroups.h"
#include "pkg/sys/files.h"
#include "pkg/topology/cpuset_limits.h"

namespace resmgr {
namespace {

// More than a list of every other CPU up to CpuSet::kMaxId.
constexpr size_t kMostBytes = size_t{64} << 10;
// With the cgroup driver systemd and without.
constexpr std::array<std::string_view, 2> kPods = {"kubepods.slice", "kubepods"};

bool Exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

CpusetHierarchy HierarchyOf(const CgroupPlaces& places) {
  CpusetHierarchy hierarchy = CpusetHierarchy::At(places.root + "/sys/fs/cgroup");
  hierarchy.online = places.root + hierarchy.online;
  return hierarchy;
}

// Reads the sets of the cgroup with this path ("/a/b"; "" is the root) or of the nearest one above
// that has them.
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

// As a kubelet names it: "kubepods", "kubepods.slice", and "a-b-kubepods.slice" below a.slice.
bool IsPodsName(std::string_view name) {
  return name == kPods[0] || name == kPods[1] || name.ends_with(fmt::format("-{}", kPods[0]));
}

// Names of containers have their ids; kubelets in containers are not this node's.
bool HasContainerId(std::string_view name) {
  constexpr size_t kIdDigits = 64;
  size_t digits = 0;
  for (const char c : name) {
    digits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ? digits + 1 : 0;
    if (digits == kIdDigits) return true;
  }
  return false;
}

// The cgroup of pods of a kubelet with --cgroup-root: the one nearest to the root; "" if there is
// none, or if several are equally near.
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
  std::string_view told = places.pods;
  while (told.starts_with('/'))
    told.remove_prefix(1);
  if (!told.empty()) return "/" + SlicePath(told);
  for (const std::string_view name : kPods) {
    std::string path = fmt::format("/{}", name);
    if (Exists(hierarchy.mount + path)) return path;
  }
  return FindPods(hierarchy);
}

// "0::/system.slice/a.service" on v2, "9:cpuset:/a" on v1; nullopt without such a line.
std::optional<std::string> OwnPath(const CgroupPlaces& places, bool unified) {
  const auto text = ReadFile(places.root + "/proc/self/cgroup", kMostBytes);
  if (!text.ok()) return std::nullopt;
  for (const std::string_view line : Split(*text, '\n')) {
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

// "CPUs 0-3 and memory nodes 0"; without what is empty.
std::string Named(const CpuSet& cpus, const NodeSet& mems) {
  std::string text;
  if (!cpus.empty()) text = fmt::format("CPUs {}", cpus.ToString());
  if (!cpus.empty() && !mems.empty()) text += " and ";
  if (!mems.empty()) text += fmt::format("memory nodes {}", mems.ToString());
  return text;
}

}  // namespace

CgroupSets ReadPodsCgroup(const CgroupPlaces& places) {
  const CpusetHierarchy hierarchy = HierarchyOf(places);
  CgroupSets sets = ReadNearest(hierarchy, PodsPath(places, hierarchy));
  const StatusOr<std::string> online = ReadFile(hierarchy.online, kMostBytes);
  if (!online.ok() || sets.cpus.empty()) return sets;
  const CpuSet missing = CpuSet::Parse(Trim(*online)).value_or(CpuSet()) - sets.cpus;
  if (!missing.empty()) sets.why = CpusetLimits(hierarchy).WhyNot(sets.name, missing);
  return sets;
}

std::optional<CgroupSets> ReadOwnCgroup(const CgroupPlaces& places) {
  const CpusetHierarchy hierarchy = HierarchyOf(places);
  const std::optional<std::string> path = OwnPath(places, hierarchy.unified);
  // In a container the root is that of its namespace, and paths outside of it begin with "/..".
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
  const std::string missing =
      Named(machine.online() - machine.allowed(), machine.node_ids() - machine.allowed_nodes());
  if (!missing.empty()) {
    differences.push_back(
        fmt::format("the cgroup of pods ({}) may not use {} of this machine: containers are placed "
                    "on the others{}",
                    Printable(pods.name), missing, Because(pods)));
  }
  if (!own) return differences;
  const std::string more =
      Named(own->cpus.empty() ? CpuSet() : machine.allowed() - own->cpus,
            own->mems.empty() ? NodeSet() : machine.allowed_nodes() - own->mems);
  if (more.empty()) return differences;
  differences.push_back(fmt::format(
      "the cgroup of this process ({}) may not use {}, but that of pods ({}) may: containers are "
      "placed there as well",
      Printable(own->name), more, Printable(pods.name)));
  return differences;
}

}  // namespace resmgr
