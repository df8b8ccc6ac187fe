// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/manifest.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/kube/names.h"
#include "pkg/kube/quantity.h"
#include "pkg/model/requirements.h"
#include "pkg/simulator/yaml_access.h"

namespace resmgr {

namespace {

using Kind = ConfigNode::Kind;
constexpr std::string_view kHugepages = "hugepages-";

// Quantities of a container's limits or requests; missing ones are unset.
struct ResourceList {
  std::optional<MilliCpu> cpu{};
  std::optional<Bytes> memory{};
  std::map<std::string, uint64_t> hugepages{};
};

// Converts the page size "2Mi" of manifests to "2MB" of the CRI.
std::string CriPageSize(std::string_view size) {
  std::string text(size);
  if (text.ends_with('i')) text.back() = 'B';
  return text;
}

Status ReadResource(const ConfigNode::Entry& entry, ResourceList& list) {
  if (entry.value.kind != Kind::kScalar) return InvalidArgument("must be a quantity");
  const std::string& text = entry.value.text;
  if (entry.key == "cpu") {
    RESMGR_ASSIGN_OR_RETURN(list.cpu, ParseMilliCpu(text));
    return OkStatus();
  }
  // Resources other than cpu are whole numbers, of bytes or of pieces.
  RESMGR_ASSIGN_OR_RETURN(const Bytes bytes, ParseBytes(text));
  if (entry.key == "memory") list.memory = bytes;
  if (entry.key.starts_with(kHugepages)) {
    list.hugepages[CriPageSize(std::string_view(entry.key).substr(kHugepages.size()))] =
        static_cast<uint64_t>(bytes.value);
  }
  return OkStatus();
}

StatusOr<ResourceList> ReadList(const ConfigNode* resources, std::string_view key,
                                std::string_view path) {
  ResourceList list;
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const values,
                          FindKey(resources, key, Kind::kMap, path));
  if (values == nullptr) return list;
  for (const ConfigNode::Entry& entry : values->entries) {
    if (const Status status = ReadResource(entry, list); !status.ok()) {
      return ErrorAt(entry.value, fmt::format("{}{}.{}", path, key, Printable(entry.key, 64)),
                     Message(status));
    }
  }
  return list;
}

// Whether a container can have this name, a DNS label.
bool IsContainerName(std::string_view name) {
  constexpr size_t kLongest = 63;
  return name.size() <= kLongest && name.find('.') == std::string_view::npos && IsSubdomain(name);
}

Status AboveLimit(const ConfigNode& resources, std::string_view path, std::string_view what) {
  return ErrorAt(resources, path, fmt::format("more {} is requested than the limit allows", what));
}

// `resources` may be nullptr.
Status ReadResources(const ConfigNode* resources, std::string_view path,
                     Manifest::Container& container) {
  for (const ConfigNode::Entry& entry :
       resources == nullptr ? std::vector<ConfigNode::Entry>() : resources->entries) {
    if (entry.key == "limits" || entry.key == "requests" || entry.key == "claims") continue;
    return ErrorAt(entry.value, fmt::format("{}{}", path, Printable(entry.key, 64)),
                   "unknown key; known here: limits, requests, claims");
  }
  RESMGR_ASSIGN_OR_RETURN(ResourceList limits, ReadList(resources, "limits", path));
  RESMGR_ASSIGN_OR_RETURN(const ResourceList requests, ReadList(resources, "requests", path));
  Requirements& needs = container.requirements;
  needs.cpu_limit = limits.cpu.value_or(MilliCpu{});
  needs.memory_limit = limits.memory.value_or(Bytes{});
  needs.cpu_request = requests.cpu.value_or(needs.cpu_limit);
  needs.memory_request = requests.memory.value_or(needs.memory_limit);
  container.hugepage_limits = std::move(limits.hugepages);
  const std::string_view whole = path.substr(0, path.size() - 1);  // without its trailing dot
  if (limits.cpu && needs.cpu_request > needs.cpu_limit)
    return AboveLimit(*resources, whole, "CPU");
  if (limits.memory && needs.memory_request > needs.memory_limit)
    return AboveLimit(*resources, whole, "memory");
  return OkStatus();
}

// The pod's own names of the claims that a container carries, each once: a container may name
// several requests of one claim.
StatusOr<std::vector<std::string>> ReadClaimNames(const ConfigNode* resources,
                                                  const std::string& path) {
  std::vector<std::string> names;
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const claims,
                          FindKey(resources, "claims", Kind::kList, path));
  for (const ConfigNode& claim : claims == nullptr ? std::vector<ConfigNode>() : claims->items) {
    if (claim.kind != Kind::kMap) return ErrorAt(claim, path + "claims", "must be maps");
    RESMGR_ASSIGN_OR_RETURN(std::string name, FindText(&claim, "name", path + "claims."));
    if (name.empty()) return ErrorAt(claim, path + "claims", "one has no name");
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

Status ReadContainer(const ConfigNode& node, const std::string& path,
                     Manifest::Container& container) {
  if (node.kind != Kind::kMap) return ErrorAt(node, path, "must be a map");
  RESMGR_RETURN_IF_ERROR(CheckSpelling(
      node, {"name", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules"},
      path + "."));
  RESMGR_ASSIGN_OR_RETURN(container.name, FindText(&node, "name", path + "."));
  if (container.name.empty()) return ErrorAt(node, path, "has no name");
  if (!IsContainerName(container.name)) {
    return ErrorAt(node, path,
                   fmt::format("\"{}\" is not a valid name", Printable(container.name, 64)));
  }
  RESMGR_ASSIGN_OR_RETURN(const std::string restart, FindText(&node, "restartPolicy", path + "."));
  container.sidecar = restart == "Always";
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const resources,
                          FindKey(&node, "resources", Kind::kMap, path + "."));
  RESMGR_ASSIGN_OR_RETURN(container.claims, ReadClaimNames(resources, path + ".resources."));
  return ReadResources(resources, path + ".resources.", container);
}

StatusOr<std::vector<Manifest::Container>> ReadContainers(const ConfigNode& spec,
                                                          std::string_view key,
                                                          std::set<std::string>& names) {
  std::vector<Manifest::Container> containers;
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const list, FindKey(&spec, key, Kind::kList, "spec."));
  if (list == nullptr) return containers;
  for (const ConfigNode& node : list->items) {
    const std::string path = fmt::format("spec.{}[{}]", key, containers.size());
    Manifest::Container container;
    RESMGR_RETURN_IF_ERROR(ReadContainer(node, path, container));
    if (!names.insert(container.name).second) {
      return ErrorAt(node, path,
                     fmt::format("the name \"{}\" is taken", Printable(container.name)));
    }
    containers.push_back(std::move(container));
  }
  return containers;
}

Status ReadMetadata(const ConfigNode& document, Manifest& pod) {
  RESMGR_ASSIGN_OR_RETURN(
      ObjectName names,
      ReadObjectName(document, "a pod", {"name", "namespace", "uid", "labels", "annotations"}));
  pod.name = std::move(names.name);
  pod.namespace_name = std::move(names.namespace_name);
  pod.uid = std::move(names.uid);
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const metadata,
                          FindAt(document, "metadata", Kind::kMap));
  RESMGR_ASSIGN_OR_RETURN(pod.labels, FindTexts(metadata, "labels", "metadata."));
  RESMGR_ASSIGN_OR_RETURN(pod.annotations, FindTexts(metadata, "annotations", "metadata."));
  return OkStatus();
}

