// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/cri/status_reply.h"
#include "pkg/model/container_details.h"
#include "pkg/pipeline/runtime_access.h"

// Reads an OCI runtime specification (its config.json, version 1.0 to 1.2). What is missing, or of
// another type than it should be, is empty.
namespace resmgr {

std::string CgroupsPathOf(const Json& spec);
std::vector<LinuxNamespace> NamespacesOf(const Json& spec);

// `command` is the whole argument vector. Mounts are the bind mounts: others have no path of the
// host. No devices: a specification has their numbers, not what they were made from.
ContainerDetails DetailsOf(const Json& spec);

// A list of "NAME=value".
Environment EnvironmentOf(const Json& list);
// Those elements of a list that are texts.
std::vector<std::string> TextsOf(const Json& list);

}  // namespace resmgr
