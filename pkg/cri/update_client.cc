// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/update_client.h"

#include <chrono>
#include <utility>

#include "pkg/cri/messages.h"

namespace resmgr {
namespace {

constexpr std::string_view kMethod = "/runtime.v1.RuntimeService/UpdateContainerResources";
// Each is a call of an OCI runtime.
constexpr std::chrono::seconds kTimeout{30};

}  // namespace

void UpdateClient::UpdateContainer(const ContainerId& id, const ResourceValues& values,
                                   std::function<void(Status)> done) {
  if (!client_.connected()) {
    Status connected = client_.Connect([](const Status&) {});
    if (!connected.ok()) {
      loop_.Post([connected = std::move(connected), done = std::move(done)] { done(connected); });
      return;
    }
  }
  client_.Call(kMethod, EncodeUpdateRequest(id, values), kTimeout,
               [done = std::move(done)](const StatusOr<std::string>& reply) {
                 done(reply.ok() ? OkStatus() : reply.status());
               });
}

}  // namespace resmgr
