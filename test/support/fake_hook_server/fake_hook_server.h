// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/hooks/hook_port.h"

namespace resmgr::test {

// A RuntimeHookService on a thread of its own. Until told otherwise it answers every hook with an
// empty message. Messages are bytes, so an answer may be no message at all. At most 16 calls of one
// client wait at once, as UnaryServer serves; more are RESOURCE_EXHAUSTED. Thread-safe.
class FakeHookServer {
 public:
  using Answerer = std::function<StatusOr<std::string>(const std::string& request)>;

  // Serves once this returns; ends the process where the socket cannot be had.
  explicit FakeHookServer(const std::string& socket);
  // Ends all connections and removes the socket.
  ~FakeHookServer();
  FakeHookServer(const FakeHookServer&) = delete;
  FakeHookServer& operator=(const FakeHookServer&) = delete;

  // Sets the answer from now on, given after `delay`. `answerer` runs on the server's thread.
  void Answer(hooks::HookPoint point, Answerer answerer,
              std::chrono::milliseconds delay = std::chrono::milliseconds(0));
  // Never answers from now on.
  void Hang(hooks::HookPoint point);
  // The requests that came, also those that are not answered.
  std::vector<std::string> Calls(hooks::HookPoint point) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace resmgr::test
