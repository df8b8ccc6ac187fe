// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/model/resource_values.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Updates containers over a runtime's CRI, for a daemon that hears of them in another way: connects
// when there is something to update, and again after a loss. Speaks runtime.v1. Loop's thread only.
class UpdateClient {
 public:
  UpdateClient(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket)
      : loop_(loop), client_(loop, flushes, socket) {}

  // `done` is run later. Unavailable names the socket; NotFound: the runtime has no such container;
  // DeadlineExceeded: no answer in time.
  void UpdateContainer(const ContainerId& id, const ResourceValues& values,
                       std::function<void(Status)> done);

 private:
  EventLoop& loop_;
  UnaryClient client_;
};

}  // namespace resmgr
