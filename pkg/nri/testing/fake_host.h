// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/nri/plugin_connection.h"
#include "pkg/ttrpc/testing/test_loop.h"

namespace resmgr::nri::test {

// The runtime's end of a trunk.
class FakeHost {
 public:
  FakeHost(EventLoop& loop, UniqueFd socket)
      : loop_(loop),
        trunk_(loop, std::move(socket), [this](const Status& why) { plugin_.Lose(why); }),
        plugin_(loop, trunk_, 1, budget_),
        runtime_(loop, trunk_, 2, budget_, "nri.pkg.api.v1alpha1.Runtime",
                 {{"RegisterPlugin",
                   [this](const std::string& payload, std::chrono::nanoseconds,
                          const ttrpc::Server::Reply& reply) {
                     registered.emplace();
                     registered->ParseFromString(payload);
                     reply(registration);
                   }},
                  {"UpdateContainers", [this](const std::string& payload, std::chrono::nanoseconds,
                                              const ttrpc::Server::Reply& reply) {
                     if (holds_) {
                       held_.emplace_back(payload, reply);
                     } else {
                       Update(payload, reply);
                     }
                   }}}) {}

  StatusOr<std::string> Call(std::string_view method, const std::string& payload) {
    std::optional<StatusOr<std::string>> answer;
    plugin_.Call("nri.pkg.api.v1alpha1.Plugin", method, payload, std::chrono::milliseconds(2000),
                 [&answer](StatusOr<std::string> told) { answer = std::move(told); });
    ttrpc::test::RunUntil(loop_, [&answer] { return answer.has_value(); });
    return answer.value_or(Internal("the test has waited for too long"));
  }
  template <typename Response, typename Request>
  StatusOr<Response> Call(std::string_view method, const Request& request) {
    const StatusOr<std::string> answer = Call(method, request.SerializeAsString());
    if (!answer.ok()) return answer.status();
    Response response;
    if (!response.ParseFromString(*answer)) return Internal("malformed protobuf");
    return response;
  }

  Status Configure(const api::ConfigureRequest& request) {
    return Call<api::ConfigureResponse>("Configure", request).status();
  }
  Status Synchronize(const api::SynchronizeRequest& all) {
    return Call<api::SynchronizeResponse>("Synchronize", all).status();
  }

  // From now on the plugin's requests wait for Release, as in containerd while an event is
  // unanswered.
  void Hold() { holds_ = true; }
  void Release() {
    holds_ = false;
    for (const auto& [request, reply] : std::exchange(held_, {}))
      Update(request, reply);
  }

  std::optional<api::RegisterPluginRequest> registered;
  StatusOr<std::string> registration = std::string();
  std::vector<api::UpdateContainersRequest> updates;
  // A container whose updates fail. Like containerd and CRI-O, the host then answers with an error,
  // which does not tell the containers.
  std::string broken;

 private:
  void Update(const std::string& payload, const ttrpc::Server::Reply& reply) {
    api::UpdateContainersRequest request;
    request.ParseFromString(payload);
    updates.push_back(request);
    for (const api::ContainerUpdate& update : request.update()) {
      if (update.container_id() == broken) {
        return reply(MakeStatus(StatusCode::kUnknown, "NRI update of some containers failed"));
      }
    }
    api::UpdateContainersResponse response;
    if (request.update_size() > 1) *response.add_failed() = request.update(1);
    reply(response.SerializeAsString());
  }

  EventLoop& loop_;
  bool holds_ = false;
  std::vector<std::pair<std::string, ttrpc::Server::Reply>> held_;
  ttrpc::MemoryBudget budget_;
  ttrpc::Multiplexer trunk_;
  ttrpc::Client plugin_;
  ttrpc::Server runtime_;
};

inline api::ConfigureRequest Containerd(std::string_view version,
                                        std::string_view nri_version = "") {
  api::ConfigureRequest request;
  request.set_runtime_name("containerd");
  request.set_runtime_version(std::string(version));
  request.set_nri_version(std::string(nri_version));
  return request;
}

inline api::SynchronizeRequest Inventory(std::string_view pod, std::string_view container,
                                         bool more) {
  api::SynchronizeRequest request;
  request.add_pods()->set_name(std::string(pod));
  request.add_containers()->set_name(std::string(container));
  request.set_more(more);
  return request;
}

template <typename Request>
Request Of(std::string_view pod, std::string_view container) {
  Request request;
  request.mutable_pod()->set_name(std::string(pod));
  request.mutable_container()->set_name(std::string(container));
  return request;
}

}  // namespace resmgr::nri::test