// The name of the ResourceClaim behind a claim of the pod: from the spec or, for a claim from a
// template, from the pod's status; if neither has it, a text that no object can have as its name.
StatusOr<std::string> ObjectOfClaim(const ConfigNode& claim, const ConfigNode* statuses,
                                    std::string_view name, const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(std::string object, FindText(&claim, "resourceClaimName", path));
  if (!object.empty()) return object;
  for (const ConfigNode& status :
       statuses == nullptr ? std::vector<ConfigNode>() : statuses->items) {
    RESMGR_ASSIGN_OR_RETURN(const std::string of,
                            FindText(&status, "name", "status.resourceClaimStatuses."));
    if (of != name) continue;
    return FindText(&status, "resourceClaimName", "status.resourceClaimStatuses.");
  }
  return fmt::format("({} from a template)", name);
}

// Returns the ResourceClaims of a pod, by the names that its containers use.
StatusOr<std::map<std::string, std::string>> ReadPodClaims(const ConfigNode& document,
                                                           const ConfigNode& spec) {
  std::map<std::string, std::string> objects;
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const claims,
                          FindKey(&spec, "resourceClaims", Kind::kList, "spec."));
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const statuses,
                          FindAt(document, "status.resourceClaimStatuses", Kind::kList));
  for (const ConfigNode& claim : claims == nullptr ? std::vector<ConfigNode>() : claims->items) {
    const std::string path = fmt::format("spec.resourceClaims[{}]", objects.size());
    if (claim.kind != Kind::kMap) return ErrorAt(claim, path, "must be a map");
    RESMGR_RETURN_IF_ERROR(CheckSpelling(
        claim, {"name", "resourceClaimName", "resourceClaimTemplateName"}, path + "."));
    RESMGR_ASSIGN_OR_RETURN(const std::string name, FindText(&claim, "name", path + "."));
    if (name.empty()) return ErrorAt(claim, path, "has no name");
    RESMGR_ASSIGN_OR_RETURN(std::string object, ObjectOfClaim(claim, statuses, name, path + "."));
    if (!objects.emplace(name, std::move(object)).second)
      return ErrorAt(claim, path, fmt::format("the name \"{}\" is taken", Printable(name, 64)));
  }
  return objects;
}

