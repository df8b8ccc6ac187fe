// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container_details.h"
#include "pkg/topology/device_locality.h"

namespace resmgr::nri {

// A device that a plugin gives a container. NRI has its numbers; the CRI needs a file of the node
// with these numbers.
struct WantedDevice {
  std::string container_path{};
  std::string permissions{};  // subset of r, w and m
  bool block = false;
  int64_t major = 0;
  int64_t minor = 0;
  // Permissions and owner of its file in the container, if the plugin sets them.
  std::optional<uint32_t> mode{};
  std::optional<uint32_t> uid{};
  std::optional<uint32_t> gid{};
};

// The parts of an adjustment that depend on the node's file system.
struct HostFiles {
  // A reply with more devices is refused.
  static constexpr size_t kMostDevices = 1024;
  static constexpr size_t kMostMounts = 1024;

  std::vector<WantedDevice> devices{};
  std::string seccomp_policy{};  // an OCI seccomp policy as JSON; empty: none
  // Mounts that must not include further mounts below their paths, which requests cannot express.
  std::vector<Mount> mounts{};
  bool rdt = false;  // whether to look for RDT

  bool empty() const { return devices.empty() && seccomp_policy.empty() && mounts.empty() && !rdt; }
};

struct FoundDevice {
  std::string path{};  // path of the device; empty: the node lacks it
  uint32_t mode = 0;   // permission bits only
  uint32_t uid = 0;
  uint32_t gid = 0;
};

struct FoundFiles {
  std::vector<FoundDevice> devices{};  // one for each wanted device
  std::string seccomp_profile{};       // absolute path of the file with the policy
  // For each mount a mount point below its path, or the path itself if that is unknown; empty:
  // there is none.
  std::vector<std::string> below{};
  bool rdt = true;  // resctrl is mounted; without it no runtime has RDT
};

// These functions may block and must not run on the loop.

// Looks for the requested devices and mounts, and writes the policy, if any, to the file
// `profile_path`, whose directory is created if it is missing. An error: the policy cannot be
// written, or the mounts cannot be read.
StatusOr<FoundFiles> FindHostFiles(const HostFiles& files, const std::string& profile_path);

// Removes the profiles in the directory whose names do not begin with `prefix`, and partial files
// of interrupted writes.
void RemoveProfilesBut(const std::string& directory, std::string_view prefix);

// The node's files of the devices: the path in the container, if that is the same device on the
// node, or udev's link /dev/{char,block}/MAJOR:MINOR, which containerd and CRI-O follow, or the
// first by name among the first 16,384 entries of /dev, four levels deep, without other file
// systems that are mounted there.
std::vector<FoundDevice> FindDevices(const std::vector<WantedDevice>& devices);

// Resolves paths of the node. The daemon may have mounts of its own that hide the node's, as a
// systemd unit with PrivateTmp has, and may lack the right to use another process' root.
class NodePaths {
 public:
  struct Options {
    // The mounts of the node, and those of this process; both outlive this object.
    const MountTable& node;
    const MountTable& own;
    // The node's root directory; "" if it is the process' own, or cannot be reached. If it is "",
    // only files that are the same by both mount tables count.
    std::string root{};
  };

  explicit NodePaths(const Options& options) : options_(options) {}

  // The absolute path without symbolic links, empty parts, "." and "..". Parts that do not exist
  // are kept. nullopt: unknown. May block.
  std::optional<std::string> Resolve(std::string_view path) const;

 private:
  std::optional<std::string> Walk(std::string path) const;
  // Whether the node has the same file there as this process.
  bool IsNodes(std::string_view path) const;

  const Options options_;
};

}  // namespace resmgr::nri
