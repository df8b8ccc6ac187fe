// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/device_locality.h"

#include <algorithm>
#include <array>
#include <climits>
#include <deque>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"
#include "pkg/topology/kernel_lists.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLevels = 32;  // limit of directories above a device
constexpr int kMaxParts = 64;   // limit of parts of one device
constexpr int kMaxNesting = 4;  // limit of levels of devices within devices
constexpr std::string_view kVfio = "/dev/vfio/";

constexpr size_t kMaxMountInfo = size_t{16} << 20;
constexpr int kMaxLinks = 40;  // limit of links to follow, as in the kernel
constexpr std::string_view kDev = "/dev/";

bool HasDotDot(std::string_view path) {
  return path.find("/../") != std::string_view::npos || path.ends_with("/..");
}

// Whether `path` is `directory` itself or lies below it.
bool IsAtOrBelow(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

// Whether the mount's files are on this machine, so that access waits at most for a local disk.
bool IsLocal(const MountTable::Mount& mount) {
  if (mount.type.starts_with("fuse")) return false;
  return mount.major != 0 || mount.type == "tmpfs" || mount.type == "devtmpfs";
}

void PushFront(std::string_view path, std::deque<std::string>& names) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end > 0) parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  names.insert(names.begin(), parts.begin(), parts.end());
}

// The path with symbolic links resolved up to the first part that is not on a local file system;
// that part and all behind it are taken by name.
StatusOr<std::string> FollowLinks(const MountTable& mounts, const std::string& path) {
  std::deque<std::string> names;
  PushFront(path, names);
  std::string here;
  bool local = true;
  for (int links = 0; !names.empty();) {
    const std::string name = std::move(names.front());
    names.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      here.resize(std::min(here.rfind('/'), here.size()));
      continue;
    }
    std::string next = here;
    next.append("/").append(name);
    const MountTable::Mount* const mount = mounts.Find(next);
    local = local && mount != nullptr && IsLocal(*mount);
    std::array<char, PATH_MAX> target{};
    // A mount point is not a link, and reading it might wait for the mounted file system.
    const ssize_t size =
        local && mount->point != next ? ::readlink(next.c_str(), target.data(), target.size()) : -1;
    if (size < 0) {
      here = std::move(next);
      continue;
    }
    if (++links > kMaxLinks) return NotFound("{}: too many links", path);
    const std::string_view text(target.data(), static_cast<size_t>(size));
    if (text.starts_with('/')) here.clear();
    PushFront(text, names);
  }
  return here.empty() ? "/" : here;
}

void Merge(std::optional<Locality>& all, const std::optional<Locality>& one) {
  if (!one) return;
  if (!all) all.emplace();
  all->cpus |= one->cpus;
  all->nodes |= one->nodes;
}

// The next word of the line; "" at its end.
std::string_view NextWord(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// The kernel writes space, tab, line break and backslash as \ooo.
std::string Unescape(std::string_view text) {
  constexpr size_t kDigits = 3;
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, kDigits);
    const bool octal = digits.size() == kDigits &&
                       std::all_of(digits.begin(), digits.end(),
                                   [](char digit) { return digit >= '0' && digit <= '7'; });
    if (text[i] != '\\' || !octal) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + digits[2] - '0');
    i += kDigits;
  }
  return plain;
}

// A line of mountinfo: "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw"
std::optional<MountTable::Mount> ParseMount(std::string_view line) {
  const auto id = ParseInt(NextWord(line));
  const auto parent = ParseInt(NextWord(line));
  const std::string_view device = NextWord(line);
  const size_t colon = device.find(':');
  if (!id || !parent || colon == std::string_view::npos) return std::nullopt;
  const auto major = ParseUint(device.substr(0, colon));
  const auto minor = ParseUint(device.substr(colon + 1));
  MountTable::Mount mount;
  mount.root = Unescape(NextWord(line));
  mount.point = Unescape(NextWord(line));
  if (!major || !minor || !mount.point.starts_with('/')) return std::nullopt;
  std::string_view word = NextWord(line);
  while (word != "-" && !line.empty())
    word = NextWord(line);
  mount.type = NextWord(line);
  mount.id = static_cast<int>(*id);
  mount.parent = static_cast<int>(*parent);
  mount.major = static_cast<unsigned>(*major);
  mount.minor = static_cast<unsigned>(*minor);
  return mount;
}

}  // namespace