// In the containers, replaces the pod's own names of claims by the names of the objects.
Status ResolveClaims(const ConfigNode& document, const ConfigNode& spec, Manifest& pod) {
  if (pod.Claims().empty()) return OkStatus();
  RESMGR_ASSIGN_OR_RETURN(const auto objects, ReadPodClaims(document, spec));
  for (const Manifest::Container* const container : pod.All()) {
    for (std::string& claim : pod.Find(container->name)->claims) {
      const auto found = objects.find(claim);
      if (found == objects.end()) {
        return ErrorAt(spec, "spec.resourceClaims",
                       fmt::format("has no \"{}\", which container {} names", Printable(claim, 64),
                                   container->name));
      }
      claim = fmt::format("{}/{}", pod.namespace_name, found->second);
    }
  }
  return OkStatus();
}

}  // namespace

std::vector<const Manifest::Container*> Manifest::All() const {
  std::vector<const Container*> all;
  for (const auto* const list : {&init_containers, &containers}) {
    for (const Container& container : *list)
      all.push_back(&container);
  }
  return all;
}

std::vector<std::string> Manifest::Claims() const {
  std::vector<std::string> claims;
  for (const Container* const container : All())
    claims.insert(claims.end(), container->claims.begin(), container->claims.end());
  std::ranges::sort(claims);
  claims.erase(std::unique(claims.begin(), claims.end()), claims.end());
  return claims;
}

std::string Manifest::FullName() const {
  return fmt::format("{}/{}", namespace_name, name);
}

Manifest::Container* Manifest::Find(std::string_view container_name) {
  for (auto* list : {&init_containers, &containers}) {
    for (Container& container : *list) {
      if (container.name == container_name) return &container;
    }
  }
  return nullptr;
}

namespace {

// The highest sum of requests that the containers have at a time.
Requirements Together(const Manifest& pod) {
  const auto join = [](Requirements& a, const Requirements& b, const auto& joined) {
    a.cpu_request.value = joined(a.cpu_request.value, b.cpu_request.value);
    a.cpu_limit.value = joined(a.cpu_limit.value, b.cpu_limit.value);
    a.memory_request.value = joined(a.memory_request.value, b.memory_request.value);
    a.memory_limit.value = joined(a.memory_limit.value, b.memory_limit.value);
  };
  const auto plus = [](int64_t a, int64_t b) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    return a > kMost - b ? kMost : a + b;
  };
  const auto larger = [](int64_t a, int64_t b) { return std::max(a, b); };
  Requirements sidecars;
  Requirements most;
  for (const Manifest::Container& container : pod.init_containers) {
    Requirements now = sidecars;
    join(now, container.requirements, plus);
    if (container.sidecar) sidecars = now;
    join(most, now, larger);
  }
  for (const Manifest::Container& container : pod.containers)
    join(sidecars, container.requirements, plus);
  join(most, sidecars, larger);
  return most;
}

}  // namespace

Requirements Manifest::Whole() const {
  const Requirements together = Together(*this);
  if (pod_level == Requirements()) return together;
  Requirements whole = pod_level;
  if (whole.cpu_request.value == 0) whole.cpu_request = together.cpu_request;
  if (whole.memory_request.value == 0) whole.memory_request = together.memory_request;
  return whole;
}

QosClass Manifest::Qos() const {
  if (pod_level != Requirements()) return QosOf({&pod_level, 1});
  std::vector<Requirements> all;
  for (const Container* const container : All())
    all.push_back(container->requirements);
  return QosOf(all);
}

