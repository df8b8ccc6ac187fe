// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pkg/config/config_section.h"

namespace resmgr {

// Limits and weights of some block devices, or the weight of all devices that no item names. A
// value.
struct BlockioItem {
  // Globs of paths in /dev. Empty: the item has the weight of all devices that no item names.
  std::vector<std::string> devices{};
  // Per second; 0: no limit.
  std::optional<uint64_t> read_bps{};
  std::optional<uint64_t> write_bps{};
  std::optional<uint64_t> read_iops{};
  std::optional<uint64_t> write_iops{};
  std::optional<int64_t> weight{};  // kLeastWeight to kMostWeight, as in the OCI's specification

  static constexpr int64_t kLeastWeight = 10;
  static constexpr int64_t kMostWeight = 1000;

  bool throttles() const { return read_bps || write_bps || read_iops || write_iops; }
  friend bool operator==(const BlockioItem&, const BlockioItem&) = default;
};

// The schema of goresctrl, from which containerd and CRI-O read their own files (its
// doc/blockio.md): of several items for a device, the last one that sets a value counts.
struct BlockioConfig {
  // Who turns a class into limits: this daemon, or the runtime by its own file.
  enum class Assign { kAuto, kRuntime };
  using Classes = std::map<std::string, std::vector<BlockioItem>, std::less<>>;

  Assign assign = Assign::kAuto;
  Classes classes{};

  bool any() const { return *this != BlockioConfig(); }
  friend bool operator==(const BlockioConfig&, const BlockioConfig&) = default;
};

// The key `blockio` of the module `classes`.
void DescribeBlockio(ConfigSection& classes, BlockioConfig& config);

}  // namespace resmgr
