// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_servers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_file.h"

namespace resmgr::hooks {

void HookServer::Ask(HookPoint point, std::string request, Done done) {
  connection_->Ask(point, std::move(request), settings_.timeout,
                   lifetime_.Guard([done = std::move(done)](StatusOr<std::string> answer) {
                     done(std::move(answer));
                   }));
}

HookServers::HookServers(EventLoop& loop, h2::FlushQueue& flushes,
                         std::chrono::milliseconds timeout, Metrics* metrics)
    : loop_(loop),
      flushes_(flushes),
      log_(GetLogger("hooks")),
      timeout_(timeout),
      metrics_(metrics) {}

void HookServers::Update(const std::vector<HookFileText>& files) {
  // Entries of missing files are erased last, so that a renamed file finds its connection.
  std::set<std::string> gone;
  for (const auto& [name, file] : files_)
    gone.insert(name);
  for (const HookFileText& text : files) {
    Take(text, files_[text.name]);
    gone.erase(text.name);
  }
  for (const std::string& name : gone) {
    const auto file = files_.find(name);
    if (file->second.server != nullptr || file->second.unusable != nullptr)
      log_.Info("hook file {} is gone", Printable(name));
    files_.erase(file);
    NoteWell(name);
  }
  ForgetTold();
  CountReady();
}

void HookServers::Warn(const std::string& name, std::string text) {
  Told& told = told_[name];
  const bool steady = told.well_since && loop_.Now() - *told.well_since >= kSteady;
  told.well_since.reset();
  if (steady) told.texts.clear();
  const bool known = std::ranges::find(told.texts, text) != told.texts.end();
  if (known || told.texts.size() == kMostTold) return;
  log_.Warn("hook file {}{}", Printable(name), text);
  told.texts.push_back(std::move(text));
}

void HookServers::NoteWell(const std::string& name) {
  const auto told = told_.find(name);
  if (told != told_.end() && !told->second.well_since) told->second.well_since = loop_.Now();
}

void HookServers::ForgetTold() {
  std::erase_if(told_, [now = loop_.Now()](const auto& named) {
    return named.second.well_since && now - *named.second.well_since >= kSteady;
  });
}

void HookServers::SetTimeout(std::chrono::milliseconds timeout) {
  timeout_ = timeout;
  for (auto& [name, file] : files_)
    file.seen.reset();
}

void HookServers::CountReady() {
  const auto ready = static_cast<size_t>(std::ranges::count_if(files_, [](const auto& named) {
    return named.second.server != nullptr && named.second.server->connection().connected();
  }));
  if (std::exchange(ready_, ready) != ready && changed_) changed_(ready);
}

void HookServers::Take(const HookFileText& text, File& file) {
  if (file.seen == text.text && file.beyond_limit == text.beyond_limit) return;
  file.seen = text.text;
  file.beyond_limit = text.beyond_limit;
  if (text.beyond_limit) {
    file.server = nullptr;
    file.outdated = OkStatus();
    return NoteUnusable(
        text,
        text.text.ok()
            ? ResourceExhausted("the directory has more than {} hook files, and the first ones by "
                                "name are used",
                                kMostHookFiles)
            : text.text.status(),
        file);
  }
  StatusOr<HookFile> read =
      text.text.ok() ? ParseHookFile(text.name, *text.text, timeout_) : text.text.status();
  file.outdated = file.server != nullptr ? read.status() : OkStatus();
  if (!file.outdated.ok()) {
    Warn(text.name, fmt::format(" is ignored; the former version stays in force: {}",
                                Printable(Message(read.status()))));
    return;
  }
  if (!read.ok()) return NoteUnusable(text, read.status(), file);
  file.unusable = nullptr;
  for (const std::string& warning : read->warnings)
    Warn(text.name, ": " + warning);
  NoteWell(text.name);
  if (file.server != nullptr && file.server->settings() == read->settings) return;
  log_.Info("hook file {}: server {}", Printable(text.name), Printable(read->settings.endpoint));
  std::shared_ptr<HookConnection> connection = ConnectionTo(read->settings.endpoint);
  file.server = std::make_shared<HookServer>(std::move(read->settings), std::move(connection));
}

void HookServers::NoteUnusable(const HookFileText& text, const Status& why, File& file) {
  const HookServerSettings says = ReadUnusableHookFile(text.name, text.text.value_or(""));
  const bool refuses = says.failure == FailurePolicy::kFail && says.points.any();
  Warn(text.name,
       fmt::format(" is {}: {}",
                   refuses ? "not used, and the calls that its server would be asked about are "
                             "refused, since it says Fail"
                           : "ignored",
                   Printable(Message(why))));
  file.unusable = std::make_shared<UnusableServer>(
      loop_, says, Unavailable("the file is not used: {}", Message(why)));
}

std::shared_ptr<HookConnection> HookServers::ConnectionTo(const std::string& endpoint) {
  for (const auto& [name, file] : files_) {
    if (file.server != nullptr && file.server->settings().endpoint == endpoint) {
      return file.server->shared_connection();
    }
  }
  auto connection = std::make_shared<HookConnection>(loop_, flushes_, endpoint,
                                                     lifetime_.Guard([this] { CountReady(); }));
  if (metrics_ != nullptr) connection->CountBy(&metrics_->Plugin("hook", endpoint));
  return connection;
}

std::vector<std::shared_ptr<HookServerPort>> HookServers::ServersOf(HookPoint point) const {
  std::vector<std::shared_ptr<HookServerPort>> servers;
  for (const auto& [name, file] : files_) {
    const auto wants = [point](const HookServerPort& server) {
      return server.settings().points.test(static_cast<size_t>(point));
    };
    if (file.server != nullptr && wants(*file.server)) servers.push_back(file.server);
    // An unusable file whose policy is Ignore gets no replacement: its failure would be ignored
    // anyway.
    const bool refuses =
        file.unusable != nullptr && file.unusable->settings().failure == FailurePolicy::kFail;
    if (refuses && wants(*file.unusable)) servers.push_back(file.unusable);
  }
  return servers;
}

std::vector<std::shared_ptr<const UnusableServer>> HookServers::Unusable() const {
  std::vector<std::shared_ptr<const UnusableServer>> unusable;
  for (const auto& [name, file] : files_) {
    if (file.unusable != nullptr) unusable.push_back(file.unusable);
  }
  return unusable;
}

std::map<std::string, Status> HookServers::Outdated() const {
  std::map<std::string, Status> outdated;
  for (const auto& [name, file] : files_) {
    if (!file.outdated.ok()) outdated.emplace(name, file.outdated);
  }
  return outdated;
}

std::vector<std::shared_ptr<const HookServer>> HookServers::All() const {
  std::vector<std::shared_ptr<const HookServer>> servers;
  for (const auto& [name, file] : files_) {
    if (file.server != nullptr) servers.push_back(file.server);
  }
  return servers;
}

}  // namespace resmgr::hooks