namespace {

// Adds the requests that the API server adds to a pod with limits of its own (SetDefaults_Pod,
// KEP-2837). If the pod does not request a resource but some container does, the pod's request is
// the sum of the containers' requests; if no container does, it is the pod's limit, which
// ReadResources has set.
Status AddPodRequests(const ConfigNode& resources, Manifest& pod) {
  const std::string path = "spec.resources";
  RESMGR_ASSIGN_OR_RETURN(const ResourceList stated, ReadList(&resources, "requests", path + "."));
  const Requirements together = Together(pod);
  Requirements& whole = pod.pod_level;
  if (whole.cpu_limit.value > 0 || whole.memory_limit.value > 0) {
    if (!stated.cpu && together.cpu_request.value > 0) whole.cpu_request = together.cpu_request;
    if (!stated.memory && together.memory_request.value > 0) {
      whole.memory_request = together.memory_request;
    }
  }
  if (stated.cpu && whole.cpu_request < together.cpu_request) {
    return ErrorAt(resources, path, "the containers request more CPU than their pod");
  }
  if (stated.memory && whole.memory_request < together.memory_request) {
    return ErrorAt(resources, path, "the containers request more memory than their pod");
  }
  if (whole.cpu_limit.value > 0 && whole.cpu_request > whole.cpu_limit)
    return AboveLimit(resources, path, "CPU");
  if (whole.memory_limit.value > 0 && whole.memory_request > whole.memory_limit)
    return AboveLimit(resources, path, "memory");
  return OkStatus();
}

Status ReadPodLevel(const ConfigNode& spec, Manifest& pod) {
  Manifest::Container whole;
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const resources,
                          FindKey(&spec, "resources", Kind::kMap, "spec."));
  RESMGR_RETURN_IF_ERROR(ReadResources(resources, "spec.resources.", whole));
  pod.pod_level = whole.requirements;
  const Requirements& most = pod.pod_level;
  for (const Manifest::Container* const container : pod.All()) {
    const Requirements& own = container->requirements;
    if ((most.cpu_limit.value == 0 || own.cpu_limit <= most.cpu_limit) &&
        (most.memory_limit.value == 0 || own.memory_limit <= most.memory_limit)) {
      continue;
    }
    return ErrorAt(
        *resources, "spec.resources",
        fmt::format("the limits of container {} are above those of its pod", container->name));
  }
  if (resources != nullptr) RESMGR_RETURN_IF_ERROR(AddPodRequests(*resources, pod));
  RESMGR_ASSIGN_OR_RETURN(const ResourceList overhead, ReadList(&spec, "overhead", "spec."));
  pod.overhead.cpu_request = pod.overhead.cpu_limit = overhead.cpu.value_or(MilliCpu{});
  pod.overhead.memory_request = pod.overhead.memory_limit = overhead.memory.value_or(Bytes{});
  return OkStatus();
}

}  // namespace

StatusOr<Manifest> ReadManifest(const ConfigNode& document) {
  Manifest pod;
  RESMGR_RETURN_IF_ERROR(CheckSpelling(document, {"apiVersion", "kind", "metadata", "spec"}, ""));
  RESMGR_RETURN_IF_ERROR(ReadMetadata(document, pod));
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const spec, FindKey(&document, "spec", Kind::kMap, ""));
  if (spec == nullptr) return ErrorAt(document, "spec", "is missing");
  RESMGR_RETURN_IF_ERROR(CheckSpelling(
      *spec, {"containers", "initContainers", "resources", "overhead", "runtimeClassName"},
      "spec."));
  RESMGR_ASSIGN_OR_RETURN(pod.runtime_handler, FindText(spec, "runtimeClassName", "spec."));
  std::set<std::string> names;
  RESMGR_ASSIGN_OR_RETURN(pod.init_containers, ReadContainers(*spec, "initContainers", names));
  RESMGR_ASSIGN_OR_RETURN(pod.containers, ReadContainers(*spec, "containers", names));
  if (pod.containers.empty()) return ErrorAt(*spec, "spec.containers", "is missing");
  RESMGR_RETURN_IF_ERROR(ReadPodLevel(*spec, pod));
  RESMGR_RETURN_IF_ERROR(ResolveClaims(document, *spec, pod));
  return pod;
}

StatusOr<ResourceResize> ReadResourceResize(const ConfigNode& resources, std::string_view path) {
  for (const ConfigNode::Entry& entry : resources.entries) {
    if (entry.key != "limits" && entry.key != "requests") {
      return ErrorAt(entry.value, path,
                     fmt::format("\"{}\" is none of limits, requests", Printable(entry.key, 64)));
    }
    for (const ConfigNode::Entry& value : entry.value.entries) {
      if (value.key == "cpu" || value.key == "memory") continue;
      return ErrorAt(
          value.value, path,
          fmt::format("\"{}\" cannot be resized, only cpu and memory", Printable(value.key, 64)));
    }
  }
  RESMGR_ASSIGN_OR_RETURN(const ResourceList limits, ReadList(&resources, "limits", path));
  RESMGR_ASSIGN_OR_RETURN(const ResourceList requests, ReadList(&resources, "requests", path));
  return ResourceResize{.cpu_request = requests.cpu,
                        .cpu_limit = limits.cpu,
                        .memory_request = requests.memory,
                        .memory_limit = limits.memory};
}

Requirements Changed(Requirements requirements, const ResourceResize& change) {
  if (change.cpu_request) requirements.cpu_request = *change.cpu_request;
  if (change.cpu_limit) requirements.cpu_limit = *change.cpu_limit;
  if (change.memory_request) requirements.memory_request = *change.memory_request;
  if (change.memory_limit) requirements.memory_limit = *change.memory_limit;
  return requirements;
}

}  // namespace resmgr
