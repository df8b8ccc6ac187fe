// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/scheduler_model.h"

#include <algorithm>
#include <optional>
#include <set>

#include "pkg/base/parse.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;
using Amounts = std::map<std::string, int64_t>;

bool IsHugePages(std::string_view resource) {
  return resource.starts_with("hugepages-");
}

bool IsNative(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || IsHugePages(resource) ||
         resource == "storage" || resource == "ephemeral-storage";
}

// Objects of the daemon have whole numbers only.
int64_t Quantity(const std::string& resource, const Json& value) {
  const auto number = ParseInt(value.get<std::string>());
  return number.value_or(0) * (resource == "cpu" ? 1000 : 1);
}

std::string AttributeOf(const Json& topology, std::string_view name) {
  for (const Json& attribute : topology.at("attributes"))
    if (attribute.at("name") == name) return attribute.at("value").get<std::string>();
  return "";
}

// The available amounts of each NUMA node, by its number.
std::map<int64_t, Amounts> ZonesOf(const Json& topology) {
  constexpr std::string_view kPrefix = "node-";
  std::map<int64_t, Amounts> zones;
  for (const Json& zone : topology.at("zones")) {
    if (zone.at("type") != "Node") continue;
    const std::string name = zone.at("name").get<std::string>();
    const auto number = ParseInt(std::string_view(name).substr(kPrefix.size()));
    if (!name.starts_with(kPrefix) || !number) continue;
    Amounts& amounts = zones[*number];
    for (const Json& resource : zone.at("resources")) {
      const std::string what = resource.at("name").get<std::string>();
      amounts[what] = Quantity(what, resource.at("available"));
    }
  }
  return zones;
}

class TopologyFilter {
 public:
  TopologyFilter(std::map<int64_t, Amounts> zones, const Amounts& allocatable, QosClass qos)
      : zones_(std::move(zones)), allocatable_(allocatable), qos_(qos) {}

  // The lowest NUMA node whose zone fits all; nullopt: none does.
  std::optional<int64_t> Find(const Amounts& asked) const {
    std::set<int64_t> fitting;
    for (const auto& [number, zone] : zones_)
      fitting.insert(number);
    for (const auto& [resource, amount] : asked) {
      if (amount == 0) continue;
      if (!allocatable_.contains(resource)) return std::nullopt;
      bool listed = false;
      for (const auto& [number, zone] : zones_) {
        const auto found = zone.find(resource);
        listed = listed || found != zone.end();
        if (found == zone.end() || !IsEnough(resource, found->second, amount))
          fitting.erase(number);
      }
      // Resources that no zone has are anywhere, unless each NUMA node must have them.
      if (!listed) {
        const bool everywhere = !IsNative(resource) || resource.ends_with("storage");
        if (!everywhere) return std::nullopt;
        return FindWithout(asked, resource);
      }
    }
    if (fitting.empty()) return std::nullopt;
    return *fitting.begin();
  }

  void Subtract(int64_t number, const Amounts& asked) {
    for (const auto& [resource, amount] : asked) {
      const auto found = zones_.at(number).find(resource);
      if (found != zones_.at(number).end()) found->second -= amount;
    }
  }

 private:
  std::optional<int64_t> FindWithout(Amounts asked, const std::string& resource) const {
    asked.erase(resource);
    return Find(asked);
  }

  bool IsEnough(std::string_view resource, int64_t available, int64_t asked) const {
    const bool shared = resource == "cpu" || resource == "memory" || IsHugePages(resource);
    if (qos_ != QosClass::kGuaranteed && shared) return true;
    return available >= asked;
  }

  std::map<int64_t, Amounts> zones_;
  const Amounts& allocatable_;
  const QosClass qos_;
};

// The request of a whole pod: as much as any ordinary init container, and all others together.
Amounts EffectiveRequest(const ScheduledPod& pod) {
  Amounts sum;
  for (const ScheduledContainer& container : pod.containers)
    for (const auto& [resource, amount] : container.asked)
      if (!container.init) sum[resource] += amount;
  for (const ScheduledContainer& container : pod.containers)
    for (const auto& [resource, amount] : container.asked)
      sum[resource] = std::max(sum[resource], amount);
  return sum;
}

bool AsksForDevices(const ScheduledPod& pod) {
  return std::ranges::any_of(pod.containers, [](const ScheduledContainer& container) {
    return std::ranges::any_of(container.asked,
                               [](const auto& entry) { return !IsNative(entry.first); });
  });
}

}  // namespace

std::string FilterByTopology(const Json& topology, const Amounts& allocatable,
                             const ScheduledPod& pod) {
  if (pod.qos == QosClass::kBestEffort && !AsksForDevices(pod)) return "";
  if (AttributeOf(topology, "topologyManagerPolicy") != "single-numa-node") return "";
  TopologyFilter filter(ZonesOf(topology), allocatable, pod.qos);
  if (AttributeOf(topology, "topologyManagerScope") == "pod")
    return filter.Find(EffectiveRequest(pod)) ? "" : "cannot align pod";
  for (const ScheduledContainer& container : pod.containers) {
    const std::optional<int64_t> number = filter.Find(container.asked);
    if (!number) return container.init ? "cannot align init container" : "cannot align container";
    if (!container.init) filter.Subtract(*number, container.asked);
  }
  return "";
}

}  // namespace resmgr::test
