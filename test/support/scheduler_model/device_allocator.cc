// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/device_allocator.h"

#include <algorithm>
#include <random>
#include <stdexcept>

#include "pkg/base/json.h"
#include "test/support/scheduler_model/json_member.h"

namespace resmgr::test {
namespace {

using nlohmann::json;

// One device that is to be found, for a request or an alternative of it.
struct WantedDevice {
  std::string request;  // MAIN or MAIN/SUB
  const json* exactly = nullptr;
};

struct GrantedDevice {
  std::string request;
  const PoolDevice* device = nullptr;
  ResourceList consumed;
};

bool IsTolerated(const DeviceTaint& taint, const json& tolerations) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const json& toleration) {
    const std::string effect = toleration.value("effect", "");
    const std::string key = toleration.value("key", "");
    if (!effect.empty() && effect != taint.effect) return false;
    if (!key.empty() && key != taint.key) return false;
    return toleration.value("operator", "Equal") == "Exists" ||
           toleration.value("value", "") == taint.value;
  });
}

// The main request of MAIN/SUB.
std::string MainRequest(const std::string& request) {
  return request.substr(0, request.find('/'));
}

class DeviceSearch {
 public:
  DeviceSearch(const AllocatorInput& input, const json& claim)
      : input_(input),
        spec_(claim.at("spec").at("devices")),
        pools_(CompletePools(input.slices, input.node)),
        use_(pools_) {
    for (const json& other : input.claims)
      use_.AddClaim(other);
    for (const DevicePool& pool : pools_) {
      for (const PoolDevice& device : pool.devices)
        devices_.push_back(&device);
    }
    if (input.shuffle > 0) {
      std::mt19937_64 random(input.shuffle);
      std::shuffle(devices_.begin(), devices_.end(), random);
    }
  }

  DeviceSearch(const DeviceSearch&) = delete;
  DeviceSearch& operator=(const DeviceSearch&) = delete;

  bool Run() { return FindRequest(0); }
  const std::vector<GrantedDevice>& granted() const { return granted_; }
  const std::string& obstacle() const { return obstacle_; }

 private:
  // Grants requests >= index.
  bool FindRequest(size_t index) {
    const json& requests = spec_.at("requests");
    if (index == requests.size()) return true;
    const json& request = requests[index];
    const std::string name = request.at("name");
    if (request.contains("exactly")) return FindExactly(index, name, request.at("exactly"));
    for (const json& alternative : request.at("firstAvailable")) {
      const std::string full = name + "/" + alternative.at("name").get<std::string>();
      if (FindExactly(index, full, alternative)) return true;
    }
    return false;
  }

  bool FindExactly(size_t index, const std::string& name, const json& exactly) {
    if (exactly.value("adminAccess", false)) throw std::invalid_argument("adminAccess");
    if (exactly.value("allocationMode", "ExactCount") == "All")
      return FindAll(index, name, exactly);
    return FindCount(index, {name, &exactly}, exactly.value("count", 1));
  }

  bool FindCount(size_t index, const WantedDevice& wanted, int count) {
    if (count == 0) return FindRequest(index + 1);
    for (const PoolDevice* device : devices_) {
      if (!TryDevice(wanted, *device)) continue;
      if (FindCount(index, wanted, count - 1)) return true;
      Undo();
    }
    obstacle_ = "no device for " + wanted.request;
    return false;
  }

  bool FindAll(size_t index, const std::string& name, const json& exactly) {
    const size_t before = granted_.size();
    for (const PoolDevice* device : devices_) {
      if (!Selected(*device, exactly) || TryDevice({name, &exactly}, *device)) continue;
      obstacle_ = "not all devices for " + name;
      while (granted_.size() > before)
        Undo();
      return false;
    }
    if (granted_.size() > before && FindRequest(index + 1)) return true;
    while (granted_.size() > before)
      Undo();
    return false;
  }

  bool TryDevice(const WantedDevice& wanted, const PoolDevice& device) {
    const json& exactly = *wanted.exactly;
    if (!Selected(device, exactly)) return false;
    const json tolerations = exactly.value("tolerations", json::array());
    for (const DeviceTaint& taint : device.taints) {
      if (taint.effect != "None" && !IsTolerated(taint, tolerations)) return false;
    }
    ResourceList requests;
    const json named = exactly.value("capacity", json::object()).value("requests", json::object());
    for (const auto& [name, quantity] : ResourcesOf(named)) {
      requests[Qualified(name, device.driver)] = quantity;
    }
    const std::optional<ResourceList> offer = use_.Offer(device, requests);
    if (!offer) return false;
    granted_.push_back({wanted.request, &device, *offer});
    if (!ConstraintsHold()) {
      granted_.pop_back();
      return false;
    }
    use_.Take(device, *offer);
    return true;
  }

  void Undo() {
    use_.GiveBack(*granted_.back().device, granted_.back().consumed);
    granted_.pop_back();
  }

