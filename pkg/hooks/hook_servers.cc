// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_servers.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_file.h"

namespace resmgr::hooks {

HookServers::HookServers(EventLoop& loop, h2::FlushQueue& flushes,
                         std::chrono::milliseconds timeout, Metrics* metrics)
    : loop_(loop),
      flushes_(flushes),
      log_(GetLogger("hooks")),
      timeout_(timeout),
      metrics_(metrics) {}

void HookServers::Update(const std::vector<HookFileText>& files) {
  // What is left of these at the end is gone; until then a renamed file finds its connection.
  std::map<std::string, File> before = files_;
  for (const HookFileText& text : files) {
    Take(text, files_[text.name]);
    before.erase(text.name);
  }
  for (const auto& [name, file] : before) {
    if (file.server != nullptr) log_.Info("hook file {} is gone", Printable(name));
    files_.erase(name);
  }
}

void HookServers::Take(const HookFileText& text, File& file) {
  if (file.seen == text.text) return;
  file.seen = text.text;
  StatusOr<HookFile> read =
      text.text.ok() ? ParseHookFile(text.name, *text.text, timeout_) : text.text.status();
  if (!read.ok()) {
    log_.Warn("hook file {} is ignored{}: {}", Printable(text.name),
              file.server == nullptr ? "" : ", the version before stays in force",
              Printable(Message(read.status())));
    return;
  }
  for (const std::string& warning : read->warnings)
    log_.Warn("hook file {}: {}", Printable(text.name), warning);
  if (file.server != nullptr && file.server->settings() == read->settings) return;
  log_.Info("hook file {}: server {}", Printable(text.name), Printable(read->settings.endpoint));
  std::shared_ptr<HookConnection> connection = ConnectionTo(read->settings.endpoint);
  file.server = std::make_shared<HookServer>(std::move(read->settings), std::move(connection));
}

std::shared_ptr<HookConnection> HookServers::ConnectionTo(const std::string& endpoint) {
  for (const auto& [name, file] : files_) {
    if (file.server != nullptr && file.server->settings().endpoint == endpoint) {
      return file.server->shared_connection();
    }
  }
  auto connection = std::make_shared<HookConnection>(loop_, flushes_, endpoint);
  if (metrics_ != nullptr) connection->CountBy(&metrics_->Plugin("hook", endpoint));
  return connection;
}

std::vector<std::shared_ptr<HookServerPort>> HookServers::ServersOf(HookPoint point) const {
  std::vector<std::shared_ptr<HookServerPort>> servers;
  for (const auto& [name, file] : files_) {
    if (file.server != nullptr && file.server->settings().points.test(static_cast<size_t>(point))) {
      servers.push_back(file.server);
    }
  }
  return servers;
}

std::vector<std::shared_ptr<const HookServer>> HookServers::All() const {
  std::vector<std::shared_ptr<const HookServer>> servers;
  for (const auto& [name, file] : files_) {
    if (file.server != nullptr) servers.push_back(file.server);
  }
  return servers;
}

}  // namespace resmgr::hooks
