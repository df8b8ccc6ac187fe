// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pkg/classes/blockio_devices.h"
#include "pkg/kube/glob.h"

namespace resmgr::test {

// Device files in memory. Thread-compatible.
class FakeBlockDevices final : public BlockDevices {
 public:
  std::map<std::string, FoundDevice> all;  // by path

  void Add(const std::string& path, uint32_t major, uint32_t minor) {
    all[path] = {.path = path, .is_block = true, .number = {major, minor}};
  }
  std::vector<FoundDevice> Find(std::string_view glob) override {
    std::vector<FoundDevice> found;
    for (const auto& [path, device] : all)
      if (MatchesGlob(glob, path)) found.push_back(device);
    return found;
  }
};

}  // namespace resmgr::test
