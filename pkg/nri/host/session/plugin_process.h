// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/nri/host/session/host_options.h"
#include "pkg/nri/host/session/plugin_finder.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"
#include "pkg/sys/process_group.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::nri {

// A plugin's process, which leads a group of its own. Thread-compatible.
class ChildProcess {
 public:
  // NRI 0.6: the process gets its socket as fd 3, no arguments, and exactly these variables:
  // NRI_PLUGIN_NAME, NRI_PLUGIN_IDX, NRI_PLUGIN_SOCKET. Executing a file may block.
  // kFailedPrecondition: it cannot be executed; kResourceExhausted: the machine has no room for it.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const PluginFile& plugin);

  ProcessGroup& group() { return group_; }
  // This side's ends, which the caller takes over: the plugin's socket, and a pipe with its output.
  // Neither blocks.
  UniqueFd TakeSocket() { return std::move(socket_); }
  UniqueFd TakeOutput() { return std::move(output_); }

 private:
  ChildProcess() = default;

  ProcessGroup group_;
  UniqueFd socket_;
  UniqueFd output_;
};

// Writes a plugin's output as lines to the log. A plugin that prints more than kMostBytes in a
// second waits for the next one, as for a slow terminal; only some of many lines are logged. Loop's
// thread only.
class PluginOutput {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 10;
  static constexpr size_t kLongestLine = 1024;  // longer ones are cut

  // `pipe` must be non-blocking. The loop outlives this object.
  PluginOutput(EventLoop& loop, UniqueFd pipe, std::string plugin);
  // Reads the available output, within limits, and returns its last line; "": none.
  const std::string& LastLine();
  PluginOutput(const PluginOutput&) = delete;
  PluginOutput& operator=(const PluginOutput&) = delete;

 private:
  void Read();
  void Take(std::string_view bytes);
  void EndLine();

  EventLoop& loop_;
  const UniqueFd pipe_;
  const std::string plugin_;
  Logger& log_;
  RateLimit limit_;
  std::string line_;
  std::string last_line_;
  size_t read_ = 0;  // bytes in this second
  EventLoop::HandlePtr watch_;
  EventLoop::HandlePtr second_;
};

class PluginSession;

// Keeps one plugin running: starts it off the loop, and again with growing pauses when it has
// ended. Loop's thread only.
class PluginProcess {
 public:
  class Owner {
   public:
    // The plugin runs, and `socket` is connected to it. Returns its session; nullptr: it cannot be
    // served now.
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
  // Called when the plugin's session has ended: kills the process and starts it again later.
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
