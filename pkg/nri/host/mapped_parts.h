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

// Bind mounts of a path of the node. They are recursive only with the option "rbind", as in OCI;
// MakeRecursive is for APIs that have no others. There is no "noexec", for instance. The option
// "relabel", which OCI does not have, is SELinux's relabelling.
StatusOr<Mount> MapMount(const api::Mount& mount, const RuntimeTraits& traits);

// Whether requests can say that the mount has nothing of what is mounted below its path.
bool CanBeNonRecursive(const Mount& mount, const RuntimeTraits& traits);

// Makes it a recursive mount, which is read-only as a whole if it was to be read-only and the
// runtime has announced that it can do so.
void MakeRecursive(const RuntimeTraits& traits, Mount& mount);

// Which file of the node it is remains to be found. Permissions are those of the file mode, where
// one is set, and of block devices also making nodes, as in other hosts (NRI 0.12).
StatusOr<WantedDevice> MapDevice(const api::LinuxDevice& device, const RuntimeTraits& traits);

// A limit that Linux has, its soft value not above the hard one.
StatusOr<ResourceLimit> MapLimit(const api::POSIXRlimit& limit);

// As a runtime reads it: an OCI linux.seccomp object.
std::string SeccompJson(const api::LinuxSeccomp& policy);

}  // namespace resmgr::nri
