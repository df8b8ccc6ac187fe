// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/nri/host/session/child_process.h"
#include "pkg/nri/host/session/host_options.h"
#include "pkg/nri/host/session/plugin_directory.h"
#include "pkg/nri/host/session/plugin_output.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr::nri {

class PluginSession;

// Keeps one plugin running: starts it off the loop, and again with growing pauses when it has
// ended. Loop's thread only.
class PluginProcess {
 public:
  class Owner {
   public:
    // The plugin runs and is connected. Returns its session; nullptr: it cannot be served now.
    virtual const PluginSession* OnStarted(const PluginFile& plugin, UniqueFd socket,
                                           pid_t pid) = 0;
    // The plugin was not started; `why` includes the time of the next start.
    virtual void OnNotStarted(const PluginFile& plugin, const Status& why) = 0;
    // The plugin has ended; the end of its session may be reported before or after.
    virtual void OnExited(const PluginFile& plugin, const Status& why) = 0;

   protected:
    ~Owner() = default;
  };

  // All but `plugin` outlive this object.
  PluginProcess(EventLoop& loop, Owner& owner, const HostOptions& options, PluginFile plugin);
  // Kills the process.
  ~PluginProcess();
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;

  void Start();
  // Its session has ended: kills the process and starts it again later.
  void Restart();

  const PluginFile& plugin() const { return plugin_; }
  // The session of the running process; nullptr: there is none.
  const PluginSession* session() const { return session_; }

 private:
  void OnStarted(StatusOr<std::unique_ptr<ChildProcess>> child);
  void OnExit();
  // Plans the next start and returns a text: "it is started again in 1000 ms".
  std::string StartLater();

  EventLoop& loop_;
  Owner& owner_;
  const HostOptions& options_;
  const PluginFile plugin_;
  const std::string full_name_;
  Logger& log_;
  OffLoop off_loop_;
  const PluginSession* session_ = nullptr;
  Backoff pauses_;
  EventLoop::Clock::time_point started_;
  std::unique_ptr<ChildProcess> child_;
  std::unique_ptr<PluginOutput> output_;
  EventLoop::HandlePtr exit_;
  EventLoop::HandlePtr restart_;
};

}  // namespace resmgr::nri
