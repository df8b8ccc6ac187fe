// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/docker/docker_labels.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr::docker {

// What dockerd tells of a container.
struct EngineContainer {
  ContainerId id;
  std::string name;  // without the slash
  StringMap labels;
  ContainerState state = ContainerState::kCreated;
  bool ended = false;  // it runs no more, and is not to be started for the first time
  bool dead = false;   // nor ever again: it is being removed
};

// GET /containers/json. kInvalidArgument: it is none.
StatusOr<std::vector<EngineContainer>> ReadContainerList(std::string_view body);

// GET /containers/ID/json.
struct EngineDetails {
  EngineContainer container;
  LinuxResources resources;
  std::string cgroup_parent;
  std::string runtime;
  std::optional<std::chrono::system_clock::time_point> started_at{};
};
StatusOr<EngineDetails> ReadContainerDetails(std::string_view body);

// One line of GET /events, of a container. kUnknown: of no interest.
struct EngineEvent {
  ContainerEvent::Kind kind = ContainerEvent::Kind::kUnknown;
  std::string id{};
  std::string name{};
  StringMap labels{};  // with what else dockerd tells of the container
};
StatusOr<EngineEvent> ReadEvent(std::string_view line);

// Which containers of Docker that are no pods' are placed.
enum class Others : uint8_t {
  kPass,   // none
  kShare,  // all, as those of one pod without requests: on the CPUs that are shared
};

// What a container is to the node. With kShare those that are no pods' are the containers of the
// pod OthersPod.
Identity IdentityOf(const StringMap& labels, std::string_view name, Others others);
Pod OthersPod();

// As the resource manager takes them, as far as a list tells.
Pod ToPod(const EngineContainer& sandbox, const Identity& identity);
RuntimeContainer ToContainer(const EngineContainer& container, const Identity& identity);

}  // namespace resmgr::docker
