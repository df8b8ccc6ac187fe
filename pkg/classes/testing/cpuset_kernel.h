// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/classes/host_files.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr::test {

// Cgroups with partitions of cpusets by the rules of Linux (cgroup-v2.rst, "Cpuset Interface
// Files"): exclusive CPUs are disjoint among cgroups beside each other, a remote partition has
// those that all cgroups above have, too, and one that loses all of them is invalid until its state
// is written again. Thread-compatible.
class CpusetKernel final : public HostFiles {
 public:
  struct Cgroup {
    CpuSet cpus{};
    CpuSet exclusive{};
    std::string state = "member";
  };
  static constexpr std::string_view kRoot = "sys/fs/cgroup/";

  std::map<std::string, Cgroup> cgroups;  // by their paths below the mount point
  // Before Linux 6.11 a cgroup has only those exclusive CPUs that its cpuset.cpus has, too.
  bool bound_to_cpus = false;
  bool has_exclusive = true;  // from Linux 6.7 on
  int refused = 0;
  int ended = 0;  // valid partitions that ended, for any reason
  std::string version = "6.18.0\n";

  StatusOr<std::string> Read(const std::string& path) override {
    if (path == std::string(kRoot) + "cgroup.controllers") return std::string("cpuset\n");
    if (path == "proc/sys/kernel/osrelease") return version;
    if (path == "sys/devices/system/cpu/online") return std::string("0-15\n");
    const auto [name, file] = Parts(path);
    const auto cgroup = cgroups.find(name);
    if (cgroup == cgroups.end()) return NotFound("there is no {}", path);
    if (file == "cpuset.cpus") return cgroup->second.cpus.ToString() + "\n";
    if (file == "cpuset.cpus.partition") return cgroup->second.state + "\n";
    if (file == "cpuset.cpus.exclusive" && has_exclusive)
      return cgroup->second.exclusive.ToString() + "\n";
    return NotFound("there is no {}", path);
  }
  int Write(const std::string& path, std::string_view text) override {
    const int error = Take(path, Trim(text));
    if (error != 0) ++refused;
    return error;
  }
  std::vector<std::string> List(const std::string&) override { return {}; }

  // Sets CPUs as a runtime does that moves a container.
  void SetCpus(const std::string& name, const CpuSet& cpus) {
    cgroups[name].cpus = cpus;
    Recheck();
  }
  CpuSet Effective(const std::string& name) const {
    CpuSet cpus = cgroups.at(name).exclusive;
    for (const auto& [other, cgroup] : cgroups) {
      const bool above = name == other || name.starts_with(other + "/");
      if (!above) continue;
      cpus = cpus & cgroup.exclusive;
      if (bound_to_cpus) cpus = cpus & cgroup.cpus;
    }
    return cpus;
  }
  bool valid(const std::string& name) const {
    const std::string& state = cgroups.at(name).state;
    return state == "isolated" || state == "root";
  }

 private:
  static std::pair<std::string, std::string> Parts(const std::string& path) {
    if (!path.starts_with(kRoot)) return {};
    const size_t slash = path.rfind('/');
    return {slash < kRoot.size() ? "" : path.substr(kRoot.size(), slash - kRoot.size()),
            path.substr(slash + 1)};
  }
  static std::string ParentOf(const std::string& name) {
    return name.substr(0, name.rfind('/') == std::string::npos ? 0 : name.rfind('/'));
  }
  int Take(const std::string& path, std::string_view text) {
    const auto [name, file] = Parts(path);
    const auto cgroup = cgroups.find(name);
    if (cgroup == cgroups.end()) return ENOENT;
    if (file == "cpuset.cpus.partition") return TakeState(name, std::string(text));
    const StatusOr<CpuSet> cpus = CpuSet::Parse(text);
    if (!cpus.ok()) return EINVAL;
    if (file == "cpuset.cpus") {
      SetCpus(name, *cpus);
      return 0;
    }
    if (file != "cpuset.cpus.exclusive" || !has_exclusive) return ENOENT;
    for (const auto& [other, beside] : cgroups) {
      if (other == name || ParentOf(other) != ParentOf(name)) continue;
      if (beside.exclusive.Intersects(*cpus)) return EINVAL;
      if (beside.exclusive.empty() && !beside.cpus.empty() && beside.cpus.IsSubsetOf(*cpus))
        return EINVAL;
    }
    cgroup->second.exclusive = *cpus;
    Recheck();
    return 0;
  }
  int TakeState(const std::string& name, std::string text) {
    Cgroup& cgroup = cgroups.at(name);
    if (text == cgroup.state) return 0;
    if (text == "member") {
      if (valid(name)) ++ended;
      cgroup.state = text;
      return 0;
    }
    const bool above_valid = valid_above(name);
    const CpuSet cpus = above_valid ? cgroup.cpus : Effective(name);
    cgroup.state = cpus.empty() ? text + " invalid (Invalid cpu list in cpuset.cpus.exclusive)"
                                : std::move(text);
    return 0;
  }
  bool valid_above(const std::string& name) const {
    if (ParentOf(name).empty()) return true;  // the root is one
    const auto above = cgroups.find(ParentOf(name));
    return above != cgroups.end() && valid(above->first);
  }
  void Recheck() {
    for (auto& [name, cgroup] : cgroups) {
      if (!valid(name) || valid_above(name) || !Effective(name).empty()) continue;
      cgroup.state += " invalid (Invalid cpu list in cpuset.cpus.exclusive)";
      ++ended;
    }
  }
};

}  // namespace resmgr::test
