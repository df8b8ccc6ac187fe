// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "pkg/claims/claimed_policy.h"
#include "pkg/config/dra_config.h"
#include "pkg/dra/driver.h"
#include "pkg/model/snapshot.h"
#include "pkg/topology/machine.h"

namespace resmgr::test {

inline constexpr std::string_view kPublishedNode = "worker-1";

// The objects of a node that the API server has, made as the daemon and its agent make them: from
// the policy to the daemon's reports, through the agent's service, to the agent's objects.
struct PublishedObjects {
  nlohmann::json topology;                          // NodeResourceTopology
  nlohmann::json slices = nlohmann::json::array();  // ResourceSlices
  int step = 1;                                     // CPUs that claims get at a time
};

// A report that the agent refuses fails the test. `devices` is dra.Devices, `refuse`
// nrt.Alignment.
PublishedObjects Publish(const Machine& machine, const ClaimedPolicy& policy,
                         const Snapshot& snapshot, const dra::Driver& driver, DraDevices devices,
                         bool refuse);

}  // namespace resmgr::test
