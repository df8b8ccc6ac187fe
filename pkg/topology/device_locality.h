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

// The number of a device, as returned by stat(2).
struct DeviceNumber {
  bool block = false;  // else a character device
  unsigned major = 0;
  unsigned minor = 0;
};

// Finds the NUMA nodes of devices in sysfs: those of the nearest directory, upwards from the target
// of /sys/dev/{block,char}/MAJOR:MINOR, that names one. A device made of others (device mapper,
// RAID; VFIO groups) is near to all of them. The number of files read is bounded. Reading may block
// for ever if a device does not answer: pkg/pipeline/hint_finder.h calls this off the loop.
// Thread-compatible.
class DeviceLocality {
 public:
  struct Options {
    std::string sysfs = "/sys";
    // Return the number of a device node, and of the device that holds a path; replaced by tests.
    // Not OK if there is none.
    std::function<StatusOr<DeviceNumber>(const std::string& path)> node_number = NodeNumber;
    std::function<StatusOr<DeviceNumber>(const std::string& path)> holder_number = HolderNumbers();
  };
  explicit DeviceLocality(Options options);

  // The locality of a device node of the host ("/dev/nvme0n1", "/dev/vfio/12"); nullopt if it is
  // unknown.
  std::optional<Locality> OfDevice(const std::string& path) const;
  // The locality of the device that holds a directory or file of the host; nullopt also for file
  // systems without a device.
  std::optional<Locality> OfHostPath(const std::string& path) const;

  // The number of a device node, which must be in /dev.
  static StatusOr<DeviceNumber> NodeNumber(const std::string& path);
  // Finds devices by the mounts of this process, which are read at the first call of the result.
  // Does not use file systems that may be dead: symbolic links are followed only if a device or
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

// Whether a mount may hold data that its container works with. False: read-only mounts, the mounts
// that kubelets add to every container (tokens, ConfigMaps, /etc/hosts, the termination log), and
// the host's libraries.
bool MountTellsLocality(std::string_view container_path, std::string_view host_path,
                        bool read_only);

// Finds the mount that holds a path from the text of /proc/PID/mountinfo (proc(5)) alone: no file
// system is used, so a dead one delays nothing. A value type.
class MountTable {
 public:
  struct Mount {
    int id = 0;
    int parent = 0;
    unsigned major = 0;  // 0: on no device
    unsigned minor = 0;
    std::string root;   // the part of the file system that is mounted
    std::string point;  // relative to this process's root
    std::string type;   // of the file system: "ext4"
  };

  // Lines that cannot be read are left out.
  explicit MountTable(std::string_view mountinfo);

  // The mount that holds the path if no part of the path is a symbolic link. Goes from the root
  // down; of mounts upon one point the last one counts. The path is absolute, without empty parts,
  // "." and "..". nullptr: no mount holds it. Valid as long as the table.
  const Mount* Find(std::string_view path) const;
  // A mount that a recursive bind mount of the path would include: it lies below the path, on the
  // mount that holds the path. nullptr: there is none.
  const Mount* FindBelow(std::string_view path) const;
  // Whether a file system of this type is mounted anywhere.
  bool HasType(std::string_view type) const;

 private:
  std::vector<Mount> mounts_;
};

}  // namespace resmgr
