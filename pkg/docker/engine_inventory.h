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

// A container as dockerd lists it.
struct EngineContainer {
  ContainerId id;
  std::string name;  // without the leading slash
  StringMap labels;
  ContainerState state = ContainerState::kCreated;
  bool ended = false;  // it does not run any more, and was started before
  bool dead = false;   // it is being removed and will never run again
};

// Parses "2020-01-02T03:04:05.678Z"; nullopt before 1970: the year 1 means never.
std::optional<std::chrono::system_clock::time_point> TimeOf(const std::string& text);

// Reads GET /containers/json. kInvalidArgument: malformed.
StatusOr<std::vector<EngineContainer>> ReadContainerList(std::string_view body);

// A reply to GET /containers/ID/json.
struct EngineDetails {
  EngineContainer container;
  LinuxResources resources;
  std::string cgroup_parent;
  std::string runtime;
  std::optional<std::chrono::system_clock::time_point> started_at{};
};
StatusOr<EngineDetails> ReadContainerDetails(std::string_view body);

// One line of GET /events about a container. kUnknown: to be ignored.
struct EngineEvent {
  ContainerEvent::Kind kind = ContainerEvent::Kind::kUnknown;
  std::string id{};
  std::string name{};
  StringMap labels{};  // with the other attributes of the container
};
StatusOr<EngineEvent> ReadEvent(std::string_view line);

// Decides which containers of Docker outside pods are placed.
enum class Others : uint8_t {
  kPass,   // none
  kShare,  // all are placed as containers of one pod without requests: on the shared CPUs
};

// The role of a container. With kShare containers outside pods belong to the pod OthersPod.
Identity IdentityOf(const StringMap& labels, std::string_view name, Others others);
Pod OthersPod();

// Converts listed objects to the resource manager's form, as far as a list has the values.
Pod ToPod(const EngineContainer& sandbox, const Identity& identity);
RuntimeContainer ToContainer(const EngineContainer& container, const Identity& identity);

}  // namespace resmgr::docker
