// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/device_health.h"

#include <string_view>

#include <fmt/format.h>

#include "pkg/api/dra_health.pb.h"
#include "pkg/base/parse.h"

namespace resmgr::dra {
namespace {

namespace health_api = k8s::io::kubelet::pkg::apis::dra_health::v1;

constexpr std::string_view kHealthVersions[] = {"v1", "v1beta1", "v1alpha1"};
constexpr size_t kLongestTrouble = 1024;  // bytes, by the API

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
  // Nothing can be sent yet that would tell which of them have left.
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

}  // namespace resmgr::dra
