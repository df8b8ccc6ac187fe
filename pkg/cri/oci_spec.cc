// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/oci_spec.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace resmgr {

namespace {

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
