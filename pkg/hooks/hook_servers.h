// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/hooks/hook_connection.h"
#include "pkg/hooks/hook_directory.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/metrics/metrics.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::hooks {

// One file's settings, and the connection that it shares with other files of the same endpoint and
// with its own later versions. Loop's thread only.
class HookServer final : public HookServerPort {
 public:
  HookServer(HookServerSettings settings, std::shared_ptr<HookConnection> connection)
      : settings_(std::move(settings)), connection_(std::move(connection)) {}

  const HookServerSettings& settings() const override { return settings_; }
  void Ask(HookPoint point, std::string request, Done done) override;

  const HookConnection& connection() const { return *connection_; }
  const std::shared_ptr<HookConnection>& shared_connection() const { return connection_; }

 private:
  const HookServerSettings settings_;
  const std::shared_ptr<HookConnection> connection_;
  // An answer for a server that is gone meanwhile is dropped.
  Lifetime lifetime_;
};

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

// The hook servers of the directory's files, as last read. Loop's thread only.
class HookServers final : public HookServersPort {
 public:
  // `timeout` is the default for files without one. `metrics`, which may be null, counts the calls
  // of each endpoint and outlives this object.
  HookServers(EventLoop& loop, h2::FlushQueue& flushes, std::chrono::milliseconds timeout,
              Metrics* metrics = nullptr);

  // Sets the default timeout; takes effect at the next Update, which parses all files anew.
  void SetTimeout(std::chrono::milliseconds timeout);

  // Takes all files of the directory at one moment. A bad version of a file is reported once,
  // however often it comes back within seconds, and leaves the former version in force: koordlet
  // writes in place, so a partial file may be read. A file without a good version, and one beyond
  // the limit, has no server: calls that it would be asked about are refused if it says Fail. Files
  // that are gone have no server any more. A server whose endpoint stays the same keeps its
  // connection.
  void Update(const std::vector<HookFileText>& files);

  std::vector<std::shared_ptr<HookServerPort>> ServersOf(HookPoint point) const override;
  // `changed` gets the number of connected servers after each change of it.
  void OnReadyChanged(std::function<void(size_t ready)> changed) { changed_ = std::move(changed); }
  // In the order of the files' names.
  std::vector<std::shared_ptr<const HookServer>> All() const;
  // The replacements for files that cannot be used, in the order of the files' names.
  std::vector<std::shared_ptr<const UnusableServer>> Unusable() const;
  // Files whose former version is still in force, by name, with the reason why the present version
  // is not.
  std::map<std::string, Status> Outdated() const;

 private:
  struct File {
    std::optional<StatusOr<std::string>> seen{};  // the version that was read last
    bool beyond_limit = false;             // whether the version in `seen` was beyond the limit
    std::shared_ptr<HookServer> server{};  // of the last usable version
    Status outdated{};                     // why `server` is not the version that was read last
    std::shared_ptr<UnusableServer> unusable{};  // set if there is no server
  };

  // Logged warnings of a file. They outlive the file: a server that writes its file anew, or
  // replaces it, shows it empty or partial for a moment each time.
  struct Told {
    std::vector<std::string> texts{};
    // The time since when the file is good, or gone; reset while it is bad.
    std::optional<EventLoop::Clock::time_point> well_since{};
  };
  static constexpr std::chrono::seconds kSteady{10};
  static constexpr size_t kMostTold = 8;

  // Logs the text, unless it was logged since the file was last good for kSteady, or kMostTold
  // other texts were.
  void Warn(const std::string& name, std::string text);
  void NoteWell(const std::string& name);
  void ForgetTold();
  void Take(const HookFileText& text, File& file);
  void NoteUnusable(const HookFileText& text, const Status& why, File& file);
  std::shared_ptr<HookConnection> ConnectionTo(const std::string& endpoint);
  void CountReady();

  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  Logger& log_;
  std::chrono::milliseconds timeout_;
  Metrics* const metrics_;
  std::map<std::string, File> files_;  // by name
  std::map<std::string, Told> told_;   // by name
  std::function<void(size_t)> changed_;
  std::optional<size_t> ready_;  // the number that OnReadyChanged's function was last called with
  // A connection with a call under way may outlive this object.
  Lifetime lifetime_;
};

}  // namespace resmgr::hooks
