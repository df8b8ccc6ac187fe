// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/host_files.h"

#include <cstdint>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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

void RemoveProfilesBut(const std::string& directory, std::string_view prefix) {
  std::error_code error;
  for (std::filesystem::directory_iterator each(directory, error), end; !error && each != end;
       each.increment(error)) {
    const std::string name = each->path().filename();
    const bool profile = name.ends_with(".json") || name.ends_with(".json.tmp");
    if (profile && !name.starts_with(prefix)) ::unlink(each->path().c_str());
  }
}

std::string FindDevice(const WantedDevice& device) {
  if (IsDevice(device.container_path, device)) return device.container_path;
  std::string link =
      fmt::format("/dev/{}/{}:{}", device.block ? "block" : "char", device.major, device.minor);
  return IsDevice(link, device) ? link : std::string();
}

}  // namespace resmgr::nri
