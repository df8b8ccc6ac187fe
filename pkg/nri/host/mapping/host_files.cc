// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/host_files.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "pkg/nri/host/mapping/node_paths.h"
#include "pkg/sys/files.h"
#include "pkg/topology/mount_table.h"

// glibc defines macros of these names, which also occur as members.
#undef major
#undef minor

namespace resmgr::nri {
namespace {

constexpr size_t kMostMountBytes = size_t{16} << 20;
constexpr size_t kMostEntries = 16'384;  // entries of /dev
constexpr int kDeepest = 4;

bool IsDevice(const struct stat& status, const WantedDevice& device) {
  const bool right_kind = device.block ? S_ISBLK(status.st_mode) : S_ISCHR(status.st_mode);
  return right_kind && static_cast<int64_t>(gnu_dev_major(status.st_rdev)) == device.major &&
         static_cast<int64_t>(gnu_dev_minor(status.st_rdev)) == device.minor;
}

bool TakeIfDevice(const std::string& path, const WantedDevice& device, FoundDevice& found) {
  constexpr mode_t kPermissions = 07777;
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !IsDevice(status, device)) return false;
  found = {.path = path,
           .mode = status.st_mode & kPermissions,
           .uid = status.st_uid,
           .gid = status.st_gid};
  return true;
}

// The first path below /dev, by kind and numbers.
using DevicePaths = std::map<std::tuple<bool, int64_t, int64_t>, std::string>;

DevicePaths WalkDev() {
  constexpr const char* kDev = "/dev";
  DevicePaths paths;
  struct stat root = {};
  if (::lstat(kDev, &root) != 0) return paths;
  std::error_code error;
  size_t entries = 0;
  for (std::filesystem::recursive_directory_iterator each(kDev, error), end;
       !error && each != end && entries < kMostEntries; each.increment(error), ++entries) {
    struct stat status = {};
    const std::string& path = each->path().native();
    if (::lstat(path.c_str(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) {
      if (status.st_dev != root.st_dev || each.depth() + 1 >= kDeepest) {
        each.disable_recursion_pending();
      }
      continue;
    }
    if (!S_ISBLK(status.st_mode) && !S_ISCHR(status.st_mode)) continue;
    std::string& first = paths[{S_ISBLK(status.st_mode), gnu_dev_major(status.st_rdev),
                                gnu_dev_minor(status.st_rdev)}];
    if (first.empty() || path < first) first = path;
  }
  return paths;
}

Status LookAtMounts(const HostFiles& files, FoundFiles& found) {
  if (files.mounts.empty() && !files.rdt) return OkStatus();
  // A systemd unit may have mounts of its own, which hide the node's.
  auto text = ReadFile("/proc/1/mountinfo", kMostMountBytes);
  const bool of_node = text.ok();
  const auto own_text = ReadFile("/proc/self/mountinfo", kMostMountBytes);
  if (!of_node) text = own_text;
  if (!text.ok()) return Annotate(text.status(), "the node's mounts cannot be read");
  const MountTable node(*text);
  const MountTable own(own_text.value_or(""));
  const NodePaths paths({.node = node, .own = own, .root = of_node ? NodeRoot() : ""});
  for (const Mount& mount : files.mounts) {
    const std::optional<std::string> real = paths.Resolve(mount.host_path);
    const MountTable::Mount* const below = real ? node.FindBelow(*real) : nullptr;
    const std::string unknown = mount.host_path.empty() ? "/" : mount.host_path;
    found.below.push_back(!real ? unknown : below == nullptr ? std::string() : below->point);
  }
  found.rdt = node.HasType("resctrl");
  return OkStatus();
}

}  // namespace

StatusOr<FoundFiles> FindHostFiles(const HostFiles& files, const std::string& profile_path) {
  constexpr mode_t kOnlyOurs = 0700;
  FoundFiles found;
  RESMGR_RETURN_IF_ERROR(LookAtMounts(files, found));
  found.devices = FindDevices(files.devices);
  if (files.seccomp_policy.empty()) return found;
  const std::string directory = profile_path.substr(0, profile_path.rfind('/'));
  (void)::mkdir(directory.c_str(), kOnlyOurs);  // if this fails, the write reports why
  RESMGR_RETURN_IF_ERROR(AtomicWriteFile(profile_path, files.seccomp_policy, 0600));
  found.seccomp_profile = profile_path;
  return found;
}

void RemoveProfilesBut(const std::string& directory, std::string_view prefix) {
  std::error_code error;
  for (std::filesystem::directory_iterator each(directory, error), end; !error && each != end;
       each.increment(error)) {
    const std::string name = each->path().filename();
    const bool profile = name.ends_with(".json") || name.ends_with(".json.tmp");
    if (profile && !name.starts_with(prefix)) ::unlink(each->path().c_str());
  }
}

std::vector<FoundDevice> FindDevices(const std::vector<WantedDevice>& devices) {
  std::vector<FoundDevice> all(devices.size());
  std::optional<DevicePaths> paths;
  for (size_t i = 0; i < devices.size(); ++i) {
    const WantedDevice& device = devices[i];
    const std::string link =
        fmt::format("/dev/{}/{}:{}", device.block ? "block" : "char", device.major, device.minor);
    if (TakeIfDevice(device.container_path, device, all[i]) || TakeIfDevice(link, device, all[i])) {
      continue;
    }
    if (!paths) paths = WalkDev();
    const auto found = paths->find({device.block, device.major, device.minor});
    // The device file may have changed since.
    if (found != paths->end()) (void)TakeIfDevice(found->second, device, all[i]);
  }
  return all;
}

}  // namespace resmgr::nri
