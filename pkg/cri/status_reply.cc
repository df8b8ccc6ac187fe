// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/status_reply.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "pkg/api/message_numbers.h"
#include "pkg/cri/messages.h"
#include "pkg/model/resource_fields.h"
#include "pkg/model/resources_annotation.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;

LinuxResources FromMessage(const v1::LinuxContainerResources& message) {
  LinuxResources resources;
  for (const NumberField& number : kNumberFields) {
    if (number.requested == nullptr) continue;
    resources.*number.requested = NumberAt(message, number.cri_number);
  }
  if (!message.cpuset_cpus().empty()) resources.cpuset_cpus = message.cpuset_cpus();
  if (!message.cpuset_mems().empty()) resources.cpuset_mems = message.cpuset_mems();
  for (const auto& limit : message.hugepage_limits()) {
    resources.hugepage_limits[limit.page_size()] = limit.limit();
  }
  return resources;
}

LinuxResources FromSpec(const Json& info) {
  const Json& spec = At(info, {"runtimeSpec", "linux", "resources"});
  LinuxResources resources;
  resources.cpu_period = Number(At(spec, {"cpu", "period"}));
  resources.cpu_quota = Number(At(spec, {"cpu", "quota"}));
  resources.cpu_shares = Number(At(spec, {"cpu", "shares"}));
  resources.memory_limit = Number(At(spec, {"memory", "limit"}));
  resources.cpuset_cpus = Text(At(spec, {"cpu", "cpus"}));
  resources.cpuset_mems = Text(At(spec, {"cpu", "mems"}));
  resources.oom_score_adj = Number(At(info, {"runtimeSpec", "process", "oomScoreAdj"}));
  for (const Json& limit : At(spec, {"hugepageLimits"})) {
    const auto page_size = Text(At(limit, {"pageSize"}));
    const auto bytes = Number(At(limit, {"limit"}));
    if (page_size && bytes) resources.hugepage_limits[*page_size] = static_cast<uint64_t>(*bytes);
  }
  return resources;
}

// Reads LinuxContainerResources in both runtimes' JSON: the CRI's names, without zeros.
LinuxResources FromCriJson(const Json& json) {
  LinuxResources resources;
  for (const NumberField& number : kNumberFields) {
    if (number.requested != nullptr)
      resources.*number.requested = Number(At(json, {number.cri_name}));
  }
  return resources;
}

// In containerd: info.config.linux. In CRI-O: text in an annotation of info.runtimeSpec.
LinuxResources PodResourcesFrom(const Json& info, const char* containerd, const char* crio) {
  const Json& value = At(info, {"config", "linux", containerd});
  if (value.is_object()) return FromCriJson(value);
  const auto text = Text(At(info, {"runtimeSpec", "annotations", crio}));
  if (!text) return {};
  return FromCriJson(ParseJson(*text).value_or(Json()));
}

bool Has(const std::vector<std::string>& options, std::initializer_list<std::string_view> wanted) {
  return std::any_of(options.begin(), options.end(), [wanted](const std::string& option) {
    return std::find(wanted.begin(), wanted.end(), option) != wanted.end();
  });
}

Mount::Propagation PropagationOf(const std::vector<std::string>& options) {
  if (Has(options, {"rshared", "shared"})) return Mount::Propagation::kBidirectional;
  if (Has(options, {"rslave", "slave"})) return Mount::Propagation::kHostToContainer;
  return Mount::Propagation::kPrivate;
}

std::vector<Mount> BindMountsOf(const Json& list) {
  std::vector<Mount> mounts;
  for (const Json& item : list) {
    const std::vector<std::string> options = TextsOf(At(item, {"options"}));
    if (At(item, {"type"}) != "bind" && !Has(options, {"bind", "rbind"})) continue;
    Mount mount;
    mount.container_path = Text(At(item, {"destination"})).value_or("");
    mount.host_path = Text(At(item, {"source"})).value_or("");
    mount.recursive_read_only = Has(options, {"rro"});
    mount.read_only = mount.recursive_read_only || Has(options, {"ro"});
    mount.propagation = PropagationOf(options);
    mount.non_recursive = !Has(options, {"rbind"});
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

uint64_t Unsigned(const Json& json) {
  return json.is_number_unsigned() ? json.get<uint64_t>() : 0;
}

std::vector<ResourceLimit> LimitsOf(const Json& list) {
  std::vector<ResourceLimit> limits;
  for (const Json& item : list) {
    limits.push_back({.type = Text(At(item, {"type"})).value_or(""),
                      .hard = Unsigned(At(item, {"hard"})),
                      .soft = Unsigned(At(item, {"soft"}))});
  }
  return limits;
}

std::vector<OciHook> HooksOf(const Json& hooks) {
  using Point = OciHook::Point;
  constexpr std::array<std::pair<const char*, Point>, 6> kPoints{{
      {"prestart", Point::kPrestart},
      {"createRuntime", Point::kCreateRuntime},
      {"createContainer", Point::kCreateContainer},
      {"startContainer", Point::kStartContainer},
      {"poststart", Point::kPoststart},
      {"poststop", Point::kPoststop},
  }};
  std::vector<OciHook> found;
  for (const auto& [name, point] : kPoints) {
    for (const Json& item : At(hooks, {name})) {
      found.push_back({.point = point,
                       .path = Text(At(item, {"path"})).value_or(""),
                       .args = TextsOf(At(item, {"args"})),
                       .env = TextsOf(At(item, {"env"})),
                       .timeout_seconds = Number(At(item, {"timeout"}))});
    }
  }
  return found;
}

StringMap TextMapOf(const Json& object) {
  std::vector<StringMap::value_type> entries;
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) entries.emplace_back(name, value.get_ref<const std::string&>());
  }
  return StringMap(std::span(entries));
}

}  // namespace

