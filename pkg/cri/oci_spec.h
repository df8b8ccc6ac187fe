// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/cri/status_reply.h"
#include "pkg/model/container_details.h"
#include "pkg/pipeline/runtime_access.h"

// Reads an OCI runtime specification (its config.json, version 1.0 to 1.2). Missing fields, or
// fields of another type, are empty.
namespace resmgr {

std::string CgroupsPathOf(const Json& spec);
std::vector<LinuxNamespace> NamespacesOf(const Json& spec);

// `command` is the whole argument vector. Mounts are the bind mounts: others have no host path.
// Devices are left out: a specification has only their numbers, not their host paths.
ContainerDetails DetailsOf(const Json& spec);

// Reads a list of "NAME=value".
Environment EnvironmentOf(const Json& list);
// The strings among the elements of a list.
std::vector<std::string> TextsOf(const Json& list);

}  // namespace resmgr
