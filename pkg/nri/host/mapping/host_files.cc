// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/host_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "pkg/sys/files.h"

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

// The value of NodePaths::Options::root: "/proc/1/root", or "".
std::string NodeRoot() {
  constexpr const char* kRoot = "/proc/1/root";
  struct stat status = {};
  return ::stat(kRoot, &status) == 0 ? kRoot : "";
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

constexpr int kMostLinks = 40;  // the kernel's limit

// Cuts off the first part of the path and returns it; "" at the path's end.
std::string TakePart(std::string& path) {
  const size_t begin = std::min(path.find_first_not_of('/'), path.size());
  const size_t end = std::min(path.find('/', begin), path.size());
  std::string part = path.substr(begin, end - begin);
  path.erase(0, end);
  return part;
}

bool HasParent(std::string path) {
  for (std::string part = TakePart(path); !part.empty(); part = TakePart(path))
    if (part == "..") return true;
  return false;
}

std::optional<std::string> ReadLink(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  if (size <= 0 || static_cast<size_t>(size) == target.size()) return std::nullopt;
  return std::string(target.data(), static_cast<size_t>(size));
}

// Returns where the path lies in the mounted file system.
std::string InFileSystem(const MountTable::Mount& mount, std::string_view path) {
  const size_t above = mount.point == "/" ? 0 : mount.point.size();
  const std::string_view below = path == "/" ? std::string_view() : path.substr(above);
  return (mount.root == "/" ? std::string() : mount.root) + std::string(below);
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
    // Checked again, since the device file may have changed after the search.
    if (found != paths->end()) (void)TakeIfDevice(found->second, device, all[i]);
  }
  return all;
}

bool NodePaths::IsNodes(std::string_view path) const {
  if (!options_.root.empty()) return true;
  const MountTable::Mount* const own = options_.own.Find(path);
  const MountTable::Mount* const node = options_.node.Find(path);
  return own != nullptr && node != nullptr && own->major == node->major &&
         own->minor == node->minor && InFileSystem(*own, path) == InFileSystem(*node, path);
}

// Part by part, so that each link is resolved below the node's root.
std::optional<std::string> NodePaths::Walk(std::string path) const {
  std::string done;  // "" is the root
  int links = 0;
  for (std::string part = TakePart(path); !part.empty(); part = TakePart(path)) {
    if (part == ".") continue;
    if (part == "..") {
      done.erase(std::min(done.rfind('/'), done.size()));
      continue;
    }
    const std::string next = fmt::format("{}/{}", done, part);
    struct stat status = {};
    if (::lstat((options_.root + next).c_str(), &status) != 0) {
      // At a missing part the kernel would fail, while runtimes that clean paths as text go on.
      if (errno != ENOENT || HasParent(path) || !IsNodes(done.empty() ? "/" : done)) {
        return std::nullopt;
      }
      std::string rest = std::filesystem::path(next + path).lexically_normal().native();
      if (rest.ends_with('/')) rest.pop_back();
      return rest;
    }
    if (!S_ISLNK(status.st_mode)) {
      done = next;
      continue;
    }
    auto target = ReadLink(options_.root + next);
    if (!target || ++links > kMostLinks || !IsNodes(next)) return std::nullopt;
    if (target->starts_with('/')) done.clear();
    path.insert(0, *target);
    if (path.size() > PATH_MAX) return std::nullopt;
  }
  if (done.empty()) done = "/";
  return IsNodes(done) ? std::optional(std::move(done)) : std::nullopt;
}

std::optional<std::string> NodePaths::Resolve(std::string_view path) const {
  if (!path.starts_with('/') || path.size() > PATH_MAX) return std::nullopt;
  const std::string text(path);
  std::optional<std::string> real = Walk(text);
  // CRI-O removes ".." textually, before it looks for links; containerd follows the kernel.
  if (real && HasParent(text) &&
      Walk(std::filesystem::path(text).lexically_normal().native()) != real) {
    return std::nullopt;
  }
  return real;
}

}  // namespace resmgr::nri