ContainerState ToState(v1::ContainerState state) {
  switch (state) {
    case v1::CONTAINER_CREATED:
      return ContainerState::kCreated;
    case v1::CONTAINER_EXITED:
      return ContainerState::kExited;
    default:
      // An unknown state counts as running, so that the container's CPUs are not given to others.
      return ContainerState::kRunning;
  }
}

const Json& At(const Json& json, std::initializer_list<const char*> path) {
  static const Json kNull;
  const Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object()) return kNull;
    const auto it = at->find(key);
    if (it == at->end()) return kNull;
    at = &*it;
  }
  return *at;
}

std::optional<int64_t> Number(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  return json.get<int64_t>();
}

std::optional<std::string> Text(const Json& json) {
  if (!json.is_string()) return std::nullopt;
  return json.get<std::string>();
}

void AddInfo(const Json& info, Pod& pod) {
  auto parent = Text(At(info, {"config", "linux", "cgroup_parent"}));
  if (!parent) {
    parent = Text(At(info, {"runtimeSpec", "annotations", "io.kubernetes.cri-o.CgroupParent"}));
  }
  if (parent) pod.cgroup_parent = *std::move(parent);
  pod.overhead = PodResourcesFrom(info, "overhead", "io.kubernetes.cri-o.PodLinuxOverhead");
  pod.resources = PodResourcesFrom(info, "resources", "io.kubernetes.cri-o.PodLinuxResources");
  CompleteIdentity(pod);
  SetQos(pod.cgroup_parent, pod);
}

void AddStatus(const v1::ContainerStatus& status, const Json& info, RuntimeContainer& container) {
  container.resources =
      status.resources().has_linux() ? FromMessage(status.resources().linux()) : FromSpec(info);
  container.state = ToState(status.state());
  // Nanoseconds since 1970; 0 before the start.
  if (const int64_t started = status.started_at(); started > 0) {
    using WallClock = std::chrono::system_clock;
    container.started_at = WallClock::time_point(
        std::chrono::duration_cast<WallClock::duration>(std::chrono::nanoseconds(started)));
  }
}

std::string CgroupsPathOf(const Json& spec) {
  return Text(At(spec, {"linux", "cgroupsPath"})).value_or("");
}

std::vector<LinuxNamespace> NamespacesOf(const Json& spec) {
  std::vector<LinuxNamespace> namespaces;
  for (const Json& item : At(spec, {"linux", "namespaces"})) {
    if (auto type = Text(At(item, {"type"}))) {
      namespaces.push_back(
          {.type = *std::move(type), .path = Text(At(item, {"path"})).value_or("")});
    }
  }
  return namespaces;
}

ContainerDetails DetailsOf(const Json& spec) {
  ContainerDetails details;
  details.environment = EnvironmentOf(At(spec, {"process", "env"}));
  details.command = TextsOf(At(spec, {"process", "args"}));
  details.mounts = BindMountsOf(At(spec, {"mounts"}));
  details.memory_swap_limit = Number(At(spec, {"linux", "resources", "memory", "swap"}));
  if (const Json& unified = At(spec, {"linux", "resources", "unified"}); unified.is_object()) {
    details.unified = TextMapOf(unified);
  }
  details.hooks = HooksOf(At(spec, {"hooks"}));
  details.resource_limits = LimitsOf(At(spec, {"process", "rlimits"}));
  return details;
}

Environment EnvironmentOf(const Json& list) {
  Environment environment;
  for (const std::string& text : TextsOf(list))
    environment.AddText(text);
  return environment;
}

std::vector<std::string> TextsOf(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& item : list) {
    if (auto text = Text(item)) texts.push_back(*std::move(text));
  }
  return texts;
}

}  // namespace resmgr
