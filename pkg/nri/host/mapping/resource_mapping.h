// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/resources.h"
#include "pkg/nri/host/mapping/runtime_traits.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Converts resources between the CRI and NRI. In NRI a set value has a message of its own, which
// may hold 0; in the CRI, 0 means unset. Pure functions.

// kInvalidArgument names a number that is larger than the runtime's APIs can carry.
Status CheckNumbers(const api::LinuxResources& resources);

// The changes that the CRI can make of an existing container. On cgroup v2, memory.reservation
// becomes the file memory.low, and pids becomes pids.max, unless `unified` has these files itself.
// A file with the meaning of a field replaces the field; if the field can express its value
// exactly, the field is sent and not the file.
ResourceChange ToResourceChange(const api::LinuxResources& resources,
                                const RuntimeTraits& traits = {});

// The same as edits of a request that creates or updates a container. kInvalidArgument names
// malformed CPUs or memory nodes, or a number that is too large for the CRI. A lifted memory limit
// becomes 0, which lifts nothing from an existing container: ShortfallsOf reports it.
Status MapResources(const api::LinuxResources& resources, const RuntimeTraits& traits,
                    Adjustment& adjustment);

// Removes CPUs and memory nodes, also from `unified`. False: there were none.
bool LeaveOutPlacement(api::LinuxResources& resources);

// A wanted value that a request cannot express.
struct Shortfall {
  api::Field field = api::FIELD_NONE;  // NONE: rules for devices, which have no number
  std::string key{};
  std::string why{};
  bool removal = false;
};

// "Mounts /proc", for messages; rules for devices have neither name nor key.
std::string Shown(const Shortfall& shortfall);

// The wanted values that neither of the two functions above can map. `update`: the container
// exists, so its classes of block I/O and RDT cannot change.
std::vector<Shortfall> ShortfallsOf(const api::LinuxResources& resources,
                                    const RuntimeTraits& traits, bool update);

// The policy for a plugin's changes that the CRI cannot express: the creation is refused (kFail),
// or goes on without them, with a warning (kIgnore). docs/nri-plugins.md has the defaults and their
// reasons. A value type.
class UnsupportedPolicy {
 public:
  UnsupportedPolicy();

  FailurePolicy Of(const Shortfall& shortfall) const;
  // Applies to a whole field; NONE stands for rules for devices.
  void Set(api::Field field, FailurePolicy policy);

 private:
  using Policies = std::array<FailurePolicy, api::Field_ARRAYSIZE>;

  Policies additions_;
  Policies removals_;
};

}  // namespace resmgr::nri
