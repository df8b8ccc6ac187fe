// SPDX-License-Identifier: Apache-2.0
#include "webhook/pod_resources.h"

#include <map>
#include <string_view>
#include <utility>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/kube/quantity.h"
#include "webhook/json_fields.h"

namespace resmgr::webhook {

namespace {

using nlohmann::json;
// Keeps the members in the order of their insertion, that of Kubernetes' own types.
using nlohmann::ordered_json;

StatusOr<std::string> Quantity(const json& value) {
  if (value.is_string()) return CanonicalQuantity(value.get_ref<const std::string&>());
  if (value.is_number()) return CanonicalQuantity(JsonText(value));
  return InvalidArgument("it must be a quantity");
}

// `list` is "limits" or "requests" of a ResourceRequirements.
Status AddList(const json& requirements, std::string_view list, ordered_json& target) {
  RESMGR_ASSIGN_OR_RETURN(const json* resources, ObjectAt(requirements, list));
  if (resources == nullptr || resources->empty()) return OkStatus();
  ordered_json quantities = ordered_json::object();
  for (const auto& [resource, value] : resources->items()) {
    auto quantity = Quantity(value);
    if (!quantity.ok()) {
      return Annotate(quantity.status(), fmt::format("{}.{}", list, Printable(resource, 64)));
    }
    quantities[resource] = *std::move(quantity);
  }
  target[std::string(list)] = std::move(quantities);
  return OkStatus();
}

Status AddContainer(const json& container, std::string& name, ordered_json& target) {
  RESMGR_ASSIGN_OR_RETURN(name, StringAt(container, "name"));
  if (name.empty()) return InvalidArgument("a container has no name");
  target = ordered_json::object();
  RESMGR_ASSIGN_OR_RETURN(const json* requirements, ObjectAt(container, "resources"));
  if (requirements == nullptr) return OkStatus();
  Status status = AddList(*requirements, "limits", target);
  if (status.ok()) status = AddList(*requirements, "requests", target);
  return status.ok() ? status : Annotate(status, Printable(name, 64));
}

// `list` is "initContainers" or "containers" of a pod's spec.
StatusOr<ordered_json> Containers(const json& spec, std::string_view list) {
  std::map<std::string, ordered_json> sorted;
  const auto found = spec.find(list);
  if (found != spec.end() && !found->is_null()) {
    if (!found->is_array()) return InvalidArgument("spec.{} must be a list", list);
    for (const json& container : *found) {
      std::string name;
      ordered_json requirements;
      const Status status = AddContainer(container, name, requirements);
      if (!status.ok()) return Annotate(status, fmt::format("spec.{}", list));
      sorted.insert_or_assign(std::move(name), std::move(requirements));
    }
  }
  ordered_json containers = ordered_json::object();
  for (auto& [name, requirements] : sorted)
    containers[name] = std::move(requirements);
  return containers;
}

}  // namespace

StatusOr<std::string> ResourcesOfPod(const json& pod) {
  RESMGR_ASSIGN_OR_RETURN(const json* spec, ObjectAt(pod, "spec"));
  if (spec == nullptr) return InvalidArgument("the pod has no spec");
  ordered_json resources = ordered_json::object();
  for (const std::string_view list : {"initContainers", "containers"}) {
    RESMGR_ASSIGN_OR_RETURN(resources[std::string(list)], Containers(*spec, list));
  }
  return OrderedJsonText(resources);
}

}  // namespace resmgr::webhook
