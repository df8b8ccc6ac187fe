// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/device_health.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "pkg/api/dra_health.pb.h"
#include "pkg/base/parse.h"
#include "pkg/claims/claim_place.h"

namespace resmgr::dra {
namespace {

namespace health_api = k8s::io::kubelet::pkg::apis::dra_health::v1;

constexpr std::string_view kHealthVersions[] = {"v1", "v1beta1", "v1alpha1"};
constexpr size_t kLongestTrouble = 1024;  // bytes, by the API

std::string TroubleAt(const ClaimPlace& place, const CpuSet& offline) {
  if (place.cpus.empty()) return "none of its CPUs is online";
  if (!place.cpus.IsSubsetOf(offline)) return "";
  return fmt::format("all of its CPUs ({}) are offline", place.cpus.ToString());
}

}  // namespace

UnaryServer::Streams DeviceHealth::Streams() {
  UnaryServer::Streams streams;
  for (const std::string_view version : kHealthVersions) {
    streams[fmt::format("/{}.DRAResourceHealth/NodeWatchResources", version)] =
        [this](const std::string& /*message*/, UnaryServer::Send send) { Watch(std::move(send)); };
  }
  return streams;
}

void DeviceHealth::Show(const std::string& pool, std::vector<DeviceState> devices) {
  if (pool == pool_ && devices == devices_) return;
  pool_ = pool;
  devices_ = std::move(devices);
  Repeat();
}

void DeviceHealth::Repeat() {
  if (pool_.empty() || watchers_.empty()) return;
  const std::string message = Message();
  std::erase_if(watchers_,
                [&message](const UnaryServer::Send& send) { return !send(std::string(message)); });
}

void DeviceHealth::Watch(UnaryServer::Send send) {
  if (watchers_.size() >= kMostWatchers) Repeat();
  // Only sending shows which clients have left. As long as there is nothing to send, the oldest
  // client is dropped.
  if (watchers_.size() >= kMostWatchers && pool_.empty()) {
    watchers_.front()(ResourceExhausted("{} newer clients watch", kMostWatchers));
    watchers_.erase(watchers_.begin());
  }
  if (watchers_.size() >= kMostWatchers) {
    send(ResourceExhausted("{} clients watch already", watchers_.size()));
    return;
  }
  if (!pool_.empty()) send(Message());
  watchers_.push_back(std::move(send));
}

std::string DeviceHealth::Message() const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  health_api::NodeWatchResourcesResponse response;
  for (const DeviceState& state : devices_) {
    health_api::DeviceHealth& device = *response.add_devices();
    device.mutable_device()->set_pool_name(pool_);
    device.mutable_device()->set_device_name(state.device);
    device.set_health(state.trouble.empty() ? health_api::HEALTHY : health_api::UNHEALTHY);
    device.set_last_updated_time(std::chrono::duration_cast<std::chrono::seconds>(now).count());
    device.set_health_check_timeout_seconds(kTimeout.count());
    device.set_message(Printable(state.trouble, kLongestTrouble));
  }
  return response.SerializeAsString();
}

std::vector<DeviceState> DeviceStates(const Driver& driver, std::span<const ClaimPart> places,
                                      const HeldClaims& held, const Machine& machine,
                                      const CpuSet& offline) {
  std::vector<DeviceState> states;
  for (const ClaimPart& place : places) {
    const StatusOr<ClaimPlace> found = PlaceOf(place, machine);
    if (!found.ok()) continue;
    states.push_back({.device = driver.NameAt(place), .trouble = TroubleAt(*found, offline)});
  }
  for (const HeldClaim& claim : held.all()) {
    if (!driver.MayHaveGiven(claim.claim)) continue;
    for (size_t at = 0; at < claim.parts.size(); ++at) {
      const ClaimPart& part = claim.claim.parts[at];
      if (std::ranges::find(states, part.device, &DeviceState::device) != states.end()) continue;
      const StatusOr<ClaimPlace> found = PlaceOf(part, machine);
      DeviceState& state = states.emplace_back(DeviceState{.device = part.device});
      if (found.ok()) {
        state.trouble = TroubleAt(*found, offline);
      } else if (claim.parts[at].placement.exclusive.empty()) {
        state.trouble = Message(found.status());
      }
    }
  }
  return states;
}

}  // namespace resmgr::dra
