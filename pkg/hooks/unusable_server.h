// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::hooks {

// Replaces the server of a file that cannot be used: it always fails, and the file's failure policy
// decides the rest. Loop's thread only.
class UnusableServer final : public HookServerPort {
 public:
  UnusableServer(EventLoop& loop, HookServerSettings settings, Status why)
      : loop_(loop), settings_(std::move(settings)), why_(std::move(why)) {}

  const HookServerSettings& settings() const override { return settings_; }
  const Status& why() const { return why_; }

  void Ask(HookPoint /*point*/, std::string /*request*/, Done done) override {
    loop_.Post(lifetime_.Guard([why = why_, done = std::move(done)] { done(why); }));
  }

 private:
  EventLoop& loop_;
  const HookServerSettings settings_;
  const Status why_;
  Lifetime lifetime_;
};

}  // namespace resmgr::hooks
