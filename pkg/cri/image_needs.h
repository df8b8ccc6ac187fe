// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cri/backends.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Asks several runtimes whether they need an image, before it is removed at those that do not. A
// runtime needs an image if it pins the image, as it does for its pod sandboxes, or has a container
// made from the image. A client that removes an image because of one runtime may not know the
// copies at others. Loop's thread only.
class ImageNeeds {
 public:
  // Both must outlive this object.
  ImageNeeds(EventLoop& loop, h2::FlushQueue& flushes, const Backends& backends);

  // Whether each runtime needs the image; not OK: it could not be asked.
  using Needs = std::vector<StatusOr<bool>>;
  // Asks the services of this package ("/runtime.v1"). Runs `done` later, never inside this call. A
  // hanging runtime is not asked.
  void Ask(std::string_view image, std::string_view package, std::chrono::milliseconds patience,
           std::function<void(Needs)> done);

 private:
  struct Round;
  struct Peer {
    std::unique_ptr<UnaryClient> runtime;
    std::unique_ptr<UnaryClient> images;  // nullptr: `runtime` serves images, too
  };

  static void Call(UnaryClient& client, const std::string& path, const std::string& message,
                   std::chrono::milliseconds patience, UnaryClient::Done done);

  EventLoop& loop_;
  const Backends& backends_;
  std::vector<Peer> peers_;
};

}  // namespace resmgr
