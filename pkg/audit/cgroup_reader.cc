// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_reader.h"

#include <cstddef>
#include <memory>
#include <utility>

#include <dirent.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/cgroups.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

constexpr std::string_view kScope = ".scope";
// Conmon, which watches a container of CRI-O, has a cgroup beside the container's.
constexpr std::string_view kMonitor = "crio-conmon-";
// A file of a cgroup that is longer is not what is expected: a CPU list of 8192 CPUs has 40 KiB at
// worst.
constexpr size_t kMostBytes = size_t{64} << 10;
// A pod's cgroup has one directory for each container; others may put theirs there.
constexpr int kMostEntries = 4096;

bool Exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

// "ID", "PREFIX-ID.scope", "PREFIX:ID".
bool NamesContainer(std::string_view entry, std::string_view id) {
  if (entry.starts_with(kMonitor)) return false;
  if (entry.ends_with(kScope)) entry.remove_suffix(kScope.size());
  if (!entry.ends_with(id)) return false;
  entry.remove_suffix(id.size());
  return entry.empty() || entry.back() == '-' || entry.back() == ':';
}

std::optional<std::string> FindBelow(const std::string& parent, std::string_view id) {
  const std::string plain = fmt::format("{}/{}", parent, id);
  if (Exists(plain)) return plain;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(parent.c_str()), &closedir);
  if (directory == nullptr) return std::nullopt;
  for (int i = 0; i < kMostEntries; ++i) {
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    if (NamesContainer(entry->d_name, id)) return fmt::format("{}/{}", parent, entry->d_name);
  }
  return std::nullopt;
}

// One line of a file; nullopt where there is none.
std::optional<std::string> Line(const std::string& directory, std::string_view file) {
  StatusOr<std::string> text = ReadFile(fmt::format("{}/{}", directory, file), kMostBytes);
  if (!text.ok()) return std::nullopt;
  while (!text->empty() && (text->back() == '\n' || text->back() == ' '))
    text->pop_back();
  return *std::move(text);
}

// An empty list restricts nothing.
template <typename Set>
void ReadList(const std::string& directory, std::string_view file, std::optional<Set>& target) {
  const std::optional<std::string> line = Line(directory, file);
  if (!line || line->empty()) return;
  if (StatusOr<Set> set = Set::Parse(*line); set.ok()) target = *std::move(set);
}

std::optional<int64_t> Number(const std::string& directory, std::string_view file) {
  const std::optional<std::string> line = Line(directory, file);
  return line ? ParseInt(*line) : std::nullopt;
}

void ReadSets(const std::string& directory, std::string_view effective_cpus,
              std::string_view effective_mems, CgroupValues& values) {
  ReadList(directory, "cpuset.cpus", values.set.cpus);
  ReadList(directory, "cpuset.mems", values.set.mems);
  ReadList(directory, effective_cpus, values.effective_cpus);
  ReadList(directory, effective_mems, values.effective_mems);
}

// "max 100000"
void ReadMax(const std::string& directory, CgroupValues& values) {
  const std::optional<std::string> line = Line(directory, "cpu.max");
  if (!line) return;
  const size_t space = line->find(' ');
  const std::string_view quota = std::string_view(*line).substr(0, space);
  values.set.cpu_quota = quota == "max" ? std::optional<int64_t>(-1) : ParseInt(quota);
  if (space != std::string::npos)
    values.set.cpu_period = ParseInt(std::string_view(*line).substr(space + 1));
}

Status CheckNames(std::string_view parent, std::string_view id) {
  if (id.empty() || id.find('/') != std::string_view::npos || id.starts_with('.')) {
    return InvalidArgument("\"{}\" can be no cgroup", Printable(id, 128));
  }
  const std::string slashed = fmt::format("/{}/", parent);
  if (slashed.find("/../") != std::string::npos || slashed.find('\0') != std::string::npos) {
    return InvalidArgument("\"{}\" can be no cgroup", Printable(parent, 256));
  }
  return OkStatus();
}

}  // namespace

CgroupReader::CgroupReader(std::string mount_point) : mount_point_(std::move(mount_point)) {}

StatusOr<CgroupValues> CgroupReader::Read(std::string_view cgroup_parent,
                                          std::string_view id) const {
  RESMGR_RETURN_IF_ERROR(CheckNames(cgroup_parent, id));
  const std::string parent = SlicePath(cgroup_parent);
  const bool unified = Exists(mount_point_ + "/cgroup.controllers");
  const auto find = [&](std::string_view controller) {
    const std::string root =
        controller.empty() ? mount_point_ : fmt::format("{}/{}", mount_point_, controller);
    const auto found = FindBelow(fmt::format("{}/{}", root, parent), id);
    // Where the kubelet names slices and the runtime does not go by systemd: "SLICE:PREFIX:ID".
    return found ? found : FindBelow(root, id);
  };
  const std::optional<std::string> cpuset = find(unified ? "" : "cpuset");
  if (!cpuset) {
    return NotFound("there is no cgroup of {} below {} in {}", id,
                    cgroup_parent.empty() ? "/" : cgroup_parent, mount_point_);
  }
  CgroupValues values;
  if (unified) {
    ReadSets(*cpuset, "cpuset.cpus.effective", "cpuset.mems.effective", values);
    values.cpu_weight = Number(*cpuset, "cpu.weight");
    ReadMax(*cpuset, values);
    return values;
  }
  ReadSets(*cpuset, "cpuset.effective_cpus", "cpuset.effective_mems", values);
  const std::optional<std::string> cpu = find("cpu");
  if (!cpu) return values;
  values.set.cpu_shares = Number(*cpu, "cpu.shares");
  values.set.cpu_quota = Number(*cpu, "cpu.cfs_quota_us");
  values.set.cpu_period = Number(*cpu, "cpu.cfs_period_us");
  return values;
}

}  // namespace resmgr
