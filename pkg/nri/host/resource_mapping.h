// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/base/string_map.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/resources.h"
#include "pkg/nri/host/runtime_traits.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Resources between the CRI and NRI. In NRI a value that is set has a message of its own, which may
// hold 0; in the CRI, 0 is not set. Pure functions.

// `cpu` and `memory` are always there, since plugins of the field read them without asking.
api::LinuxResources ToNriResources(const LinuxResources& resources,
                                   const std::optional<int64_t>& memory_swap_limit = {},
                                   const StringMap& unified = {});

// What the CRI can change of a container that exists. On cgroup v2, memory.reservation is the file
// memory.low, and pids is pids.max, unless `unified` has these files itself. A file that says the
// same as a field replaces the field; where the field can say exactly that, the field is sent and
// not the file.
ResourceChange ToResourceChange(const api::LinuxResources& resources,
                                const RuntimeTraits& traits = {});

// The same as edits of a request that creates or updates a container. InvalidArgument: CPUs or
// memory nodes that cannot be read, or a number that the CRI has no room for; the message says
// which. A memory limit that is lifted becomes 0, which lifts nothing from a container that exists:
// ShortfallsOf tells of it.
Status MapResources(const api::LinuxResources& resources, const RuntimeTraits& traits,
                    Adjustment& adjustment);

// Removes all that it says of CPUs and memory nodes, also from `unified`. False: there was nothing
// to remove.
bool LeaveOutPlacement(api::LinuxResources& resources);

// Something that is wanted and that a request cannot express.
struct Shortfall {
  api::Field field = api::FIELD_NONE;  // NONE: rules for devices, which have no number there
  std::string key{};
  std::string why{};
  bool removal = false;
};

// "Mounts /proc", for messages; rules for devices have neither name nor key.
std::string Shown(const Shortfall& shortfall);

// What neither of the two above takes over. `update`: of a container that exists, whose classes of
// block I/O and RDT stay.
std::vector<Shortfall> ShortfallsOf(const api::LinuxResources& resources,
                                    const RuntimeTraits& traits, bool update);

}  // namespace resmgr::nri
