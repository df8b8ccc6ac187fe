// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/classes/host_files.h"

namespace resmgr {

// Makes files of cgroups that have a line for each block device (io.max, io.weight,
// blkio.throttle.read_bps_device, ...) files like others: one reads them as a text in a fixed form,
// and writing a text leaves no line that is not in it. The kernel takes one device with each write.
// Other files pass unchanged. Thread-compatible.
class DeviceLines final : public HostFiles {
 public:
  // Outlives this object.
  explicit DeviceLines(HostFiles& files) : files_(files) {}

  StatusOr<std::string> Read(const std::string& path) override;
  // Writes the lines that differ, also after one that the kernel refuses; the first error.
  int Write(const std::string& path, std::string_view text) override;
  std::vector<std::string> List(const std::string& directory) override {
    return files_.List(directory);
  }

 private:
  HostFiles& files_;
};

// Whether each device has in the text `now` of such a file what it has in one of the others, as
// when not all lines were written.
bool MixesDeviceLines(std::string_view path, std::string_view now,
                      const std::vector<std::string_view>& texts);

// A text of such a file in the form that DeviceLines reads: lines in the order of their devices,
// "default" in front, without those that say that there is no limit.
std::string NormalDeviceLines(std::string_view path, std::string_view text);

}  // namespace resmgr
