// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/model/container_details.h"
#include "pkg/nri/host/mapping/host_files.h"
#include "pkg/nri/host/mapping/runtime_traits.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Maps single values of an adjustment (adjustment_mapping.h). An error names a value that the
// runtime's API cannot express, or that is invalid. Pure functions.

// Maps bind mounts of a path of the node. They are recursive only with the option "rbind", as in
// OCI; MakeRecursive is for APIs that have only recursive ones. Options like "noexec" are not
// supported. The option "relabel", which OCI does not have, is SELinux's relabelling.
StatusOr<Mount> MapMount(const api::Mount& mount, const RuntimeTraits& traits);

// Whether requests can express that the mount excludes mounts below its path.
bool CanBeNonRecursive(const Mount& mount, const RuntimeTraits& traits);

// Makes the mount recursive; a read-only one becomes read-only as a whole if the runtime has
// announced that it supports this.
void MakeRecursive(const RuntimeTraits& traits, Mount& mount);

// Maps a device; its file on the node is to be found later. Permissions are those of the file mode,
// if one is set, and for block devices include mknod, as in other hosts (NRI 0.12).
StatusOr<WantedDevice> MapDevice(const api::LinuxDevice& device, const RuntimeTraits& traits);

// Checks that Linux has the limit, and that its soft value does not exceed the hard one.
StatusOr<ResourceLimit> MapLimit(const api::POSIXRlimit& limit);

// The policy as runtimes read it: an OCI linux.seccomp object.
std::string SeccompJson(const api::LinuxSeccomp& policy);

}  // namespace resmgr::nri
