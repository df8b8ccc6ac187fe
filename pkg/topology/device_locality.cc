// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/device_locality.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFile = size_t{64} * 1024;
constexpr int kMaxLevels = 32;  // of directories above a device
constexpr int kMaxParts = 64;   // of one device
constexpr int kMaxNesting = 4;  // of devices made of devices
constexpr std::string_view kVfio = "/dev/vfio/";

StatusOr<struct stat> Stat(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return NotFound("{}", path);
  return info;
}

void Merge(std::optional<Locality>& all, const std::optional<Locality>& one) {
  if (!one) return;
  if (!all) all.emplace();
  all->cpus |= one->cpus;
  all->nodes |= one->nodes;
}

}  // namespace

DeviceLocality::DeviceLocality(Options options) : options_(std::move(options)) {}

StatusOr<DeviceNumber> DeviceLocality::NodeNumber(const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(const struct stat info, Stat(path));
  if (!S_ISBLK(info.st_mode) && !S_ISCHR(info.st_mode)) return NotFound("{}: no device", path);
  return DeviceNumber{S_ISBLK(info.st_mode), major(info.st_rdev), minor(info.st_rdev)};
}

StatusOr<DeviceNumber> DeviceLocality::HolderNumber(const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(const struct stat info, Stat(path));
  if (major(info.st_dev) == 0) return NotFound("{}: on no device", path);
  return DeviceNumber{true, major(info.st_dev), minor(info.st_dev)};
}

std::optional<Locality> DeviceLocality::OfDevice(const std::string& path) const {
  // The node of a group stands for all devices in it.
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
  if (depth < kMaxNesting) {
    const std::optional<Locality> parts = OfAll((here / "slaves").string(), depth + 1);
    if (parts) return parts;
  }
  for (int level = 0; level < kMaxLevels && here != top && here.has_relative_path(); ++level) {
    const std::optional<Locality> found = ReadLocality(here.string());
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

// A device without a node says -1, and then its list of CPUs is that of all.
std::optional<Locality> DeviceLocality::ReadLocality(const std::string& directory) const {
  const StatusOr<std::string> node = ReadFile(directory + "/numa_node", kMaxFile);
  const std::optional<int64_t> id = node.ok() ? ParseInt(Trim(*node)) : std::nullopt;
  if (!id || *id < 0 || *id > NodeSet::kMaxId) return std::nullopt;
  Locality locality;
  locality.nodes.Add(static_cast<int>(*id));
  const StatusOr<std::string> list = ReadFile(directory + "/local_cpulist", kMaxFile);
  if (list.ok()) locality.cpus = CpuSet::Parse(Trim(*list)).value_or(CpuSet());
  return locality;
}

bool MountTellsLocality(std::string_view container_path, std::string_view host_path,
                        bool read_only) {
  constexpr std::array<std::string_view, 3> kOfTheSystem = {"/etc/", "/lib", "/usr/lib"};
  constexpr std::array<std::string_view, 3> kOfTheKubelet = {
      "kubernetes.io~configmap", "kubernetes.io~secret", "kubernetes.io~projected"};
  if (read_only || container_path == "/dev/termination-log") return false;
  const auto within = [container_path](std::string_view prefix) {
    return container_path.starts_with(prefix);
  };
  const auto named = [host_path](std::string_view part) {
    return host_path.find(part) != std::string_view::npos;
  };
  return std::none_of(kOfTheSystem.begin(), kOfTheSystem.end(), within) &&
         std::none_of(kOfTheKubelet.begin(), kOfTheKubelet.end(), named);
}

}  // namespace resmgr
