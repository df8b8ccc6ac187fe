// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr::nri {

// A device that a plugin gives a container. NRI tells its numbers, the CRI wants a file of the node
// with these numbers.
struct WantedDevice {
  std::string container_path{};
  std::string permissions{};  // of r, w and m
  bool block = false;
  int64_t major = 0;
  int64_t minor = 0;
};

// What an adjustment needs of the node's file system.
struct HostFiles {
  // Of more a reply is refused.
  static constexpr size_t kMostDevices = 1024;

  std::vector<WantedDevice> devices;
  std::string seccomp_policy;  // an OCI seccomp policy as JSON; empty: none

  bool empty() const { return devices.empty() && seccomp_policy.empty(); }
};

struct FoundFiles {
  // For each device its file; empty: the node has none.
  std::vector<std::string> devices{};
  std::string seccomp_profile{};  // the file with the policy; its name is absolute
};

// All may block: not for the loop.

// Looks for the devices, and writes the policy, where there is one, to the file `profile_path`,
// whose directory it makes where that is missing. An error: it cannot be written.
StatusOr<FoundFiles> FindHostFiles(const HostFiles& files, const std::string& profile_path);

// Removes the profiles in the directory whose names do not begin with `prefix`, and what a write of
// one may have left.
void RemoveProfilesBut(const std::string& directory, std::string_view prefix);

// A file of the node that is the device: the path that it will have in the container, where that is
// this device, or udev's link /dev/{char,block}/MAJOR:MINOR, which containerd and CRI-O follow.
// Empty: neither.
std::string FindDevice(const WantedDevice& device);

}  // namespace resmgr::nri
