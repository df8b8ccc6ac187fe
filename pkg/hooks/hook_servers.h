// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/hooks/hook_connection.h"
#include "pkg/hooks/hook_directory.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/hooks/hook_server.h"
#include "pkg/metrics/metrics.h"

namespace resmgr::hooks {

// The hook servers that the files of the directory describe, as far as they were read. Loop's
// thread only.
class HookServers final : public HookServersPort {
 public:
  // `timeout` counts where a file has none. `metrics`, which may be null, counts the calls of each
  // endpoint and outlives this.
  HookServers(EventLoop& loop, h2::FlushQueue& flushes, std::chrono::milliseconds timeout,
              Metrics* metrics = nullptr);

  // All files of the directory at one moment. A version of a file that cannot be used is reported
  // once and leaves the one before in force: koordlet writes in place, so that half a file can be
  // read. Files that are gone have no server any more. A server whose endpoint stays the same keeps
  // its connection.
  void Update(const std::vector<HookFileText>& files);

  std::vector<std::shared_ptr<HookServerPort>> ServersOf(HookPoint point) const override;
  // In the order of their files' names.
  std::vector<std::shared_ptr<const HookServer>> All() const;

 private:
  struct File {
    std::optional<StatusOr<std::string>> seen{};  // the version that was looked at last
    std::shared_ptr<HookServer> server{};         // of the last version that could be used
  };

  void Take(const HookFileText& text, File& file);
  std::shared_ptr<HookConnection> ConnectionTo(const std::string& endpoint);

  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  Logger& log_;
  const std::chrono::milliseconds timeout_;
  Metrics* const metrics_;
  std::map<std::string, File> files_;  // by name
};

}  // namespace resmgr::hooks
