// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/container_facts.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/base/status.h"
#include "pkg/model/resources_annotation.h"

namespace resmgr {
namespace {

// The webhook's annotation; empty if the pod has none.
std::string_view AnnotationOf(const Pod& pod) {
  const auto found = pod.annotations.find(kResourcesAnnotation);
  return found == pod.annotations.end() ? std::string_view() : std::string_view(found->second);
}

// Converts a page size of the CRI to the name that users know: "2MB", by which kubelets mean 2^21
// bytes, is "hugepages-2Mi".
std::string HugePagesName(std::string_view page_size) {
  if (!page_size.ends_with('B')) return fmt::format("hugepages-{}", page_size);
  page_size.remove_suffix(1);
  return fmt::format("hugepages-{}i", page_size);
}

// Limits of the text, since `kubectl describe pod` shows one line.
constexpr size_t kNamedHolders = 3;
constexpr size_t kLongestName = 128;

void Add(std::string_view what, std::string& text) {
  if (!text.empty()) text += ", ";
  text += what;
}

std::string Named(const CpuSet& cpus) {
  return fmt::format("CPU{} {}", cpus.size() == 1 ? "" : "s", cpus.ToString());
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
    // Kubelets list every page size of the node, including those with a limit of 0.
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    if (limit > 0)
      resources[HugePagesName(page_size)] = static_cast<int64_t>(std::min(limit, kMost));
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

std::string DescribeHolders(std::vector<Holding> holders,
                            const std::function<std::string(const Holding&)>& text) {
  const size_t named = std::min(holders.size(), kNamedHolders);
  // A stable sort: among equal holders the oldest come first.
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holding& a, const Holding& b) { return a.amount > b.amount; });
  std::string all;
  for (size_t i = 0; i < named; ++i) {
    const Holding& holder = holders[i];
    Add(fmt::format("{} held by {}", text(holder),
                    Printable(FullName(*holder.pod, holder.container->name), kLongestName)),
        all);
  }
  if (holders.size() > named) all += fmt::format(" and {} more", holders.size() - named);
  return all;
}

std::string DescribeCpuHolders(const Snapshot& snapshot, const CpuSet& reserved,
                               ContainerKey except) {
  std::vector<Holding> holders;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    const int cpus = container.placement.exclusive.size();
    if (cpus > 0 && container.key != except) holders.push_back({&pod, &container, cpus});
  });
  std::string text;
  if (!reserved.empty()) Add(fmt::format("{} reserved", Named(reserved)), text);
  const std::string held = DescribeHolders(std::move(holders), [](const Holding& holder) {
    return Named(holder.container->placement.exclusive);
  });
  if (!held.empty()) Add(held, text);
  return text;
}

std::string DescribeSharers(const Snapshot& snapshot, ContainerKey except) {
  int64_t asked = 0;
  int64_t containers = 0;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    const int64_t request = container.requirements.cpu_request.value -
                            int64_t{1000} * container.placement.exclusive.size();
    if (request <= 0 || container.key == except) return;
    asked += request;
    ++containers;
  });
  if (containers == 0) return "";
  return fmt::format("{}m asked for by {} that share{}", asked, CountText(containers, "container"),
                     containers == 1 ? "s" : "");
}

}  // namespace resmgr
