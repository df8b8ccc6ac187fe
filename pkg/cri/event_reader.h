// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "pkg/grpc/grpc_message.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

// Reads the body of a GetContainerEvents answer while it passes. A compressed, overlong or
// malformed message becomes an event of unknown kind.
class EventReader {
 public:
  // Kept bytes of a message at most. An event has the statuses of all containers of a pod.
  static constexpr size_t kMost = size_t{256} * 1024;

  explicit EventReader(std::function<void(const ContainerEvent&)> on_event);
  void Feed(std::string_view bytes) { messages_.Feed(bytes); }

 private:
  GrpcMessageReader messages_;
};

}  // namespace resmgr
