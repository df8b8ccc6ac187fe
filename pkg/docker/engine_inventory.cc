// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_inventory.h"

#include <limits>
#include <utility>

#include <absl/time/time.h>

#include "pkg/base/parse.h"
#include "pkg/docker/container_body.h"
#include "pkg/docker/json_text.h"

namespace resmgr::docker {
namespace {

constexpr std::string_view kOthersPod = "docker";

StringMap LabelsOf(std::string_view value) {
  std::vector<std::pair<std::string, std::string>> texts;
  if (IsJsonObject(value)) {
    ForEachMember(value, [&texts](std::string_view name, std::string_view label) {
      texts.emplace_back(DecodeJsonText(name), TextOf(label));
    });
  }
  return {texts.begin(), texts.end()};
}

std::string NameOf(std::string_view value) {
  std::string name = TextOf(value);
  if (name.starts_with('/')) name.erase(0, 1);
  return name;
}

// The first name without a second slash. Names like "/other/alias" come from links.
std::string FirstName(std::string_view list) {
  std::string first;
  if (!IsJsonList(list)) return first;
  ForEachElement(list, [&first](std::string_view value) {
    std::string name = NameOf(value);
    if (first.empty() && name.find('/') == std::string::npos) first = std::move(name);
  });
  return first;
}

void SetState(std::string_view state, EngineContainer& container) {
  container.dead = state == "dead" || state == "removing";
  container.ended = state == "exited" || container.dead;
  if (container.ended) {
    container.state = ContainerState::kExited;
  } else {
    // A container that is paused, or about to be restarted, keeps its CPUs.
    container.state = state == "created" ? ContainerState::kCreated : ContainerState::kRunning;
  }
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> TimeOf(const std::string& text) {
  const absl::Time last = absl::FromUnixNanos(std::numeric_limits<int64_t>::max());
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, nullptr) || time < absl::UnixEpoch() ||
      time > last)
    return std::nullopt;
  return absl::ToChronoTime(time);
}

StatusOr<std::vector<EngineContainer>> ReadContainerList(std::string_view body) {
  RESMGR_RETURN_IF_ERROR(CheckJson(body));
  const std::string_view list = Trim(body);
  if (!IsJsonList(list)) return InvalidArgument("the list of containers is not a JSON list");
  std::vector<EngineContainer> containers;
  ForEachElement(list, [&containers](std::string_view element) {
    EngineContainer container;
    const auto [id, names, labels, state] = MembersOf(element, {"Id", "Names", "Labels", "State"});
    container.id = ContainerId(TextOf(id));
    container.name = FirstName(names);
    container.labels = LabelsOf(labels);
    if (!state.empty()) SetState(TextOf(state), container);
    if (!container.id.empty()) containers.push_back(std::move(container));
  });
  return containers;
}

StatusOr<EngineDetails> ReadContainerDetails(std::string_view body) {
  RESMGR_RETURN_IF_ERROR(CheckJson(body));
  EngineDetails details;
  EngineContainer& container = details.container;
  const auto [id, name, config, state, host_config] =
      MembersOf(Trim(body), {"Id", "Name", "Config", "State", "HostConfig"});
  container.id = ContainerId(TextOf(id));
  container.name = NameOf(name);
  container.labels = LabelsOf(MembersOf(config, {"Labels"})[0]);
  const auto [status, started_at] = MembersOf(state, {"Status", "StartedAt"});
  if (!status.empty()) SetState(TextOf(status), container);
  details.started_at = TimeOf(TextOf(started_at));
  if (IsJsonObject(host_config)) {
    RESMGR_RETURN_IF_ERROR(ReadResources(host_config, details.resources));
  }
  const auto [cgroup_parent, runtime] = MembersOf(host_config, {"CgroupParent", "Runtime"});
  details.cgroup_parent = TextOf(cgroup_parent);
  details.runtime = TextOf(runtime);
  if (container.id.empty()) return InvalidArgument("an inspection tells no id");
  return details;
}

StatusOr<EngineEvent> ReadEvent(std::string_view line) {
  RESMGR_RETURN_IF_ERROR(CheckJson(line));
  EngineEvent event;
  const auto [type, told_action, actor] = MembersOf(Trim(line), {"Type", "Action", "Actor"});
  const auto [id, attributes] = MembersOf(actor, {"ID", "Attributes"});
  const std::string action = TextOf(told_action);
  event.id = TextOf(id);
  event.labels = LabelsOf(attributes);
  if (TextOf(type) != "container") return event;
  using enum ContainerEvent::Kind;
  if (action == "create") event.kind = kCreated;
  if (action == "start") event.kind = kStarted;
  if (action == "die") event.kind = kStopped;
  if (action == "destroy") event.kind = kDeleted;
  if (action == "update") event.kind = kUpdated;
  if (action == "rename") event.kind = kRenamed;
  if (const auto name = event.labels.find("name"); name != event.labels.end()) {
    event.name = (*name).second;
  }
  return event;
}

Pod OthersPod() {
  Pod pod;
  pod.id = PodSandboxId(kOthersPod);
  pod.uid = PodUid(kOthersPod);
  pod.name = kOthersPod;
  pod.namespace_name = kOthersPod;
  return pod;
}

Identity IdentityOf(const StringMap& labels, std::string_view name, Others others) {
  Identity identity = ReadIdentity(labels, name);
  if (others == Others::kPass || identity.kind != Identity::Kind::kOther) return identity;
  identity.kind = Identity::Kind::kContainer;
  identity.pod = OthersPod();
  identity.pod_id = identity.pod.id;
  identity.container = name;
  return identity;
}

Pod ToPod(const EngineContainer& sandbox, const Identity& identity) {
  Pod pod = identity.pod;
  pod.id = PodSandboxId(sandbox.id.value());
  return pod;
}

RuntimeContainer ToContainer(const EngineContainer& container, const Identity& identity) {
  return {.id = container.id,
          .pod_id = identity.pod_id,
          .name = identity.container,
          .attempt = identity.attempt,
          .state = container.state,
          .labels = identity.labels,
          .annotations = identity.annotations,
          .resources = {},
          .dead = container.dead};
}

}  // namespace resmgr::docker
