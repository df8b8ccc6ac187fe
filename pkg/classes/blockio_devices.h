// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace resmgr {

// Major and minor number.
using BlockDeviceNumber = std::pair<uint32_t, uint32_t>;

struct FoundDevice {
  std::string path{};  // as the glob found it, without the root of the host
  bool is_block = false;
  BlockDeviceNumber number{};  // of a block device, which a symbolic link may lead to

  friend bool operator==(const FoundDevice&, const FoundDevice&) = default;
};

// Finds device files. May block. Thread-compatible.
class BlockDevices {
 public:
  // The limit of devices that one search finds.
  static constexpr size_t kMostDevices = 4096;

  virtual ~BlockDevices() = default;
  // The files that match the glob of paths ("/dev/disk/by-id/*SSD*"), in the order of their names;
  // a star matches no slash. Anew each time: devices come and go.
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

}  // namespace resmgr
