// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/resources_annotation.h"

#include <string>

#include <nlohmann/json.hpp>

#include "pkg/base/parse.h"
#include "pkg/kube/quantity.h"

namespace resmgr {

namespace {

using nlohmann::json;

// Kubernetes allows 256 KiB for all annotations of an object together.
constexpr size_t kMaxSize = size_t{256} * 1024;

// The member of an object, nullptr when it is absent or null. InvalidArgument when `object` is not
// one.
StatusOr<const json*> Member(const json& object, std::string_view name, std::string_view what) {
  if (!object.is_object()) return InvalidArgument("{} must be a JSON object", what);
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// A resource's quantity; nullopt when it is not named.
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

StatusOr<std::optional<Requirements>> ReadContainer(const json& container, std::string_view name) {
  RESMGR_ASSIGN_OR_RETURN(const json* limit_list, Member(container, "limits", name));
  RESMGR_ASSIGN_OR_RETURN(const json* request_list, Member(container, "requests", name));
  const auto is_empty = [](const json* list) { return list == nullptr || list->empty(); };
  if (is_empty(limit_list) && is_empty(request_list)) return std::nullopt;

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

}  // namespace

StatusOr<std::optional<Requirements>> ParseResourcesAnnotation(std::string_view text,
                                                               std::string_view container_name) {
  if (text.size() > kMaxSize) {
    return InvalidArgument("{} has {} bytes, more than {}", kResourcesAnnotation, text.size(),
                           kMaxSize);
  }
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return InvalidArgument("{} is not JSON", kResourcesAnnotation);
  const std::string name = Printable(container_name);
  for (const std::string_view section : {"initContainers", "containers"}) {
    RESMGR_ASSIGN_OR_RETURN(const json* containers,
                            Member(document, section, kResourcesAnnotation));
    if (containers == nullptr) continue;
    const std::string what = fmt::format("{}: {}", kResourcesAnnotation, section);
    RESMGR_ASSIGN_OR_RETURN(const json* container, Member(*containers, container_name, what));
    if (container != nullptr) return ReadContainer(*container, fmt::format("{}.{}", what, name));
  }
  return std::nullopt;
}

}  // namespace resmgr
