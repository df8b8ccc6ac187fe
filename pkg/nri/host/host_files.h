// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container_details.h"

namespace resmgr::nri {

// A device that a plugin gives a container. NRI tells its numbers, the CRI wants a file of the node
// with these numbers.
struct WantedDevice {
  std::string container_path{};
  std::string permissions{};  // of r, w and m
  bool block = false;
  int64_t major = 0;
  int64_t minor = 0;
  // Permissions and owner of its file in the container, where the plugin says them.
  std::optional<uint32_t> mode{};
  std::optional<uint32_t> uid{};
  std::optional<uint32_t> gid{};
};

// What an adjustment needs of the node's file system.
struct HostFiles {
  // Of more a reply is refused.
  static constexpr size_t kMostDevices = 1024;
  static constexpr size_t kMostMounts = 1024;

  std::vector<WantedDevice> devices{};
  std::string seccomp_policy{};  // an OCI seccomp policy as JSON; empty: none
  // Those that are to have nothing of what is mounted below their paths, which requests cannot say.
  std::vector<Mount> mounts{};
  bool rdt = false;  // whether the node has RDT is asked

  bool empty() const { return devices.empty() && seccomp_policy.empty() && mounts.empty() && !rdt; }
};

struct FoundDevice {
  std::string path{};  // empty: the node has none
  uint32_t mode = 0;   // permissions alone
  uint32_t uid = 0;
  uint32_t gid = 0;
};

struct FoundFiles {
  std::vector<FoundDevice> devices{};  // one for each that is wanted
  std::string seccomp_profile{};       // the file with the policy; its name is absolute
  // For each of the mounts a mount point below its path, the path itself where it cannot be told
  // whether there is one; empty: there is none.
  std::vector<std::string> below{};
  bool rdt = true;  // resctrl is mounted, without which no runtime has RDT
};

// All may block: not for the loop.

// Looks for the devices and at the node's mounts, as far as that is asked, and writes the policy,
// where there is one, to the file `profile_path`, whose directory it makes where that is missing.
// An error: it cannot be written, or the mounts cannot be read.
StatusOr<FoundFiles> FindHostFiles(const HostFiles& files, const std::string& profile_path);

// Removes the profiles in the directory whose names do not begin with `prefix`, and what a write of
// one may have left.
void RemoveProfilesBut(const std::string& directory, std::string_view prefix);

// Files of the node that are the devices: the path that it will have in the container, where that
// is this device, or udev's link /dev/{char,block}/MAJOR:MINOR, which containerd and CRI-O follow,
// or the first by name of those among the first 16,384 entries of /dev, four levels deep, without
// other file systems that are mounted there.
std::vector<FoundDevice> FindDevices(const std::vector<WantedDevice>& devices);

}  // namespace resmgr::nri
