// SPDX-License-Identifier: Apache-2.0
#include "webhook/pod_patch.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/kube/quantity.h"
#include "pkg/model/resources_annotation.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;

// Keys and values of all annotations of an object together (TotalAnnotationSizeLimitB in
// k8s.io/apimachinery).
constexpr size_t kMaxAnnotations = size_t{256} * 1024;
// Marks the API server's copy of a pod that a kubelet runs from a file.
constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";
constexpr std::string_view kAnnotationsPath = "/metadata/annotations";
// The path in a JSON pointer, where "~1" stands for the "/" of "intel.com/resources".
constexpr std::string_view kResourcesPath = "/metadata/annotations/intel.com~1resources";

// Whether the annotation has this value, whatever the order of its members.
bool Says(const json* annotations, const std::string& value) {
  if (annotations == nullptr) return false;
  const auto found = annotations->find(kResourcesAnnotation);
  if (found == annotations->end() || !found->is_string()) return false;
  const auto& text = found->get_ref<const std::string&>();
  if (text == value) return true;
  if (text.size() > kMaxAnnotations) return false;
  const std::optional<json> parsed = ParseJson(text);
  return parsed && parsed == ParseJson(value);
}

size_t SizeOfOthers(const json* annotations) {
  size_t size = 0;
  if (annotations == nullptr) return size;
  for (const auto& [key, value] : annotations->items()) {
    if (key == kResourcesAnnotation) continue;
    size += key.size() + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  }
  return size;
}

json AddOperation(std::string_view path, json value) {
  return {{"op", "add"}, {"path", path}, {"value", std::move(value)}};
}

// The annotation's value, or the reason why none can be written.
StatusOr<std::string> ValueFor(const json* annotations, const json& stored) {
  RESMGR_ASSIGN_OR_RETURN(std::string value, ResourcesOfPod(stored));
  const size_t size = SizeOfOthers(annotations) + kResourcesAnnotation.size() + value.size();
  if (size > kMaxAnnotations) {
    return InvalidArgument("with {} the annotations would have {} bytes, more than {}",
                           kResourcesAnnotation, size, kMaxAnnotations);
  }
  return value;
}

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

StatusOr<const json*> MemberAt(const json& object, std::string_view name) {
  if (!object.is_object()) return InvalidArgument("what should hold \"{}\" is not an object", name);
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace

StatusOr<PodPatch> PatchOfPod(const json& pod, const json& stored) {
  RESMGR_ASSIGN_OR_RETURN(const json* metadata, ObjectAt(pod, "metadata"));
  if (metadata == nullptr) return InvalidArgument("the pod has no metadata");
  RESMGR_ASSIGN_OR_RETURN(const json* annotations, ObjectAt(*metadata, "annotations"));
  if (annotations != nullptr && annotations->contains(kMirrorAnnotation)) return PodPatch{};

  json patch = json::array();
  const auto value = ValueFor(annotations, stored);
  if (!value.ok()) {
    PodPatch removal{.warning = std::string(Message(value.status()))};
    if (annotations != nullptr && annotations->contains(kResourcesAnnotation)) {
      patch.push_back({{"op", "remove"}, {"path", kResourcesPath}});
      removal.patch = JsonText(patch);
    }
    return removal;
  }
  if (Says(annotations, *value)) return PodPatch{};
  if (annotations == nullptr) patch.push_back(AddOperation(kAnnotationsPath, json::object()));
  // The operation "add" also replaces an existing value.
  patch.push_back(AddOperation(kResourcesPath, *value));
  return PodPatch{.patch = JsonText(patch)};
}

StatusOr<std::string> ResourcesOfPod(const json& pod) {
  RESMGR_ASSIGN_OR_RETURN(const json* spec, ObjectAt(pod, "spec"));
  if (spec == nullptr) return InvalidArgument("the pod has no spec");
  ordered_json resources = ordered_json::object();
  for (const std::string_view list : {"initContainers", "containers"}) {
    RESMGR_ASSIGN_OR_RETURN(resources[std::string(list)], Containers(*spec, list));
  }
  return OrderedJsonText(resources);
}

StatusOr<const json*> ObjectAt(const json& object, std::string_view name) {
  RESMGR_ASSIGN_OR_RETURN(const json* member, MemberAt(object, name));
  if (member != nullptr && !member->is_object()) {
    return InvalidArgument("\"{}\" must be an object", name);
  }
  return member;
}

StatusOr<std::string> StringAt(const json& object, std::string_view name) {
  RESMGR_ASSIGN_OR_RETURN(const json* member, MemberAt(object, name));
  if (member == nullptr) return std::string();
  if (!member->is_string()) return InvalidArgument("\"{}\" must be a string", name);
  return member->get<std::string>();
}

}  // namespace resmgr::webhook