  bool Selected(const PoolDevice& device, const json& exactly) const {
    const auto matches = [&](const json& selectors) {
      return std::all_of(selectors.begin(), selectors.end(), [&](const json& selector) {
        return MatchesSelector(device,
                               selector.at("cel").at("expression").get_ref<const std::string&>());
      });
    };
    for (const json& known : input_.classes) {
      if (known.at("metadata").at("name") != exactly.at("deviceClassName")) continue;
      return matches(known.at("spec").value("selectors", json::array())) &&
             matches(exactly.value("selectors", json::array()));
    }
    return false;
  }

  // Devices of a constraint's requests have the same value, or each has one of its own.
  bool ConstraintsHold() const {
    for (const json& constraint : spec_.value("constraints", json::array())) {
      const bool match = constraint.contains("matchAttribute");
      const std::string attribute = constraint.at(match ? "matchAttribute" : "distinctAttribute");
      std::vector<json> values;
      for (const GrantedDevice& granted : granted_) {
        if (!Concerns(constraint.value("requests", json::array()), granted.request)) continue;
        const auto found = granted.device->attributes.find(attribute);
        if (found == granted.device->attributes.end()) return false;
        values.push_back(found->second);
      }
      for (size_t i = 1; i < values.size(); ++i) {
        for (size_t other = 0; other < i; ++other) {
          if ((values[i] == values[other]) != match) return false;
        }
      }
    }
    return true;
  }

  static bool Concerns(const json& requests, const std::string& request) {
    return requests.empty() || std::any_of(requests.begin(), requests.end(), [&](const json& name) {
             return name == request || name == MainRequest(request);
           });
  }

  const AllocatorInput& input_;
  const json& spec_;
  const std::vector<DevicePool> pools_;
  DeviceUse use_;
  std::vector<const PoolDevice*> devices_;
  std::vector<GrantedDevice> granted_;
  std::string obstacle_;
};

// An id of the form of a UUID that differs for each share of each claim.
std::string ShareId(const json& claim, size_t index) {
  const std::string digits = std::to_string(index);
  const std::string uid = claim.at("metadata").value("uid", "");
  return "5f0c" + std::string(4 - std::min<size_t>(4, digits.size()), '0') + digits + "-" +
         (uid.size() > 9 ? uid.substr(9) : "0000-4000-8000-000000000000");
}

json ResultOf(const GrantedDevice& granted, const std::string& share_id, bool short_names) {
  const PoolDevice& device = *granted.device;
  json result = {{"request", granted.request},
                 {"driver", device.driver},
                 {"pool", device.pool},
                 {"device", device.name}};
  if (!device.shared) return result;
  result["shareID"] = share_id;
  for (const auto& [name, quantity] : granted.consumed) {
    const std::string own = device.driver + "/";
    const std::string key = short_names && name.starts_with(own) ? name.substr(own.size()) : name;
    result["consumedCapacity"][key] = quantity.Text();
  }
  return result;
}

// Options of classes come before those of the claim.
json ConfigOf(const AllocatorInput& input, const json& spec) {
  json config = json::array();
  for (const json& request : spec.at("requests")) {
    if (!request.contains("exactly")) continue;
    for (const json& known : input.classes) {
      if (known.at("metadata").at("name") != request.at("exactly").at("deviceClassName")) continue;
      for (json entry : known.at("spec").value("config", json::array())) {
        entry["source"] = "FromClass";
        entry["requests"] = json::array({request.at("name")});
        config.push_back(std::move(entry));
      }
    }
  }
  for (json entry : spec.value("config", json::array())) {
    entry["source"] = "FromClaim";
    config.push_back(std::move(entry));
  }
  return config;
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

bool MatchesTerm(const PoolDevice& device, std::string_view term) {
  const std::invalid_argument unknown("selector is not modelled: " + std::string(term));
  const size_t equals = term.find("==");
  if (equals == std::string_view::npos) throw unknown;
  std::string_view left = Trimmed(term.substr(0, equals));
  const std::optional<nlohmann::json> right = ParseJson(Trimmed(term.substr(equals + 2)));
  if (!right) throw unknown;
  if (left == "device.driver") return *right == device.driver;
  constexpr std::string_view kAttributes = "device.attributes[\"";
  constexpr std::string_view kEnd = "\"].";
  if (!left.starts_with(kAttributes)) throw unknown;
  left.remove_prefix(kAttributes.size());
  const size_t end = left.find(kEnd);
  if (end == std::string_view::npos) throw unknown;
  const std::string name =
      std::string(left.substr(0, end)) + "/" + std::string(left.substr(end + kEnd.size()));
  const auto found = device.attributes.find(name);
  return found != device.attributes.end() && found->second.begin().value() == *right;
}

}  // namespace

