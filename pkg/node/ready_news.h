// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "pkg/log/log.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Tells the service manager at once that the daemon serves, and the log that it is ready when the
// runtime is there. The service manager is not kept waiting, since the kubelet, or the runtime, may
// start only then. Loop's thread only.
class ReadyNews {
 public:
  // `what` names the daemon's mode in the log. `runtime_state` is BrainHost::RuntimeState. The loop
  // must outlive this.
  ReadyNews(EventLoop& loop, std::string what, std::function<std::string()> runtime_state);
  ReadyNews(const ReadyNews&) = delete;
  ReadyNews& operator=(const ReadyNews&) = delete;

 private:
  // "" where it is connected, or not needed.
  std::string RuntimeProblem() const;
  void Look();
  void ShowStatus(const std::string& text);

  // One of its own, so that programs that wait for the line see it at any -logger-level.
  Logger log_{"cri-resmgr"};
  const std::string what_;
  const std::function<std::string()> runtime_state_;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
