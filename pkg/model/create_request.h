// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The part of a CreateContainer request that the resource manager needs.
struct CreateRequest {
  PodSandboxId pod_id;
  std::optional<Pod> pod;  // from sandbox_config, used when the sandbox is not known here
  std::string name;
  uint32_t attempt = 0;
  StringMap labels;
  StringMap annotations;
  bool has_resources = false;  // the request carries linux.resources, if only empty ones
  LinuxResources resources;
  // Resources of the pod as a whole, from sandbox_config: newer than those of its sandbox's
  // creation.
  std::optional<LinuxResources> pod_resources{};
  std::vector<LocalityHint> hints{};  // when the policy wants them
};

}  // namespace resmgr
