// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pkg/usage/usage_counters.h"
#include "pkg/usage/usage_files.h"
#include "pkg/usage/usage_subject.h"

namespace resmgr {

// Reads the kernel's counters of containers, CPUs, memory nodes and resctrl groups, on cgroup v1
// and v2, and on both at once (pressure is in the hierarchy of v2 then). Blocks, so it is used away
// from the event loop, by one thread at a time. It keeps only the places of the cgroups.
class UsageReader {
 public:
  // `host_root` is where sys and proc are: "/", or a directory for tests and containers.
  UsageReader(std::string_view host_root, std::shared_ptr<FileInHand> in_hand);

  UsageCounters Read(const std::vector<UsageSubject>& subjects);

 private:
  // Where one container's files are. Directories end without '/'; "": there is none.
  struct Places {
    std::string cpu{};
    std::string cpuacct{};  // only on v1
    std::string memory{};
    std::string pressure{};  // in the hierarchy of v2
    std::string pod{};       // above `cpu`
    uint64_t seen = 0;       // the last sample that asked for it
    uint64_t search_at = 0;  // without a cgroup: the sample that searches again
    uint64_t searches = 0;
  };
  using PodCpu = std::unordered_map<std::string, CpuStat>;

  Places& PlacesOf(const UsageSubject& subject);
  void Find(const UsageSubject& subject, Places& places);
  // False: the cgroup is gone.
  bool ReadContainer(const Places& places, PodCpu& pods, ContainerCounters& counters);
  void ReadCpu(const Places& places, PodCpu& pods, ContainerCounters& counters);
  void ReadMemory(const Places& places, ContainerCounters& counters);
  void NotePod(const UsageSubject& subject, const std::string& cgroup);
  void ReadPods(UsageCounters& counters);
  void ReadLimits(const std::string& directory, ContainerCounters& counters);
  void ReadPressure(const Places& places, ContainerCounters& counters);
  void ReadInterrupts(const std::vector<UsageSubject>& subjects, UsageCounters& counters);
  void ReadNodes(UsageCounters& counters);
  void ReadMonitors(UsageCounters& counters);
  void ReadMonitor(const std::string& directory, MonitorCounters& monitor);
  void NoteMissing(const UsageCounters& counters);
  void NoteOnce(std::string note);

  const std::string root_;
  const std::string cgroups_;
  const std::shared_ptr<FileInHand> in_hand_;
  bool unified_ = false;
  UsageFiles files_;
  uint64_t sample_ = 0;
  std::map<int, CpuTimes> cpus_;                    // of the last sample
  std::unordered_map<std::string, Places> places_;  // by container id
  // The names of pods by the directories of their cgroups on v2, as long as these exist; "": it has
  // containers of several pods.
  std::map<std::string, std::string> pods_;
  std::set<std::string> noted_;
  std::vector<std::string> notes_;
};

// The CPU time that the calling thread has had.
std::chrono::nanoseconds ThreadCpuTime();

}  // namespace resmgr