DeviceLocality::DeviceLocality(Options options) : options_(std::move(options)) {}

StatusOr<DeviceNumber> DeviceLocality::NodeNumber(const std::string& path) {
  struct stat info {};
  if (!path.starts_with(kDev) || HasDotDot(path) || ::stat(path.c_str(), &info) != 0) {
    return NotFound("{}", path);
  }
  if (!S_ISBLK(info.st_mode) && !S_ISCHR(info.st_mode)) return NotFound("{}: no device", path);
  return DeviceNumber{S_ISBLK(info.st_mode), major(info.st_rdev), minor(info.st_rdev)};
}

std::function<StatusOr<DeviceNumber>(const std::string& path)> DeviceLocality::HolderNumbers() {
  return [mounts = std::optional<MountTable>()](
             const std::string& path) mutable -> StatusOr<DeviceNumber> {
    if (!path.starts_with('/') || path.size() >= PATH_MAX) return NotFound("{}", path);
    if (!mounts) {
      RESMGR_ASSIGN_OR_RETURN(const std::string text,
                              ReadFile("/proc/self/mountinfo", kMaxMountInfo));
      mounts.emplace(text);
    }
    RESMGR_ASSIGN_OR_RETURN(const std::string real, FollowLinks(*mounts, path));
    const MountTable::Mount* const mount = mounts->Find(real);
    if (mount == nullptr || mount->major == 0) return NotFound("{}: on no device", path);
    return DeviceNumber{true, mount->major, mount->minor};
  };
}

std::optional<Locality> DeviceLocality::OfDevice(const std::string& path) const {
  // The device node of a VFIO group stands for all devices in the group.
  if (path.starts_with(kVfio) && ParseUint(std::string_view(path).substr(kVfio.size()))) {
    const std::string group = path.substr(kVfio.size());
    return OfAll(fmt::format("{}/kernel/iommu_groups/{}/devices", options_.sysfs, group), 0);
  }
  const StatusOr<DeviceNumber> number = options_.node_number(path);
  return number.ok() ? OfNumber(*number) : std::nullopt;
}

std::optional<Locality> DeviceLocality::OfHostPath(const std::string& path) const {
  const StatusOr<DeviceNumber> number = options_.holder_number(path);
  return number.ok() ? OfNumber(*number) : std::nullopt;
}

std::optional<Locality> DeviceLocality::OfNumber(const DeviceNumber& number) const {
  return OfDirectory(fmt::format("{}/dev/{}/{}:{}", options_.sysfs, number.block ? "block" : "char",
                                 number.major, number.minor),
                     0);
}

std::optional<Locality> DeviceLocality::OfDirectory(const std::string& directory, int depth) const {
  std::error_code error;
  const fs::path top = fs::canonical(options_.sysfs, error);
  if (error) return std::nullopt;
  fs::path here = fs::canonical(directory, error);
  if (error) return std::nullopt;
  for (int level = 0; level < kMaxLevels && here != top && here.has_relative_path(); ++level) {
    // A partition has no parts itself: the device above it has them.
    std::optional<Locality> found;
    if (depth < kMaxNesting) found = OfAll((here / "slaves").string(), depth + 1);
    if (!found) found = ReadLocality(here.string());
    if (found) return found;
    here = here.parent_path();
  }
  return std::nullopt;
}

