// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/cgroups.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/topology/numa_stat.h"
#include "pkg/usage/usage_figures.h"

namespace resmgr {
namespace {

// Processors have some hundred ids for monitoring.
constexpr size_t kMostMonitors = 1024;
constexpr size_t kMostNotes = 32;
// Limits the pause, in samples, between searches for a missing cgroup: each may read thousands of
// names.
constexpr uint64_t kLongestSearchPause = 32;
// From this percentage of a CPU's time on, its interrupts are counted by name.
constexpr double kHotPercent = 5;
// Limits of this size and more mean none: cgroup v1 then writes the largest number of pages.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

// The prefix for files of the host; "" for the host itself, given as "/" or "".
std::string PrefixOf(std::string_view host_root) {
  while (host_root.ends_with('/'))
    host_root.remove_suffix(1);
  return std::string(host_root);
}

// A sum that is unknown if one of its parts is: leaving the part out would make the sum fall and
// rise.
class Sum {
 public:
  void Add(const std::optional<uint64_t>& part) {
    uint64_t total = 0;
    whole_ = whole_ && part && !__builtin_add_overflow(total_.value_or(0), *part, &total);
    total_ = total;
  }
  std::optional<uint64_t> total() const { return whole_ ? total_ : std::nullopt; }

 private:
  bool whole_ = true;
  std::optional<uint64_t> total_{};
};

bool Exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

constexpr size_t kMostErrors = 8;

// Whether the error means that the container has ended, or that the kernel or this cgroup does not
// have the file.
bool IsAbsent(int error) {
  return error == ENOENT || error == ENODEV || error == ENOTDIR || error == EOPNOTSUPP;
}

}  // namespace

std::chrono::nanoseconds ThreadCpuTime() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

UsageReader::UsageReader(std::string_view host_root, std::shared_ptr<FileInHand> in_hand)
    : root_(PrefixOf(host_root)),
      cgroups_(root_ + "/sys/fs/cgroup"),
      in_hand_(in_hand),
      files_(std::move(in_hand)) {}

UsageCounters UsageReader::Read(const std::vector<UsageSubject>& subjects) {
  const size_t files_before = files_.files();
  ++sample_;
  in_hand_->Set(cgroups_);
  unified_ = IsUnifiedMount(cgroups_);
  UsageCounters counters{.wall = std::chrono::system_clock::now(), .unified = unified_};
  if (const auto text = files_.Read(root_ + "/proc/stat", UsageFiles::TooLong::kCutOff))
    counters.cpus = ParseProcStat(*text);
  counters.at = std::chrono::steady_clock::now();
  ReadInterrupts(subjects, counters);
  PodCpu pods;
  for (const UsageSubject& subject : subjects) {
    Places& places = PlacesOf(subject);
    if (places.cpu.empty()) continue;
    ContainerCounters container;
    if (ReadContainer(places, pods, container)) {
      NotePod(subject, places.pod);
      counters.containers.emplace(subject.id, std::move(container));
    } else {
      // The container has ended or has a new cgroup, so the next sample searches again.
      places.cpu.clear();
      places.search_at = sample_ + 1;
    }
  }
  std::erase_if(places_, [this](const auto& known) { return known.second.seen != sample_; });
  ReadPods(counters);
  ReadNodes(counters);
  ReadMonitors(counters);
  if (!subjects.empty()) NoteMissing(counters);
  for (std::string& error : files_.TakeErrors())
    NoteOnce(std::move(error));
  counters.notes = std::exchange(notes_, {});
  counters.files = files_.files() - files_before;
  return counters;
}

UsageReader::Places& UsageReader::PlacesOf(const UsageSubject& subject) {
  Places& places = places_[subject.id];
  places.seen = sample_;
  if (!places.cpu.empty() || places.search_at > sample_) return places;
  Find(subject, places);
  if (places.cpu.empty()) {
    places.search_at = sample_ + std::min(kLongestSearchPause,
                                          uint64_t{1} << std::min<uint64_t>(places.searches, 5));
    ++places.searches;
  } else {
    places.searches = 0;
  }
  return places;
}

void UsageReader::Find(const UsageSubject& subject, Places& places) {
  if (!CheckCgroupNames(subject.cgroup_parent, subject.id).ok()) return;
  in_hand_->Set(cgroups_);
  const std::string_view controller = unified_ ? "" : "cpuset";
  const auto found = FindContainerCgroup(cgroups_, controller, subject.cgroup_parent, subject.id);
  if (!found) return;
  // The path from the root of the hierarchy, without slashes in front.
  std::string path = found->substr(cgroups_.size() + (unified_ ? 0 : 1 + controller.size()));
  path.erase(0, path.find_first_not_of('/'));
  if (unified_) {
    places.cpu = places.memory = places.pressure = fmt::format("{}/{}", cgroups_, path);
  } else {
    places.cpu = fmt::format("{}/cpu/{}", cgroups_, path);
    places.cpuacct = fmt::format("{}/cpuacct/{}", cgroups_, path);
    places.memory = fmt::format("{}/memory/{}", cgroups_, path);
    const std::string hybrid = fmt::format("{}/unified/{}", cgroups_, path);
    places.pressure = Exists(hybrid) ? hybrid : "";
  }
  places.pod = places.cpu.substr(0, places.cpu.rfind('/'));
}

bool UsageReader::ReadContainer(const Places& places, PodCpu& pods, ContainerCounters& counters) {
  counters.pod_cgroup = OnHost(places.pod);
  counters.cgroup = OnHost(places.memory);
  ReadCpu(places, pods, counters);
  ReadMemory(places, counters);
  ReadPressure(places, counters);
  return counters.cpu.usage_ns || counters.memory_bytes;
}

std::string UsageReader::OnHost(const std::string& path) const {
  return path.starts_with(root_) ? path.substr(root_.size()) : path;
}

void UsageReader::ReadCpu(const Places& places, PodCpu& pods, ContainerCounters& counters) {
  if (const auto text = files_.Read(places.cpu + "/cpu.stat")) counters.cpu = ParseCpuStat(*text);
  if (!unified_) {
    if (const auto text = files_.Read(places.cpuacct + "/cpuacct.usage"))
      counters.cpu.usage_ns = ParseCount(*text);
  }
  counters.read_at = std::chrono::steady_clock::now();
  const auto [pod, added] = pods.try_emplace(places.pod);
  if (added) {
    if (const auto text = files_.Read(places.pod + "/cpu.stat")) pod->second = ParseCpuStat(*text);
  }
  counters.pod_cpu = pod->second;
}

void UsageReader::ReadMemory(const Places& places, ContainerCounters& counters) {
  const std::string& directory = places.memory;
  if (const auto text =
          files_.Read(directory + (unified_ ? "/memory.current" : "/memory.usage_in_bytes")))
    counters.memory_bytes = ParseCount(*text);
  if (const auto text = files_.Read(directory + "/memory.numa_stat"))
    counters.memory_by_node = ParseNumaStat(*text, unified_, true).All();
  if (const auto text =
          files_.Read(directory + (unified_ ? "/memory.events" : "/memory.oom_control")))
    counters.events = ParseMemoryEvents(*text);
  if (counters.events.oom_kills.value_or(0) > 0 || counters.events.high.value_or(0) > 0)
    ReadLimits(directory, counters);
}

// Most containers never reach their limits, so these files are not read for all.
void UsageReader::ReadLimits(const std::string& directory, ContainerCounters& counters) {
  const auto limit = [&](const char* file) -> std::optional<uint64_t> {
    const auto text = files_.Read(fmt::format("{}/{}", directory, file));
    const auto bytes = text ? ParseCount(*text) : std::nullopt;  // "max": unlimited
    return bytes && *bytes < kNoLimit ? bytes : std::nullopt;
  };
  counters.memory_limit = limit(unified_ ? "memory.max" : "memory.limit_in_bytes");
  if (unified_) counters.memory_high = limit("memory.high");
}

void UsageReader::NotePod(const UsageSubject& subject, const std::string& cgroup) {
  if (!unified_) return;
  std::string name = fmt::format("{}/{}", subject.namespace_name, subject.pod);
  const auto [known, added] = pods_.try_emplace(cgroup, name);
  if (!added && known->second != name) known->second = "";
}

// Also reads pods without a running container: if its processes were killed, it may be starting
// again.
void UsageReader::ReadPods(UsageCounters& counters) {
  std::erase_if(pods_, [&](const auto& pod) {
    const auto& [cgroup, name] = pod;
    if (name.empty()) return !Exists(cgroup);
    const auto text = files_.Read(cgroup + "/memory.events");
    if (!text) return true;
    if (const auto kills = ParseMemoryEvents(*text).oom_kills)
      counters.pods[OnHost(cgroup)] = {.name = name, .oom_kills = *kills};
    return false;
  });
}

void UsageReader::ReadPressure(const Places& places, ContainerCounters& counters) {
  if (places.pressure.empty()) return;
  if (const auto text = files_.Read(places.pressure + "/cpu.pressure"))
    counters.cpu_pressure = ParsePressure(*text);
  if (const auto text = files_.Read(places.pressure + "/memory.pressure"))
    counters.memory_pressure = ParsePressure(*text);
}

// Reads /proc/interrupts only while some exclusive CPU is busy with interrupts according to
// /proc/stat. The file has a column for each CPU and a line for each queue of a device, so it costs
// the kernel milliseconds on large machines.
void UsageReader::ReadInterrupts(const std::vector<UsageSubject>& subjects,
                                 UsageCounters& counters) {
  const std::map<int, CpuTimes> before = std::exchange(cpus_, counters.cpus);
  CpuSet exclusive;
  for (const UsageSubject& subject : subjects)
    exclusive |= subject.exclusive;
  CpuSet hot;
  for (const int cpu : exclusive) {
    const auto old = before.find(cpu);
    const auto now = counters.cpus.find(cpu);
    if (old == before.end() || now == counters.cpus.end()) continue;
    if (IrqPercent(old->second, now->second) >= kHotPercent) hot |= CpuSet{cpu};
  }
  if (hot.empty()) return;
  if (const auto text = files_.ReadLong(root_ + "/proc/interrupts"))
    counters.interrupts = ParseInterrupts(*text, hot);
}

void UsageReader::ReadNodes(UsageCounters& counters) {
  constexpr std::string_view kNode = "node";
  const std::string directory = root_ + "/sys/devices/system/node";
  in_hand_->Set(directory);
  for (const std::string& name : NamesIn(directory)) {
    if (!name.starts_with(kNode)) continue;
    const std::optional<int> id =
        ParseId(std::string_view(name).substr(kNode.size()), NodeSet::kMaxId);
    if (!id) continue;
    NodeCounters& node = counters.nodes[*id];
    if (const auto text = files_.Read(fmt::format("{}/{}/meminfo", directory, name)))
      ParseNodeMeminfo(*text, node);
    if (const auto text = files_.Read(fmt::format("{}/{}/numastat", directory, name)))
      ParseNodeNumastat(*text, node);
  }
}

// Reads control groups and monitoring groups, those that others made included; changes nothing.
void UsageReader::ReadMonitors(UsageCounters& counters) {
  const std::string root = root_ + "/sys/fs/resctrl";
  in_hand_->Set(root);
  if (!Exists(root + "/mon_data")) return;
  const auto read = [&](const std::string& group) {
    const std::string directory = root + group + "/mon_data";
    if (!Exists(directory)) return;
    if (counters.monitors.size() >= kMostMonitors)
      return NoteOnce(fmt::format(
          "there are more than {} groups of resctrl: the others have no metrics", kMostMonitors));
    ReadMonitor(directory, counters.monitors[group.empty() ? "/" : group.substr(1)]);
  };
  const auto read_all = [&](const std::string& group) {
    read(group);
    for (const std::string& name : NamesIn(root + group + "/mon_groups"))
      read(fmt::format("{}/mon_groups/{}", group, name));
  };
  read_all("");
  for (const std::string& name : NamesIn(root)) {
    if (name != "mon_data" && name != "mon_groups" && name != "info") read_all("/" + name);
  }
}

void UsageReader::ReadMonitor(const std::string& directory, MonitorCounters& monitor) {
  const auto count = [&](const std::string& domain, const char* name) -> std::optional<uint64_t> {
    const auto text = files_.Read(fmt::format("{}/{}/{}", directory, domain, name));
    return text ? ParseCount(*text) : std::nullopt;
  };
  Sum cache;
  Sum traffic;
  for (const std::string& domain : NamesIn(directory)) {
    if (!domain.starts_with("mon_L3_")) continue;
    cache.Add(count(domain, "llc_occupancy"));
    traffic.Add(count(domain, "mbm_total_bytes"));
  }
  monitor = {.llc_bytes = cache.total(), .memory_traffic_bytes = traffic.total()};
}

void UsageReader::NoteMissing(const UsageCounters& counters) {
  if (counters.containers.empty()) {
    NoteOnce(fmt::format("no cgroup of a container is found in {}: nothing is known of their use",
                         cgroups_));
    return;
  }
  const auto note = [&](std::string_view what, auto has) {
    if (std::ranges::none_of(counters.containers,
                             [&](const auto& each) { return has(each.second); }))
      NoteOnce(fmt::format("the cgroups of containers in {} have no {}", cgroups_, what));
  };
  note("CPU use", [](const auto& container) { return container.cpu.usage_ns.has_value(); });
  note("cpu.pressure (cgroup v2 with CONFIG_PSI has it)",
       [](const auto& container) { return container.cpu_pressure.has_value(); });
  note("memory.numa_stat", [](const auto& container) { return !container.memory_by_node.empty(); });
}

void UsageReader::NoteOnce(std::string note) {
  if (noted_.size() >= kMostNotes || !noted_.insert(note).second) return;
  notes_.push_back(std::move(note));
}

UsageFiles::UsageFiles(std::shared_ptr<FileInHand> in_hand)
    : in_hand_(std::move(in_hand)),
      buffer_(std::make_unique_for_overwrite<char[]>(kMostBytes + 1)) {}

std::optional<std::string_view> UsageFiles::Read(const std::string& path, TooLong too_long) {
  in_hand_->Set(path);
  const auto fail = [&](int error) {
    if (!IsAbsent(error)) Fail(path, std::strerror(error));
    return std::nullopt;
  };
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;
  const UniqueFd fd(::open(path.c_str(), kFlags));
  if (!fd.valid()) return fail(errno);
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return fail(errno);
  if (!S_ISREG(found.st_mode)) {
    Fail(path, "not a regular file");
    return std::nullopt;
  }
  ++files_;
  size_t size = 0;
  while (size <= kMostBytes) {
    const ssize_t got = ::read(fd.get(), buffer_.get() + size, kMostBytes + 1 - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno);
    if (got == 0) return std::string_view(buffer_.get(), size);
    size += static_cast<size_t>(got);
  }
  if (too_long == TooLong::kCutOff) return std::string_view(buffer_.get(), kMostBytes);
  Fail(path, fmt::format("longer than {} bytes", kMostBytes));
  return std::nullopt;
}

std::optional<std::string> UsageFiles::ReadLong(const std::string& path) {
  in_hand_->Set(path);
  StatusOr<std::string> text = ReadFile(path, kMostLongBytes);
  if (text.ok()) {
    ++files_;
    return *std::move(text);
  }
  if (text.status().code() != StatusCode::kNotFound) Fail(path, Message(text.status()));
  return std::nullopt;
}

void UsageFiles::Fail(const std::string& path, std::string_view why) {
  if (errors_.size() < kMostErrors)
    errors_.push_back(fmt::format("{} is not read: {}", Printable(path), why));
}

std::vector<std::string> UsageFiles::TakeErrors() {
  return std::exchange(errors_, {});
}

}  // namespace resmgr
