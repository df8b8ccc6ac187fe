// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/classes/host_files.h"
#include "pkg/config/blockio_config.h"

namespace resmgr {

// Major and minor number.
using BlockDeviceNumber = std::pair<uint32_t, uint32_t>;

struct FoundDevice {
  std::string path{};  // as the glob found it, without the root of the host
  bool is_block = false;
  BlockDeviceNumber number{};  // of the block device, also if `path` is a symbolic link

  friend bool operator==(const FoundDevice&, const FoundDevice&) = default;
};

// Finds device files. May block. Thread-compatible.
class BlockDevices {
 public:
  // Limit of the devices that one search returns.
  static constexpr size_t kMostDevices = 4096;

  virtual ~BlockDevices() = default;
  // The files that match a glob of paths ("/dev/disk/by-id/*SSD*"), ordered by name; a star matches
  // no slash. Searches anew each time, since devices come and go.
  virtual std::vector<FoundDevice> Find(std::string_view glob) = 0;
};

// The block devices below the root of a host.
class HostBlockDevices final : public BlockDevices {
 public:
  explicit HostBlockDevices(std::string_view root);

  std::vector<FoundDevice> Find(std::string_view glob) override;

 private:
  const std::string root_;  // without a slash at the end
};

// The limits of a block I/O class for one disk, per second; 0: no limit.
struct DeviceLimits {
  std::optional<uint64_t> read_bps{};
  std::optional<uint64_t> write_bps{};
  std::optional<uint64_t> read_iops{};
  std::optional<uint64_t> write_iops{};
  std::optional<int64_t> weight{};
  // The weights that the disk follows: the kernel refuses the disk's line in any other weight file.
  bool has_bfq = true;    // the scheduler bfq; also true if unknown
  bool has_cost = false;  // the controller io.cost

  friend bool operator==(const DeviceLimits&, const DeviceLimits&) = default;
};

// A block I/O class, resolved for the devices that the machine has now. A value type.
struct BlockioLimits {
  static constexpr size_t kMostNotes = 8;

  std::optional<int64_t> weight{};  // of the disks that are not in `devices`
  std::map<BlockDeviceNumber, DeviceLimits> devices{};
  std::vector<std::string> notes{};  // settings that have no or another effect; at most kMostNotes

  friend bool operator==(const BlockioLimits&, const BlockioLimits&) = default;
};

// A file of a cgroup and its whole text, with a line for each device, ordered by device number.
struct BlockioFile {
  std::string name;
  std::string text;

  friend bool operator==(const BlockioFile&, const BlockioFile&) = default;
};

// Applies the items in their order to the devices that their globs match now. The kernel limits
// whole disks only, so limits for a partition apply to its disk. May block.
BlockioLimits ResolveBlockio(const std::vector<BlockioItem>& items, BlockDevices& devices,
                             HostFiles& files);

// The files of cgroup v2: io.max, io.weight (of io.cost), and io.bfq.weight (of the scheduler bfq).
// Files without a limit or weight to set are left out. Pure, like LegacyFiles and UnifiedWeight.
std::vector<BlockioFile> UnifiedFiles(const BlockioLimits& limits);
// The files of cgroup v1 instead: blkio.throttle.read_bps_device and so on.
std::vector<BlockioFile> LegacyFiles(const BlockioLimits& limits);

// The value for io.weight from the OCI's weight, as runc converts it: 10 is 1, 100 is 910, 1000 is
// 10000.
int64_t UnifiedWeight(int64_t weight);

}  // namespace resmgr
