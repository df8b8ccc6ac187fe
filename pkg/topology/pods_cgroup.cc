// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/pods_cgroup.h"

#include <array>
#include <string_view>

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

std::string PodsPath(const CgroupPlaces& places, const CpusetHierarchy& hierarchy) {
  std::string_view told = places.pods;
  while (told.starts_with('/'))
    told.remove_prefix(1);
  if (!told.empty()) return "/" + SlicePath(told);
  for (const std::string_view name : kPods) {
    std::string path = fmt::format("/{}", name);
    if (Exists(hierarchy.mount + path)) return path;
  }
  return "";
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
