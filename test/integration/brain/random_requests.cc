// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/random_requests.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "test/support/scheduler_model/exact_quantity.h"

namespace resmgr::test {
namespace {

using nlohmann::json;

constexpr int64_t kMiB = int64_t{1} << 20;

}  // namespace

std::vector<int64_t> RandomRequests::Available(const std::string& resource) const {
  std::vector<int64_t> available;
  for (const json& zone : published_.topology.at("zones")) {
    for (const json& listed : zone.at("resources")) {
      if (listed.at("name") != resource) continue;
      available.push_back(ExactQuantity::Of(listed.at("available")).value().Value());
    }
  }
  return available;
}

int64_t RandomRequests::Cpus() {
  const std::vector<int64_t> zones = Available("cpu");
  const int64_t most = *std::ranges::max_element(zones);
  int64_t cpus = Number(1, 4);
  if (Once(2)) {
    const int64_t zone = zones[static_cast<size_t>(Number(0, std::ssize(zones) - 1))];
    cpus = zone + published_.step * Number(-1, 1);
  } else if (Once(3)) {
    cpus = Number(1, std::max<int64_t>(1, most));
  }
  cpus = std::max<int64_t>(cpus, 1);
  return (cpus + published_.step - 1) / published_.step * published_.step;
}

std::string RandomRequests::CpuText(int64_t cpus) {
  return Once(4) ? fmt::format("{}m", cpus * 1000) : fmt::format("{}", cpus);
}

std::string RandomRequests::MemoryText() {
  const std::vector<int64_t> zones = Available("memory");
  if (!Once(6) || zones.empty()) return fmt::format("{}Mi", Number(1, 512));
  // All that a zone has, or a part.
  const int64_t zone = zones[static_cast<size_t>(Number(0, std::ssize(zones) - 1))];
  return fmt::format("{}Mi", std::max<int64_t>(1, zone / kMiB / Number(1, 3)));
}

json RandomRequests::GuaranteedResources() {
  json limits = {{"memory", MemoryText()}};
  if (!Once(6)) {
    limits["cpu"] = CpuText(Cpus());
  } else if (published_.step == 1 && Once(2)) {
    limits["cpu"] = fmt::format("{}500m", Number(1, 3));
  } else {
    limits["cpu"] = fmt::format("{}m", 50 * Number(1, 19));
  }
  if (!Available("hugepages-2Mi").empty() && Once(4)) {
    limits["hugepages-2Mi"] = fmt::format("{}Mi", 2 * Number(1, 64));
  }
  json requests = limits;
  if (Once(8)) requests["ephemeral-storage"] = "1Gi";
  if (Once(8)) requests[kRandomDevice] = limits[kRandomDevice] = "1";
  return {{"requests", requests}, {"limits", limits}};
}

json RandomRequests::Container(const std::string& name, bool guaranteed, bool best_effort) {
  json container = {{"name", name}, {"resources", json::object()}};
  if (guaranteed) {
    container["resources"] = GuaranteedResources();
  } else if (!best_effort) {
    const int64_t milli = shares_alone_ || Once(2) ? 50 * Number(1, 19) : 500 * Number(1, 12);
    container["resources"]["requests"] = {{"cpu", fmt::format("{}m", milli)},
                                          {"memory", MemoryText()}};
    if (Once(2)) container["resources"]["limits"]["cpu"] = fmt::format("{}m", 2 * milli);
  }
  return container;
}

json RandomRequests::Pod(const std::string& name) {
  const bool guaranteed = !Once(5);
  const bool best_effort = !guaranteed && Once(4);
  json init = json::array();
  json containers = json::array();
  if (Once(4)) init.push_back(Container("init", guaranteed, best_effort));
  if (Once(6)) {
    init.push_back(Container("sidecar", guaranteed, best_effort));
    init.back()["restartPolicy"] = "Always";
  }
  const int64_t count = Once(2) ? 1 : Number(1, 4);
  for (int64_t i = 0; i < count; ++i) {
    containers.push_back(Container(fmt::format("app-{}", i), guaranteed, best_effort));
  }
  return {{"metadata", {{"namespace", "default"}, {"name", name}}},
          {"spec", {{"initContainers", init}, {"containers", containers}}}};
}

json RandomRequests::Request(const std::string& name, int count, const dra::Driver& driver) {
  json exactly = {{"deviceClassName", "cpus"}, {"allocationMode", "ExactCount"}};
  exactly["count"] = count;
  const std::string capacity = Once(4) ? "cpu" : driver.Capacity();
  if (Once(8)) {
    // The default of the device.
  } else if (Once(6)) {
    exactly["capacity"]["requests"][capacity] = fmt::format("{}500m", Number(0, 4));
  } else {
    exactly["capacity"]["requests"][capacity] = CpuText(Cpus());
  }
  if (Once(4)) {
    const auto zones = static_cast<int64_t>(published_.topology.at("zones").size());
    exactly["selectors"] =
        json::array({{{"cel",
                       {{"expression",
                         fmt::format("device.attributes[\"resource.kubernetes.io\"].numaNode == {}",
                                     Number(0, zones))}}}}});
  }
  return {{"name", name}, {"exactly", exactly}};
}

json RandomRequests::Claim(uint64_t number, const dra::Driver& driver) {
  // Three devices at most: the search of the allocator grows with each by the number of devices.
  json requests = json::array({Request("one", Once(5) ? 2 : 1, driver)});
  if (Once(4)) {
    requests.push_back(Request("two", 1, driver));
  } else if (Once(8)) {
    json first = Request("large", 1, driver).at("exactly");
    json second = Request("small", 1, driver).at("exactly");
    first["name"] = "large";
    second["name"] = "small";
    requests.push_back({{"name", "any"}, {"firstAvailable", json::array({first, second})}});
  }
  json devices = {{"requests", requests}};
  if (Once(4)) {
    devices["constraints"] = json::array(
        {{{Once(3) ? "distinctAttribute" : "matchAttribute", "resource.kubernetes.io/numaNode"}}});
  }
  if (Once(4)) {
    devices["config"] = json::array({{{"opaque",
                                       {{"driver", driver.name},
                                        {"parameters",
                                         {{"apiVersion", "cri-resource-manager.intel.com/v1"},
                                          {"kind", "CpuClaim"},
                                          {"shareWithin", "pod"}}}}}}});
  }
  return {{"metadata",
           {{"namespace", "default"},
            {"name", fmt::format("claim-{}", number)},
            {"uid", fmt::format("8ec6fd12-bb08-4936-a857-{:012}", number)}}},
          {"spec", {{"devices", devices}}}};
}

json RandomRequests::Classes(const dra::Driver& driver) {
  const json selector = {
      {"cel", {{"expression", fmt::format("device.driver == \"{}\"", driver.name)}}}};
  const json sample = {{"metadata", {{"name", "cpus"}}},
                       {"spec", {{"selectors", json::array({selector})}}}};
  return json::array({sample});
}

}  // namespace resmgr::test
