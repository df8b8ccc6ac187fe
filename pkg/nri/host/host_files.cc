// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/host_files.h"

#include <cstdint>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pkg/sys/files.h"

// glibc makes macros of these names, which others use, too.
#undef major
#undef minor

namespace resmgr::nri {
namespace {

bool IsDevice(const std::string& path, const WantedDevice& device) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return false;
  const bool right_kind = device.block ? S_ISBLK(status.st_mode) : S_ISCHR(status.st_mode);
  return right_kind && static_cast<int64_t>(gnu_dev_major(status.st_rdev)) == device.major &&
         static_cast<int64_t>(gnu_dev_minor(status.st_rdev)) == device.minor;
}

}  // namespace

StatusOr<FoundFiles> FindHostFiles(const HostFiles& files, const std::string& profile_path) {
  constexpr mode_t kOnlyOurs = 0700;
  FoundFiles found;
  for (const WantedDevice& device : files.devices)
    found.devices.push_back(FindDevice(device));
  if (files.seccomp_policy.empty()) return found;
  const std::string directory = profile_path.substr(0, profile_path.rfind('/'));
  (void)::mkdir(directory.c_str(), kOnlyOurs);  // where it fails, writing tells why
  RESMGR_RETURN_IF_ERROR(AtomicWriteFile(profile_path, files.seccomp_policy, 0600));
  found.seccomp_profile = profile_path;
  return found;
}

std::string FindDevice(const WantedDevice& device) {
  if (IsDevice(device.container_path, device)) return device.container_path;
  std::string link =
      fmt::format("/dev/{}/{}:{}", device.block ? "block" : "char", device.major, device.minor);
  return IsDevice(link, device) ? link : std::string();
}

}  // namespace resmgr::nri
