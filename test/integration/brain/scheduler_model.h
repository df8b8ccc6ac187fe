// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/kube/qos.h"

namespace resmgr::test {

// A container as its pod's manifest asks for it: amounts by resource, "cpu" in thousandths, all
// others in bytes or pieces. An amount of 0 is one that is not asked for.
struct ScheduledContainer {
  std::map<std::string, int64_t> asked{};
  // An ordinary init container, which has ended before those after it begin.
  bool init = false;
};

struct ScheduledPod {
  QosClass qos = QosClass::kGuaranteed;
  std::vector<ScheduledContainer> containers{};  // in their order, init containers first
};

// The Filter of the scheduler plugin NodeResourceTopologyMatch, made from the description of its
// behaviour, with its faults, and independent of the code that makes the objects. `allocatable` has
// the values of the node's object v1.Node, by resource and in the units above.
//
// Returns "" if the node passes, or the plugin's reason.
std::string FilterByTopology(const nlohmann::json& topology,
                             const std::map<std::string, int64_t>& allocatable,
                             const ScheduledPod& pod);

}  // namespace resmgr::test
