// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/container_facts.h"

#include "pkg/model/resources_annotation.h"

namespace resmgr {

namespace {

// The webhook's annotation; empty if the pod has none.
std::string_view AnnotationOf(const Pod& pod) {
  const auto found = pod.annotations.find(kResourcesAnnotation);
  return found == pod.annotations.end() ? std::string_view() : std::string_view(found->second);
}

// "2MB", as kubelets write 2^21 bytes into requests, is "2Mi" to users.
std::string HugePagesName(std::string_view page_size) {
  if (!page_size.ends_with('B')) return fmt::format("hugepages-{}", page_size);
  page_size.remove_suffix(1);
  return fmt::format("hugepages-{}i", page_size);
}

}  // namespace

std::map<std::string, int64_t> OtherResources(const Pod& pod, const Container& container) {
  std::map<std::string, int64_t> resources;
  const std::string_view annotation = AnnotationOf(pod);
  if (!annotation.empty()) {
    const auto section = FindSection(annotation, container.name);
    auto named = ParseOtherResources(annotation, container.name);
    if (section.ok() && *section != AnnotationSection::kNone && named.ok()) {
      return *std::move(named);
    }
  }
  for (const auto& [page_size, limit] : container.requested.hugepage_limits) {
    // Kubelets name every size that the node has.
    if (limit > 0) resources[HugePagesName(page_size)] = static_cast<int64_t>(limit);
  }
  return resources;
}

std::string_view ToString(ContainerRole role) {
  switch (role) {
    case ContainerRole::kUnknown:
      return "";
    case ContainerRole::kRegular:
      return "regular";
    case ContainerRole::kInit:
      return "init";
    case ContainerRole::kSidecar:
      return "sidecar";
  }
  return "";
}

ContainerRole RoleOf(const Snapshot& snapshot, const Pod& pod, const Container& container) {
  const std::string_view annotation = AnnotationOf(pod);
  if (annotation.empty()) return ContainerRole::kUnknown;
  const auto section = FindSection(annotation, container.name);
  if (!section.ok() || *section == AnnotationSection::kNone) return ContainerRole::kUnknown;
  if (*section == AnnotationSection::kContainers) return ContainerRole::kRegular;
  if (container.state == ContainerState::kExited) return ContainerRole::kInit;
  bool beside_regular = false;
  snapshot.ForEachContainer([&](const Pod& other_pod, const Container& other) {
    if (other_pod.id != pod.id || beside_regular) return;
    const auto other_section = FindSection(annotation, other.name);
    beside_regular = other_section.ok() && *other_section == AnnotationSection::kContainers;
  });
  return beside_regular ? ContainerRole::kSidecar : ContainerRole::kInit;
}

}  // namespace resmgr
