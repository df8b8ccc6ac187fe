// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/config/config_section.h"

namespace resmgr {

// The name of dra-driver-cpu, whose manifests work unchanged in the compatible mode.
inline constexpr std::string_view kCompatibleDriver = "dra.cpu";

// The parts of the machine that are devices.
enum class DraDevices { kNuma, kL3 };

// Configures the driver for Dynamic Resource Allocation of CPUs (docs/scheduler.md).
struct DraConfig {
  bool enable = false;
  std::string driver = "cpu.cri-resmgr.intel.com";  // a DNS subdomain of 63 bytes at most
  bool compatible = false;
  DraDevices devices = DraDevices::kNuma;
  bool metadata = false;  // claims get device metadata

  // The name in force.
  std::string DriverName() const { return compatible ? std::string(kCompatibleDriver) : driver; }

  friend bool operator==(const DraConfig&, const DraConfig&) = default;
};

// The module `dra`.
void DescribeDra(ConfigSection& root, DraConfig& config);

}  // namespace resmgr
