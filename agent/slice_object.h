// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/json_path.h"
#include "pkg/base/status.h"

namespace resmgr::agent {

// The devices that a node's driver for Dynamic Resource Allocation offers, as its daemon reports
// them, and the one ResourceSlice that says so.

struct SliceAttribute {
  std::string name{};  // qualified
  std::variant<int64_t, bool, std::string> value{};

  friend bool operator==(const SliceAttribute&, const SliceAttribute&) = default;
};

// A device whose CPUs claims consume.
struct SliceDevice {
  std::string name{};  // DNS label
  std::vector<SliceAttribute> attributes{};
  std::string capacity{};  // qualified name
  int64_t cpus = 0;        // a multiple of `step`, not 0
  int64_t step = 1;        // claims get multiples of it

  friend bool operator==(const SliceDevice&, const SliceDevice&) = default;
};

struct DeviceReport {
  std::string driver{};
  std::vector<SliceDevice> devices{};

  friend bool operator==(const DeviceReport&, const DeviceReport&) = default;
};

inline constexpr std::string_view kSliceCollection = "/apis/resource.k8s.io/v1/resourceslices";

// The name of the object, the same at each start of an agent: "NODE-DRIVER".
std::string SliceName(std::string_view node, std::string_view driver);
// kInvalidArgument for what the API server would refuse, or no node can have.
Status CheckDevices(std::string_view node, const DeviceReport& report);
// The `spec` of the object. Readers use the highest generation of a pool.
Json SliceSpec(std::string_view node, const DeviceReport& report, int64_t generation);
// The whole object; `uid` is the node's.
Json SliceObject(std::string_view node, std::string_view uid, const DeviceReport& report,
                 int64_t generation);

}  // namespace resmgr::agent
