// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <string>

#include "pkg/log/log.h"
#include "pkg/node/configurator.h"
#include "pkg/node/front_door.h"
#include "pkg/node/hand_over.h"
#include "pkg/node/node_options.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Puts the configuration of an earlier run in force once its disk answers, unless a newer one was
// delivered before. `off_loop` must end before the configurator.
void RestoreLater(const NodeOptions& options, OffLoop& off_loop, Configurator& configurator);

// Reads the configuration file again, for SIGHUP, unless the configuration in force comes from
// elsewhere.
void Reload(const NodeOptions& options, Configurator& configurator);
// Turns on all debug messages of all sources, or restores the configured ones, for SIGUSR1.
void ToggleDebug();

// Handles signals as long as the handles are kept. SIGTERM and SIGINT run `first`, wait for the
// calls in flight and stop the loop. SIGHUP and SIGUSR1 run the other tasks.
std::array<EventLoop::HandlePtr, 4> HandleSignals(EventLoop& loop, FrontDoor& door,
                                                  HandOver& hand_over, EventLoop::Task first,
                                                  EventLoop::Task reload, EventLoop::Task debug);

// Options for serving a daemon that asks for this one's sockets. If the door has no sockets,
// nothing can be handed over. `first` as in HandleSignals.
HandOver::Options HandOverOptions(const NodeOptions& options, EventLoop& loop, FrontDoor& door,
                                  EventLoop::Task first);

// Reports to the service manager at once that the daemon serves, and logs that it is ready once the
// runtime is connected. The service manager must not wait for the runtime, since it may start the
// kubelet or the runtime only afterwards. Loop's thread only.
class ReadyNews {
 public:
  // `what` names the daemon's mode in the log. `runtime_state` is BrainHost::RuntimeState. The loop
  // must outlive this.
  ReadyNews(EventLoop& loop, std::string what, std::function<std::string()> runtime_state);
  ReadyNews(const ReadyNews&) = delete;
  ReadyNews& operator=(const ReadyNews&) = delete;

 private:
  // "" if the runtime is connected or not needed.
  std::string RuntimeProblem() const;
  void Look();
  void ShowStatus(const std::string& text);

  // A logger of its own, so that programs that wait for the line see it at any -logger-level.
  Logger log_{"cri-resmgr"};
  const std::string what_;
  const std::function<std::string()> runtime_state_;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
