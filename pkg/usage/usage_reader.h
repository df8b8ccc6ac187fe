// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pkg/usage/usage_counters.h"

namespace resmgr {

// The file that is being read now, for use by a thread that waits for the reader. Thread-safe.
class FileInHand {
 public:
  void Set(std::string_view path) {
    const std::lock_guard lock(mutex_);
    path_ = path;
  }
  std::string Get() const {
    const std::lock_guard lock(mutex_);
    return path_;
  }

 private:
  mutable std::mutex mutex_;
  std::string path_;
};

// Reads many small files of the kernel into one buffer. Only regular files are read, no links, and
// opening never waits. Thread-compatible.
class UsageFiles {
 public:
  // The longest file. Longer files are left out or, with kCutOff, cut off.
  static constexpr size_t kMostBytes = size_t{256} << 10;
  enum class TooLong { kLeaveOut, kCutOff };

  explicit UsageFiles(std::shared_ptr<FileInHand> in_hand);

  // The content, valid until the next call; nullopt if the file does not exist or cannot be read.
  std::optional<std::string_view> Read(const std::string& path,
                                       TooLong too_long = TooLong::kLeaveOut);
  // For files that may be much longer but are seldom read.
  static constexpr size_t kMostLongBytes = size_t{8} << 20;
  std::optional<std::string> ReadLong(const std::string& path);
  size_t files() const { return files_; }
  // Takes the errors since the last call: files that exist and could not be read, and why. Limited
  // to the first few.
  std::vector<std::string> TakeErrors();

 private:
  void Fail(const std::string& path, std::string_view why);

  const std::shared_ptr<FileInHand> in_hand_;
  const std::unique_ptr<char[]> buffer_;
  size_t files_ = 0;
  std::vector<std::string> errors_;
};

// Reads the kernel's counters of containers, CPUs, memory nodes and resctrl groups, on cgroup v1,
// on v2, and on both at once (then pressure is in the hierarchy of v2). Blocks, so it is used away
// from the event loop, by one thread at a time. Between samples it keeps the places of the cgroups,
// the names of pods and the times of CPUs.
class UsageReader {
 public:
  // `host_root` is the directory that has sys and proc: "/", or another one for tests and in
  // containers.
  UsageReader(std::string_view host_root, std::shared_ptr<FileInHand> in_hand);

  UsageCounters Read(const std::vector<UsageSubject>& subjects);

 private:
  // Where one container's files are. Directories end without '/'; "": there is none.
  struct Places {
    std::string cpu{};
    std::string cpuacct{};  // only on v1
    std::string memory{};
    std::string pressure{};  // in the hierarchy of v2
    std::string pod{};       // the cgroup above `cpu`
    uint64_t seen = 0;       // the last sample with this container
    uint64_t search_at = 0;  // the sample that searches again for a missing cgroup
    uint64_t searches = 0;
  };
  using PodCpu = std::unordered_map<std::string, CpuStat>;

  Places& PlacesOf(const UsageSubject& subject);
  void Find(const UsageSubject& subject, Places& places);
  // False: the cgroup is gone.
  bool ReadContainer(const Places& places, PodCpu& pods, ContainerCounters& counters);
  void ReadCpu(const Places& places, PodCpu& pods, ContainerCounters& counters);
  void ReadMemory(const Places& places, ContainerCounters& counters);
  // The path as a shell on the host has it, for advice: without the host's root.
  std::string OnHost(const std::string& path) const;
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
  // The names of pods by the directories of their cgroups on v2, as long as these exist; "": the
  // directory has containers of several pods.
  std::map<std::string, std::string> pods_;
  std::set<std::string> noted_;
  std::vector<std::string> notes_;
};

// The CPU time that the calling thread has used.
std::chrono::nanoseconds ThreadCpuTime();

}  // namespace resmgr