std::optional<Locality> DeviceLocality::OfAll(const std::string& directory, int depth) const {
  std::error_code error;
  std::optional<Locality> all;
  int parts = 0;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator() && parts < kMaxParts; entry.increment(error)) {
    ++parts;
    Merge(all, OfDirectory(entry->path().string(), depth));
  }
  return all;
}

// If a device has no node, numa_node reads -1, and its list of CPUs has all CPUs.
std::optional<Locality> DeviceLocality::ReadLocality(const std::string& directory) const {
  const std::optional<int64_t> id = ParseInt(ReadKernelText(directory + "/numa_node").value_or(""));
  if (!id || *id < 0 || *id > NodeSet::kMaxId) return std::nullopt;
  Locality locality;
  locality.nodes.Add(static_cast<int>(*id));
  locality.cpus = ReadKernelCpus(directory + "/local_cpulist").value_or(CpuSet());
  return locality;
}

bool MountTellsLocality(std::string_view container_path, std::string_view host_path,
                        bool read_only) {
  // Below / and below /usr.
  constexpr std::array<std::string_view, 5> kOfLibraries = {"/lib", "/lib32", "/lib64", "/libx32",
                                                            "/libexec"};
  constexpr std::array<std::string_view, 3> kOfTheKubelet = {
      "/kubernetes.io~configmap/", "/kubernetes.io~secret/", "/kubernetes.io~projected/"};
  if (read_only || container_path == "/dev/termination-log") return false;
  if (container_path.starts_with("/etc/")) return false;
  std::string_view path = container_path;
  if (constexpr std::string_view kUsr = "/usr"; IsAtOrBelow(path, kUsr))
    path.remove_prefix(kUsr.size());
  const auto above = [path](std::string_view directory) { return IsAtOrBelow(path, directory); };
  const auto within = [host_path](std::string_view directory) {
    return host_path.find(directory) != std::string_view::npos;
  };
  return std::ranges::none_of(kOfLibraries, above) && std::ranges::none_of(kOfTheKubelet, within);
}

MountTable::MountTable(std::string_view mountinfo) {
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    if (auto mount = ParseMount(mountinfo.substr(0, end))) mounts_.push_back(*std::move(mount));
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
  }
}

const MountTable::Mount* MountTable::Find(std::string_view path) const {
  const auto known = [this](int id) {
    return std::any_of(mounts_.begin(), mounts_.end(),
                       [id](const Mount& mount) { return mount.id == id; });
  };
  // The start: a mount whose parent is not in the table.
  const Mount* here = nullptr;
  for (const Mount& mount : mounts_) {
    const bool top = mount.parent == mount.id || !known(mount.parent);
    if (top && IsAtOrBelow(path, mount.point) &&
        (here == nullptr || mount.point.size() >= here->point.size())) {
      here = &mount;
    }
  }
  // Goes down from there. The first mount on the way hides those further below on the same parent.
  for (size_t steps = 0; here != nullptr && steps < mounts_.size(); ++steps) {
    const Mount* next = nullptr;
    for (const Mount& mount : mounts_) {
      if (mount.parent != here->id || mount.id == here->id || !IsAtOrBelow(path, mount.point))
        continue;
      if (next == nullptr || mount.point.size() < next->point.size()) next = &mount;
    }
    if (next == nullptr) return here;
    here = next;
  }
  return here;
}

const MountTable::Mount* MountTable::FindBelow(std::string_view path) const {
  const Mount* const holder = Find(path);
  if (holder == nullptr) return nullptr;
  const auto found = std::ranges::find_if(mounts_, [&](const Mount& mount) {
    return mount.parent == holder->id && mount.id != holder->id && mount.point != path &&
           IsAtOrBelow(mount.point, path);
  });
  return found == mounts_.end() ? nullptr : &*found;
}

bool MountTable::HasType(std::string_view type) const {
  return std::ranges::any_of(mounts_, [type](const Mount& mount) { return mount.type == type; });
}

}  // namespace resmgr
