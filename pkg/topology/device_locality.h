// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The CPUs and memory nodes that a device is near to; one of the two may be empty.
struct Locality {
  CpuSet cpus;
  NodeSet nodes;

  friend bool operator==(const Locality&, const Locality&) = default;
};

// The number of a device, as stat(2) tells it.
struct DeviceNumber {
  bool block = false;  // else a character device
  unsigned major = 0;
  unsigned minor = 0;
};

// Finds out from sysfs where devices are: /sys/dev/{block,char}/MAJOR:MINOR leads to the device,
// and the nearest directory from there up that has a NUMA node tells it. Devices that are made of
// others (device mapper, RAID; VFIO groups) are near to all of these. The number of files looked at
// is bounded. Reads files, so it may block, and for ever where a device does not answer: to be
// called by pkg/pipeline/hint_finder.h, off the loop. Thread-compatible.
class DeviceLocality {
 public:
  struct Options {
    std::string sysfs = "/sys";
    // The number of a device node, and of the device that holds a path; real ones by default. Not
    // OK when there is none.
    std::function<StatusOr<DeviceNumber>(const std::string& path)> node_number = NodeNumber;
    std::function<StatusOr<DeviceNumber>(const std::string& path)> holder_number = HolderNumbers();
  };
  explicit DeviceLocality(Options options);

  // The locality of a device node of the host ("/dev/nvme0n1", "/dev/vfio/12"); nullopt if it is
  // unknown.
  std::optional<Locality> OfDevice(const std::string& path) const;
  // The same for the device that holds a directory or file of the host; nullopt also for file
  // systems without a device.
  std::optional<Locality> OfHostPath(const std::string& path) const;

  // Works for nodes in /dev only.
  static StatusOr<DeviceNumber> NodeNumber(const std::string& path);
  // Finds devices by the mounts of this process, which are read at the first call of the result. No
  // file system that may be dead is asked: symbolic links are followed only where a device or
  // memory holds them.
  static std::function<StatusOr<DeviceNumber>(const std::string& path)> HolderNumbers();

 private:
  std::optional<Locality> OfNumber(const DeviceNumber& number) const;
  std::optional<Locality> OfDirectory(const std::string& directory, int depth) const;
  // The locality of all entries of a directory of links to devices.
  std::optional<Locality> OfAll(const std::string& directory, int depth) const;
  std::optional<Locality> ReadLocality(const std::string& directory) const;

  const Options options_;
};

// Whether a mount may hold data that its container works with: not read-only mounts, not the mounts
// that kubelets add to every container (tokens, ConfigMaps, /etc/hosts, the termination log), and
// not the host's libraries.
bool MountTellsLocality(std::string_view container_path, std::string_view host_path,
                        bool read_only);

// Finds the mount that holds a path, from the text of /proc/PID/mountinfo (proc(5)) alone: no file
// system is asked, so that a dead one delays nothing. A value.
class MountTable {
 public:
  struct Mount {
    int id = 0;
    int parent = 0;
    unsigned major = 0;  // 0: on no device
    unsigned minor = 0;
    std::string root;   // the part of the file system that is mounted
    std::string point;  // below our root
    std::string type;   // of the file system: "ext4"
  };

  // Lines that cannot be read are left out.
  explicit MountTable(std::string_view mountinfo);

  // The mount that the kernel finds if no part of the path is a symbolic link: from the root down,
  // what was mounted last upon each. The path is absolute, without empty parts, "." and "..".
  // nullptr: no mount holds it. Valid as long as the table.
  const Mount* Find(std::string_view path) const;
  // A mount that a recursive bind mount of the path brings along: it is mounted on the mount that
  // holds the path, below the path. nullptr: there is none.
  const Mount* FindBelow(std::string_view path) const;
  // Whether a file system of this type is mounted anywhere.
  bool HasType(std::string_view type) const;

 private:
  std::vector<Mount> mounts_;
};

}  // namespace resmgr
