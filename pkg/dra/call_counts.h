// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "pkg/grpc/unary_server.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::dra {

// The outcome of a call of the kubelet.
struct AnsweredCall {
  bool prepare = false;  // else Unprepare
  size_t ok = 0;         // its claims
  size_t failed = 0;     // likewise; 1 for a call that was refused as a whole
  std::chrono::nanoseconds took{};
};

// The methods of a DraService, which tell of each call before they answer it. `loop` must outlive
// them; `tell` runs on its thread, and may be empty.
UnaryServer::Methods WithCounts(UnaryServer::Methods methods, const EventLoop& loop,
                                std::function<void(const AnsweredCall&)> tell);

}  // namespace resmgr::dra
