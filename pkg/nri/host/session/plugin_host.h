// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/nri/host/session/host_options.h"
#include "pkg/nri/host/session/plugin_finder.h"
#include "pkg/nri/host/session/plugin_port.h"
#include "pkg/nri/host/session/plugin_process.h"
#include "pkg/nri/host/session/plugin_registry.h"
#include "pkg/nri/host/session/plugin_session.h"
#include "pkg/sys/acceptor.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

// Serves NRI plugins: those that connect to its socket, and those that it starts itself. Each is
// registered, configured and synchronized independently, and then given to the listener. If two
// have the same name, the one that became ready last counts: the listener is told of it, and then
// that the other is lost. Loop's thread only.
class PluginHost final : private PluginSession::Owner, private PluginProcess::Owner {
 public:
  // Both outlive the host. The listener is informed of each lost plugin, also by Stop, but not by
  // the destructor.
  PluginHost(EventLoop& loop, PluginListener& listener, HostOptions options);
  PluginHost(const PluginHost&) = delete;
  PluginHost& operator=(const PluginHost&) = delete;

  // Sets the runtime's name and version for plugins that connect from now on.
  void SetRuntime(RuntimeIdentity runtime) { runtime_ = std::move(runtime); }

  // Changes settings, strikes, time-outs and directories of HostOptions, also for connected
  // plugins, although a plugin learns its timeout only when it connects. After Start the
  // directories are read again: a plugin whose file is gone or whose configuration has changed is
  // ended, new ones are started, and the others go on.
  void Configure(const HostOptions& options);

  // Creates the socket, accessible to the daemon's user only, and starts the plugins of the
  // directory. kAlreadyExists: another process serves the socket, as containerd does by default
  // since 2.0; nothing is started then. Other errors are those of ListeningSocket.
  Status Start();
  // Serves a plugin that has connected in another way.
  void Attach(UniqueFd socket);
  // Refuses further connections, tells the connected plugins and disconnects them. `done` is called
  // once, after at most HostOptions::last_words.
  void Stop(std::function<void()> done);

  // The plugins that are or were connected, by index and name.
  std::vector<PluginView> plugins() const { return registry_.List(); }

 private:
  PluginStats& StatsOf(const PluginSession& session) override;
  SharedSyncMessages Inventory(PluginSession& session) override;
  void OnReady(PluginSession& session, std::vector<api::ContainerUpdate> updates) override;
  void OnEnded(PluginSession& session, const Status& why) override;
  const PluginSession* OnStarted(const PluginFile& plugin, UniqueFd socket, pid_t pid) override;
  void OnNotStarted(const PluginFile& plugin, const Status& why) override;
  void OnExited(const PluginFile& plugin, const Status& why) override;

  void ReadPlugins();
  void TakePlugins(const PluginFinder::Found& found);
  bool IsServedOtherwise(const PluginFile& plugin);
  void Refuse(const Status& why);
  PluginSession& Add(UniqueFd socket, std::string peer,
                     std::optional<PluginSession::Launched> launched);
  // The process of the session; end() if there is none.
  using Processes = std::vector<std::unique_ptr<PluginProcess>>;
  Processes::iterator ProcessOf(const PluginSession& session);
  // The ready session of the same plugin, or nullptr.
  PluginSession* Former(const PluginSession& session) const;
  void UnshadowSuccessor(const std::string& full_name);
  void EndAll();

  // Bytes of all plugins' requests that are held at a time; small requests do not count.
  static constexpr size_t kMostOfRequests = size_t{32} << 20;

  EventLoop& loop_;
  PluginListener& listener_;
  HostOptions options_;
  Logger& log_;
  RuntimeIdentity runtime_;
  PluginRegistry registry_;
  RateLimit refusals_;
  Acceptor acceptor_;
  FairTurns turns_;
  ttrpc::MemoryBudget requests_{kMostOfRequests};
  std::vector<std::unique_ptr<PluginSession>> sessions_;
  DestroyLater<std::unique_ptr<PluginSession>> ended_{loop_};
  PluginFinder finder_;
  Processes processes_;
  bool started_ = false;  // plugins may be started
  bool over_ = false;     // Stop was called
  size_t to_answer_ = 0;  // answers to the shutdown still to come
  std::function<void()> stopped_;
  EventLoop::HandlePtr stopping_;
};

}  // namespace resmgr::nri
