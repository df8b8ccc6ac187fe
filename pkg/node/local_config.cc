// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/local_config.h"

#include <memory>
#include <optional>
#include <utility>

#include "pkg/config/problems.h"
#include "pkg/log/log.h"
#include "pkg/node/delivered_config.h"

namespace resmgr {

void RestoreLater(const NodeOptions& options, OffLoop& off_loop, Configurator& configurator) {
  const Status begun =
      off_loop.Run([directory = options.directory, &configurator]() -> EventLoop::Task {
        auto kept = std::make_shared<StatusOr<std::optional<DeliveredConfig>>>(
            LoadDeliveredConfig(directory));
        return [kept, &configurator] {
          if (!kept->ok()) {
            GetLogger("config").Warn("{}", Message(kept->status()));
          } else if (kept->value().has_value()) {
            configurator.Restore(**std::move(*kept));
          }
        };
      });
  if (!begun.ok()) GetLogger("config").Warn("{}", Message(begun));
}

void Reload(const NodeOptions& options, Configurator& configurator) {
  Logger& log = GetLogger("config");
  if (options.config_file.empty()) {
    log.Info("SIGHUP: there is no configuration file to read again");
    return;
  }
  if (configurator.source() != options.config_file) {
    log.Info("SIGHUP: the configuration from {} is in force, {} is not read", configurator.source(),
             options.config_file);
    return;
  }
  configurator.Reload(options.config_file, options.read_again, [&log](const Status& status) {
    if (status.ok()) return;
    log.Warn("SIGHUP: the configuration is unchanged: {}", OneLine(Message(status)));
  });
}

void ToggleDebug(bool on, const Configurator& configurator) {
  if (on) {
    SetLogLevel(LogLevel::kDebug);
  } else if (const Status status = ApplyLogging(configurator.current().logger); !status.ok()) {
    GetLogger("config").Warn("{}", Message(status));
  }
  GetLogger("cri-resmgr").Info("SIGUSR1: debug messages are {}", on ? "on" : "as configured");
}

}  // namespace resmgr
