// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "pkg/hooks/hook_connection.h"
#include "pkg/hooks/hook_port.h"
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

}  // namespace resmgr::hooks
