// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/pod_view.h"

#include <algorithm>
#include <stdexcept>

#include "test/support/scheduler_model/json_member.h"

namespace resmgr::test {
namespace {

using nlohmann::json;

ResourceList RequestsOf(const json& container) {
  return ResourcesOf(MemberOf(MemberOf(container, "resources"), "requests"));
}

ResourceList LimitsOf(const json& container) {
  return ResourcesOf(MemberOf(MemberOf(container, "resources"), "limits"));
}

void Add(ResourceList& sum, const ResourceList& more) {
  for (const auto& [name, quantity] : more)
    sum[name] += quantity;
}

void Raise(ResourceList& most, const ResourceList& other) {
  for (const auto& [name, quantity] : other)
    most[name] = std::max(most[name], quantity);
}

// Only cpu and memory make a QoS class.
PodQos ComputedQos(const json& spec) {
  bool none = true;
  bool guaranteed = true;
  for (const char* const list : {"initContainers", "containers"}) {
    for (const json& container : MemberOf(spec, list)) {
      const ResourceList requests = RequestsOf(container);
      const ResourceList limits = LimitsOf(container);
      for (const char* const name : {"cpu", "memory"}) {
        const auto request = requests.find(name);
        const auto limit = limits.find(name);
        const bool has_request = request != requests.end() && !request->second.IsZero();
        const bool has_limit = limit != limits.end() && !limit->second.IsZero();
        if (has_request || has_limit) none = false;
        if (!has_limit || !has_request || request->second != limit->second) guaranteed = false;
      }
    }
  }
  if (none) return PodQos::kBestEffort;
  return guaranteed ? PodQos::kGuaranteed : PodQos::kBurstable;
}

PodQos QosOf(const json& pod) {
  const json& given = MemberOf(MemberOf(pod, "status"), "qosClass");
  if (!given.is_string()) return ComputedQos(pod.at("spec"));
  if (given == "Guaranteed") return PodQos::kGuaranteed;
  if (given == "Burstable") return PodQos::kBurstable;
  if (given == "BestEffort") return PodQos::kBestEffort;
  throw std::invalid_argument("no QoS class: " + given.dump());
}

ResourceList EffectiveOf(const PodView& pod, const ResourceList& overhead) {
  ResourceList sidecars;
  ResourceList most;
  ResourceList apps;
  for (const SchedulerContainer& container : pod.containers) {
    ResourceList now = sidecars;
    Add(now, container.requests);
    switch (container.kind) {
      case SchedulerContainerKind::kInit:
        Raise(most, now);
        break;
      case SchedulerContainerKind::kSidecar:
        Raise(most, now);
        sidecars = now;
        break;
      case SchedulerContainerKind::kApp:
        Add(apps, container.requests);
        break;
    }
  }
  Add(apps, sidecars);
  Raise(most, apps);
  Add(most, overhead);
  return most;
}

}  // namespace

PodView PodViewOf(const json& pod) {
  const json& spec = pod.at("spec");
  PodView view;
  view.qos = QosOf(pod);
  for (const json& container : MemberOf(spec, "initContainers")) {
    const bool sidecar = container.value("restartPolicy", "") == "Always";
    view.containers.push_back(
        {container.at("name"),
         sidecar ? SchedulerContainerKind::kSidecar : SchedulerContainerKind::kInit,
         RequestsOf(container)});
  }
  for (const json& container : spec.at("containers")) {
    view.containers.push_back(
        {container.at("name"), SchedulerContainerKind::kApp, RequestsOf(container)});
  }
  view.effective = EffectiveOf(view, ResourcesOf(MemberOf(spec, "overhead")));
  return view;
}

bool IsAlignedByKubelet(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource.starts_with("hugepages-");
}

bool IsExtended(std::string_view resource) {
  return resource.find('/') != std::string_view::npos && !resource.starts_with("kubernetes.io/");
}

bool HasExtended(const PodView& pod) {
  return std::any_of(
      pod.containers.begin(), pod.containers.end(), [](const SchedulerContainer& container) {
        return std::any_of(container.requests.begin(), container.requests.end(),
                           [](const auto& request) { return IsExtended(request.first); });
      });
}

}  // namespace resmgr::test