AllocationAnswer AllocateClaim(const AllocatorInput& input, const json& claim) {
  DeviceSearch search(input, claim);
  if (!search.Run()) return {std::nullopt, search.obstacle()};
  json allocated = claim;
  json& allocation = allocated["status"]["allocation"];
  json results = json::array();
  for (const GrantedDevice& granted : search.granted()) {
    results.push_back(ResultOf(granted, ShareId(claim, results.size()), input.short_names));
  }
  allocation["devices"]["results"] = std::move(results);
  json config = ConfigOf(input, claim.at("spec").at("devices"));
  if (!config.empty()) allocation["devices"]["config"] = std::move(config);
  const json term = {{"matchFields", json::array({{{"key", "metadata.name"},
                                                   {"operator", "In"},
                                                   {"values", json::array({input.node})}}})}};
  allocation["nodeSelector"] = {{"nodeSelectorTerms", json::array({term})}};
  return {std::move(allocated), ""};
}

std::map<std::string, ResourceList> RemainingCapacity(const AllocatorInput& input) {
  const std::vector<DevicePool> pools = CompletePools(input.slices, input.node);
  DeviceUse use(pools);
  for (const json& claim : input.claims)
    use.AddClaim(claim);
  std::map<std::string, ResourceList> remaining;
  for (const DevicePool& pool : pools) {
    for (const PoolDevice& device : pool.devices) {
      remaining[DeviceId(device)] = use.Remaining(device);
    }
  }
  return remaining;
}

std::string DeviceId(const PoolDevice& device) {
  return device.driver + "/" + device.pool + "/" + device.name;
}

void DeviceUse::AddClaim(const json& claim) {
  const json::json_pointer results("/status/allocation/devices/results");
  if (!claim.contains(results)) return;
  for (const json& result : claim.at(results)) {
    const std::string driver = result.at("driver");
    const std::string id = driver + "/" + result.at("pool").get<std::string>() + "/" +
                           result.at("device").get<std::string>();
    ++holders_[id];
    for (const auto& [name, value] : MemberOf(result, "consumedCapacity").items()) {
      consumed_[id][Qualified(name, driver)] += ExactQuantity::Of(value).value();
    }
  }
}

std::optional<ResourceList> DeviceUse::Offer(const PoolDevice& device,
                                             const ResourceList& requests) const {
  const auto holders = holders_.find(DeviceId(device));
  const bool held = holders != holders_.end() && holders->second > 0;
  if (held && !device.shared) return std::nullopt;
  // The counters of a device in use are subtracted already.
  if (!held && !CountersSuffice(device)) return std::nullopt;
  const ResourceList remaining = Remaining(device);
  for (const auto& [name, quantity] : requests) {
    if (!device.capacities.contains(name)) return std::nullopt;
  }
  ResourceList offer;
  for (const auto& [name, capacity] : device.capacities) {
    const auto found = requests.find(name);
    const std::optional<ExactQuantity> request =
        found == requests.end() ? std::nullopt : std::optional<ExactQuantity>(found->second);
    const std::optional<ExactQuantity> consumed =
        device.shared ? Consumed(capacity, request) : request.value_or(ExactQuantity());
    if (!consumed || *consumed > remaining.at(name)) return std::nullopt;
    if (device.shared) offer[name] = *consumed;
  }
  return offer;
}

void DeviceUse::Take(const PoolDevice& device, const ResourceList& consumed) {
  const std::string id = DeviceId(device);
  ++holders_[id];
  for (const auto& [name, quantity] : consumed)
    consumed_[id][name] += quantity;
}

void DeviceUse::GiveBack(const PoolDevice& device, const ResourceList& consumed) {
  const std::string id = DeviceId(device);
  --holders_[id];
  for (const auto& [name, quantity] : consumed)
    consumed_[id][name] -= quantity;
}

ResourceList DeviceUse::Remaining(const PoolDevice& device) const {
  ResourceList remaining;
  const auto consumed = consumed_.find(DeviceId(device));
  for (const auto& [name, capacity] : device.capacities) {
    remaining[name] = capacity.value;
    if (consumed == consumed_.end()) continue;
    const auto used = consumed->second.find(name);
    if (used != consumed->second.end()) remaining[name] -= used->second;
  }
  return remaining;
}

bool DeviceUse::CountersSuffice(const PoolDevice& device) const {
  if (device.counters.empty()) return true;
  for (const DevicePool& pool : pools_) {
    if (pool.driver != device.driver || pool.name != device.pool) continue;
    std::map<std::string, ResourceList> left = pool.counters;
    for (const PoolDevice& other : pool.devices) {
      const auto holders = holders_.find(DeviceId(other));
      if (holders == holders_.end() || holders->second == 0) continue;
      for (const auto& [set, counters] : other.counters) {
        for (const auto& [name, quantity] : counters)
          left[set][name] -= quantity;
      }
    }
    for (const auto& [set, counters] : device.counters) {
      for (const auto& [name, quantity] : counters) {
        if (left[set][name] < quantity) return false;
      }
    }
    return true;
  }
  return false;
}

bool MatchesSelector(const PoolDevice& device, std::string_view expression) {
  while (true) {
    const size_t joint = expression.find("&&");
    if (!MatchesTerm(device, Trimmed(expression.substr(0, joint)))) return false;
    if (joint == std::string_view::npos) return true;
    expression.remove_prefix(joint + 2);
  }
}

}  // namespace resmgr::test
