// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/container.h"

#include "pkg/base/append.h"

namespace resmgr {

std::string_view ToString(ContainerState state) {
  switch (state) {
    case ContainerState::kCreating:
      return "creating";
    case ContainerState::kCreated:
      return "created";
    case ContainerState::kRunning:
      return "running";
    case ContainerState::kExited:
      return "exited";
  }
  return "unknown";
}

std::string FullName(const Pod& pod, std::string_view container_name) {
  std::string name;
  AppendParts(name, pod.namespace_name, "/", pod.name, "/", container_name);
  return name;
}

}  // namespace resmgr
