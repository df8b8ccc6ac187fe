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

#include "pkg/hooks/hook_connection.h"
#include "pkg/hooks/hook_directory.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/hooks/hook_server.h"
#include "pkg/hooks/unusable_server.h"
#include "pkg/metrics/metrics.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::hooks {

// The hook servers that the files of the directory describe, as far as they were read. Loop's
// thread only.
class HookServers final : public HookServersPort {
 public:
  // `timeout` counts where a file has none. `metrics`, which may be null, counts the calls of each
  // endpoint and outlives this.
  HookServers(EventLoop& loop, h2::FlushQueue& flushes, std::chrono::milliseconds timeout,
              Metrics* metrics = nullptr);

  // As the constructor's; counts from the next Update on, which reads all files anew.
  void SetTimeout(std::chrono::milliseconds timeout);

  // All files of the directory at one moment. A version of a file that cannot be used is reported
  // once, however often it comes back within seconds, and leaves the one before in force: koordlet
  // writes in place, so that half a file can be read. A file without such a version, and one beyond
  // the limit, has no server: calls that it would be asked about are refused where it says Fail.
  // Files that are gone have no server any more. A server whose endpoint stays the same keeps its
  // connection.
  void Update(const std::vector<HookFileText>& files);

  std::vector<std::shared_ptr<HookServerPort>> ServersOf(HookPoint point) const override;
  // `changed` is told how many are connected, after each change of that.
  void OnReadyChanged(std::function<void(size_t ready)> changed) { changed_ = std::move(changed); }
  // In the order of their files' names.
  std::vector<std::shared_ptr<const HookServer>> All() const;
  // Those of files that cannot be used, in the same order.
  std::vector<std::shared_ptr<const UnusableServer>> Unusable() const;

 private:
  struct File {
    std::optional<StatusOr<std::string>> seen{};  // the version that was looked at last
    bool beyond_limit = false;                    // that version
    std::shared_ptr<HookServer> server{};         // of the last version that could be used
    std::shared_ptr<UnusableServer> unusable{};   // where there is none
  };

  // What was logged of a file. It outlives the file: a server that writes its file anew, or
  // replaces it, shows it empty or broken for a moment each time.
  struct Told {
    std::vector<std::string> texts{};
    // The time since which nothing was wrong with it, or it was gone; reset while it is wrong.
    std::optional<EventLoop::Clock::time_point> well_since{};
  };
  static constexpr std::chrono::seconds kSteady{10};
  static constexpr size_t kMostTold = 8;

  // Logs it, unless that was said of the file before, or much else, and it was not well for kSteady
  // since.
  void Warn(const std::string& name, std::string text);
  void NoteWell(const std::string& name);
  void ForgetTold();
  void Take(const HookFileText& text, File& file);
  void NoteUnusable(const HookFileText& text, Status why, File& file);
  std::shared_ptr<HookConnection> ConnectionTo(const std::string& endpoint);
  void CountReady();

  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  Logger& log_;
  std::chrono::milliseconds timeout_;
  Metrics* const metrics_;
  std::map<std::string, File> files_;  // by name
  std::map<std::string, Told> told_;   // likewise
  std::function<void(size_t)> changed_;
  std::optional<size_t> ready_;  // that was told
  // A connection may outlive this, with a call that is under way.
  Lifetime lifetime_;
};

}  // namespace resmgr::hooks
