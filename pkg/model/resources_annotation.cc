// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/resources_annotation.h"

#include <array>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/kube/qos.h"
#include "pkg/kube/quantity.h"
#include "pkg/model/requirements.h"

namespace resmgr {

namespace {

using nlohmann::json;

// Kubernetes limits all annotations of an object together to 256 KiB.
constexpr size_t kMaxSize = size_t{256} * 1024;

// The member of an object, nullptr when it is absent or null. InvalidArgument when `object` is not
// one.
StatusOr<const json*> Member(const json& object, std::string_view name, std::string_view what) {
  if (!object.is_object()) return InvalidArgument("{} must be a JSON object", what);
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// A resource's quantity; nullopt if the list does not name the resource.
template <typename Value>
StatusOr<std::optional<Value>> ReadQuantity(const json* list, std::string_view resource,
                                            std::string_view what,
                                            StatusOr<Value> (*parse)(std::string_view)) {
  if (list == nullptr) return std::nullopt;
  RESMGR_ASSIGN_OR_RETURN(const json* quantity, Member(*list, resource, what));
  if (quantity == nullptr) return std::nullopt;
  if (!quantity->is_string() && !quantity->is_number()) {
    return InvalidArgument("{}.{} must be a quantity", what, resource);
  }
  const StatusOr<Value> value =
      parse(quantity->is_string() ? quantity->get_ref<const std::string&>() : quantity->dump());
  if (!value.ok()) return Annotate(value.status(), fmt::format("{}.{}", what, resource));
  return *value;
}

struct ResourceList {
  std::optional<MilliCpu> cpu;
  std::optional<Bytes> memory;
};

StatusOr<ResourceList> ReadList(const json* list, std::string_view what) {
  ResourceList resources;
  RESMGR_ASSIGN_OR_RETURN(resources.cpu, ReadQuantity(list, "cpu", what, &ParseMilliCpu));
  RESMGR_ASSIGN_OR_RETURN(resources.memory, ReadQuantity(list, "memory", what, &ParseBytes));
  return resources;
}

StatusOr<Requirements> ReadContainer(const json& container, std::string_view name) {
  RESMGR_ASSIGN_OR_RETURN(const json* limit_list, Member(container, "limits", name));
  RESMGR_ASSIGN_OR_RETURN(const json* request_list, Member(container, "requests", name));
  RESMGR_ASSIGN_OR_RETURN(const ResourceList limits,
                          ReadList(limit_list, fmt::format("{}.limits", name)));
  RESMGR_ASSIGN_OR_RETURN(const ResourceList requests,
                          ReadList(request_list, fmt::format("{}.requests", name)));
  Requirements requirements;
  requirements.cpu_limit = limits.cpu.value_or(MilliCpu{});
  requirements.memory_limit = limits.memory.value_or(Bytes{});
  requirements.cpu_request = requests.cpu.value_or(requirements.cpu_limit);
  requirements.memory_request = requests.memory.value_or(requirements.memory_limit);
  return requirements;
}

constexpr std::array<std::string_view, 2> kSections = {"initContainers", "containers"};

StatusOr<json> ParseDocument(std::string_view text) {
  if (text.size() > kMaxSize) {
    return InvalidArgument("{} has {} bytes, more than {}", kResourcesAnnotation, text.size(),
                           kMaxSize);
  }
  std::optional<json> document = ParseJson(text);
  if (!document) return InvalidArgument("{} is not JSON", kResourcesAnnotation);
  return *std::move(document);
}

// A container of either section, the section, and its name in messages.
struct Found {
  const json* container = nullptr;
  std::string what;
  AnnotationSection section = AnnotationSection::kNone;
};

StatusOr<Found> FindContainer(const json& document, std::string_view container_name) {
  for (const std::string_view section : kSections) {
    RESMGR_ASSIGN_OR_RETURN(const json* containers,
                            Member(document, section, kResourcesAnnotation));
    if (containers == nullptr) continue;
    const std::string what = fmt::format("{}: {}", kResourcesAnnotation, section);
    RESMGR_ASSIGN_OR_RETURN(const json* container, Member(*containers, container_name, what));
    if (container != nullptr) {
      return Found{container, fmt::format("{}.{}", what, Printable(container_name)),
                   section == kSections.front() ? AnnotationSection::kInitContainers
                                                : AnnotationSection::kContainers};
    }
  }
  return Found{};
}

// Adds the resources of `list` other than cpu and memory; existing values stay.
Status AddOthers(const json* list, std::string_view what, std::map<std::string, int64_t>& others) {
  if (list == nullptr) return OkStatus();
  if (!list->is_object()) return InvalidArgument("{} must be a JSON object", what);
  for (const auto& [name, quantity] : list->items()) {
    if (name == "cpu" || name == "memory") continue;
    RESMGR_ASSIGN_OR_RETURN(const std::optional<Bytes> amount,
                            ReadQuantity(list, name, what, &ParseBytes));
    if (amount) others.try_emplace(name, amount->value);
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::optional<Requirements>> ParseResourcesAnnotation(std::string_view text,
                                                               std::string_view container_name) {
  RESMGR_ASSIGN_OR_RETURN(const json document, ParseDocument(text));
  RESMGR_ASSIGN_OR_RETURN(const Found found, FindContainer(document, container_name));
  if (found.container == nullptr) return std::nullopt;
  RESMGR_ASSIGN_OR_RETURN(const Requirements read, ReadContainer(*found.container, found.what));
  return read;
}

StatusOr<std::map<std::string, int64_t>> ParseOtherResources(std::string_view text,
                                                             std::string_view container_name) {
  std::map<std::string, int64_t> others;
  RESMGR_ASSIGN_OR_RETURN(const json document, ParseDocument(text));
  RESMGR_ASSIGN_OR_RETURN(const Found found, FindContainer(document, container_name));
  if (found.container == nullptr) return others;
  for (const std::string_view kind : {"limits", "requests"}) {
    RESMGR_ASSIGN_OR_RETURN(const json* list, Member(*found.container, kind, found.what));
    RESMGR_RETURN_IF_ERROR(AddOthers(list, fmt::format("{}.{}", found.what, kind), others));
  }
  return others;
}

StatusOr<AnnotationSection> FindSection(std::string_view text, std::string_view container_name) {
  RESMGR_ASSIGN_OR_RETURN(const json document, ParseDocument(text));
  RESMGR_ASSIGN_OR_RETURN(const Found found, FindContainer(document, container_name));
  return found.section;
}

StatusOr<std::optional<QosClass>> QosFromResourcesAnnotation(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const json document, ParseDocument(text));
  std::vector<Requirements> all;
  for (const std::string_view section : kSections) {
    RESMGR_ASSIGN_OR_RETURN(const json* containers,
                            Member(document, section, kResourcesAnnotation));
    if (containers == nullptr) continue;
    const std::string what = fmt::format("{}: {}", kResourcesAnnotation, section);
    if (!containers->is_object()) return InvalidArgument("{} must be a JSON object", what);
    for (const auto& [name, container] : containers->items()) {
      RESMGR_ASSIGN_OR_RETURN(
          const Requirements read,
          ReadContainer(container, fmt::format("{}.{}", what, Printable(name))));
      all.push_back(read);
    }
  }
  if (all.empty()) return std::nullopt;
  return QosOf(all);
}

namespace {

std::optional<QosClass> ToldQos(std::string_view cgroup_parent, const StringMap& annotations) {
  if (const std::optional<PodCgroup> cgroup = ParsePodCgroup(cgroup_parent)) return cgroup->qos;
  const auto annotation = annotations.find(kResourcesAnnotation);
  if (annotation == annotations.end()) return std::nullopt;
  const auto qos = QosFromResourcesAnnotation(annotation->second);
  return qos.ok() ? *qos : std::nullopt;
}

}  // namespace

void SetQos(std::string_view cgroup_parent, Pod& pod) {
  const std::optional<QosClass> told = ToldQos(cgroup_parent, pod.annotations);
  pod.qos = told.value_or(QosClass::kBestEffort);
  pod.qos_derived = !told;
}

}  // namespace resmgr
