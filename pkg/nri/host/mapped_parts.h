// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/model/container_details.h"
#include "pkg/nri/host/host_files.h"
#include "pkg/nri/host/runtime_traits.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Single values of an adjustment (adjustment_mapping.h). An error says what the runtime's API
// cannot express, or what makes no sense. Pure functions.

// Bind mounts of a path of the node. The CRI has them recursive always, and what it cannot say of
// them it cannot say: no "noexec", for instance. The option "relabel", which OCI does not have, is
// SELinux's relabelling.
StatusOr<Mount> MapMount(const api::Mount& mount, const RuntimeTraits& traits);

// Which file of the node it is remains to be found. Permissions are those of the file mode, where
// one is set, and of block devices also making nodes, as in other hosts (NRI 0.12).
StatusOr<WantedDevice> MapDevice(const api::LinuxDevice& device, const RuntimeTraits& traits);

// A limit that Linux has, its soft value not above the hard one.
StatusOr<ResourceLimit> MapLimit(const api::POSIXRlimit& limit);

// As a runtime reads it: an OCI linux.seccomp object.
std::string SeccompJson(const api::LinuxSeccomp& policy);

}  // namespace resmgr::nri
