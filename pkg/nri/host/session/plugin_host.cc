// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_host.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include "pkg/log/not_logged.h"
#include "pkg/nri/protocol.h"
#include "pkg/sys/files.h"

namespace resmgr::nri {
namespace {

constexpr mode_t kSocketMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

// The process at the other end of a unix socket: the one that connected, or that created the pair.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
};

StatusOr<Peer> PeerOf(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return ErrnoStatus(errno, "cannot find out which process has connected");
  }
  return Peer{.pid = credentials.pid, .uid = credentials.uid};
}

// Plugins' updates are carried out with the daemon's rights, so a plugin must have these rights
// itself: it runs as root, or as the daemon's user.
bool MayBePlugin(const Peer& peer) {
  return peer.uid == 0 || peer.uid == ::geteuid();
}

}  // namespace

PluginHost::PluginHost(EventLoop& loop, PluginListener& listener, HostOptions options)
    : loop_(loop),
      listener_(listener),
      options_(std::move(options)),
      log_(GetLogger("nri/host")),
      registry_(options_.metrics),
      refusals_(5, std::chrono::minutes(1)),
      acceptor_(loop, {.take = [this](UniqueFd socket) { Attach(std::move(socket)); },
                       .failed = [this](const Status& why) { Refuse(why); }}),
      turns_(loop, {}),
      finder_(loop, {}, [this](const PluginFinder::Found& found) { TakePlugins(found); }) {}

void PluginHost::Configure(const HostOptions& options) {
  options_.plugin_path = options.plugin_path;
  options_.plugin_config_path = options.plugin_config_path;
  options_.registration_timeout = options.registration_timeout;
  options_.sync_timeout = options.sync_timeout;
  options_.strikes = options.strikes;
  options_.settings = options.settings;
  options_.plugins = options.plugins;
  for (const auto& session : sessions_)
    session->FindSettings();
  for (const auto& session : ended_.objects())
    session->FindSettings();
  if (started_) ReadPlugins();
}

Status PluginHost::Start() {
  if (options_.external_plugins) {
    RESMGR_ASSIGN_OR_RETURN(ListeningSocket socket,
                            ListeningSocket::Create(options_.socket, kSocketMode, kDirectoryMode));
    acceptor_.Listen(std::move(socket));
    log_.Info("serving NRI plugins on {}", options_.socket);
  }
  started_ = true;
  ReadPlugins();
  return OkStatus();
}

void PluginHost::ReadPlugins() {
  finder_.Look(options_.plugin_path, options_.plugin_config_path);
}

void PluginHost::TakePlugins(const PluginFinder::Found& found) {
  if (over_) return;
  std::vector<PluginFile> fresh;
  for (const PluginFile& plugin : found.plugins) {
    const bool runs = std::ranges::any_of(
        processes_, [&plugin](const auto& each) { return each->plugin() == plugin; });
    if (!runs && !IsServedOtherwise(plugin)) fresh.push_back(plugin);
  }
  std::erase_if(processes_, [&found](const auto& each) {
    // The plugin's files could not be read in time; it goes on, since they may be unchanged.
    if (std::ranges::find(found.late, each->plugin().path) != found.late.end()) return false;
    return std::ranges::find(found.plugins, each->plugin()) == found.plugins.end();
  });
  for (PluginFile& plugin : fresh) {
    PluginProcess::Owner& owner = *this;
    processes_.push_back(
        std::make_unique<PluginProcess>(loop_, owner, options_, std::move(plugin)));
    processes_.back()->Start();
  }
}

// Whether a plugin of this name that connected by itself has replaced it.
bool PluginHost::IsServedOtherwise(const PluginFile& plugin) {
  const std::string full_name = FullPluginName(plugin.index, plugin.name);
  return std::ranges::any_of(sessions_, [&](const auto& session) {
    return session->full_name() == full_name && ProcessOf(*session) == processes_.end();
  });
}

const PluginSession* PluginHost::OnStarted(const PluginFile& plugin, UniqueFd socket, pid_t pid) {
  if (sessions_.size() >= options_.most_plugins) {
    Refuse(ResourceExhausted("{} are connected already", sessions_.size()));
    return nullptr;
  }
  return &Add(
      std::move(socket), fmt::format("pid {}", pid),
      PluginSession::Launched{.index = plugin.index, .name = plugin.name, .config = plugin.config});
}

void PluginHost::OnNotStarted(const PluginFile& plugin, const Status& why) {
  const std::string full_name = FullPluginName(plugin.index, plugin.name);
  log_.Warn("plugin {} is not started: {}", full_name, Message(why));
  registry_.Add(plugin.index, plugin.name);
  registry_.Remove(full_name, false, PluginView::State::kFailed, why);
}

void PluginHost::OnExited(const PluginFile& plugin, const Status& why) {
  registry_.NoteExit(plugin.index, plugin.name, why);
}

PluginHost::Processes::iterator PluginHost::ProcessOf(const PluginSession& session) {
  return std::find_if(processes_.begin(), processes_.end(),
                      [&](const auto& each) { return each->session() == &session; });
}

void PluginHost::Refuse(const Status& why) {
  if (const auto more = refusals_.Pass(loop_.Now())) {
    log_.Warn("a plugin cannot connect: {}{}", Message(why), NotLogged(*more));
  }
}

void PluginHost::Attach(UniqueFd socket) {
  const StatusOr<Peer> peer = PeerOf(socket.get());
  if (!peer.ok()) return Refuse(peer.status());
  if (!MayBePlugin(*peer)) {
    return Refuse(FailedPrecondition("process {} runs as user {}", peer->pid, peer->uid));
  }
  if (sessions_.size() >= options_.most_plugins) {
    return Refuse(ResourceExhausted("{} are connected already", sessions_.size()));
  }
  Add(std::move(socket), fmt::format("pid {}", peer->pid), std::nullopt);
}

PluginSession& PluginHost::Add(UniqueFd socket, std::string peer,
                               std::optional<PluginSession::Launched> launched) {
  sessions_.push_back(std::make_unique<PluginSession>(PluginSession::Context{.loop = loop_,
                                                                             .options = options_,
                                                                             .runtime = runtime_,
                                                                             .owner = *this,
                                                                             .listener = listener_,
                                                                             .turns = turns_,
                                                                             .requests = requests_},
                                                      std::move(socket), std::move(peer),
                                                      std::move(launched)));
  return *sessions_.back();
}

PluginStats& PluginHost::StatsOf(const PluginSession& session) {
  return registry_.Add(session.index(), session.name());
}

PluginSession* PluginHost::Former(const PluginSession& session) const {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& each) {
    return each.get() != &session && each->ready() && each->full_name() == session.full_name();
  });
  return found == sessions_.end() ? nullptr : found->get();
}

SharedSyncMessages PluginHost::Inventory(PluginSession& session) {
  session.SetShadow(Former(session) != nullptr);
  return listener_.Inventory(session);
}

void PluginHost::OnReady(PluginSession& session, std::vector<api::ContainerUpdate> updates) {
  PluginSession* const former = Former(session);
  registry_.SetReady(session.full_name(), session.events());
  log_.Info("plugin {} is ready, for events {}", session.Label(),
            fmt::join(EventNames(session.events()), " "));
  listener_.OnReady(session, std::move(updates));
  if (former != nullptr && !former->ended()) {
    // If the host itself started the former plugin, it must not start it again: that would replace
    // the successor.
    if (const auto process = ProcessOf(*former); process != processes_.end()) {
      processes_.erase(process);
    }
    former->End(Unavailable("plugin {} has come in its place", session.Label()));
  }
}

void PluginHost::OnEnded(PluginSession& session, const Status& why) {
  const auto at = std::find_if(sessions_.begin(), sessions_.end(),
                               [&](const auto& each) { return each.get() == &session; });
  ended_.Add(std::move(*at));
  sessions_.erase(at);
  log_.Text(stopped_ ? LogLevel::kInfo : LogLevel::kWarn,
            fmt::format("plugin {} is lost: {}", session.Label(), Message(why)));
  if (const auto process = ProcessOf(session); process != processes_.end()) {
    (*process)->Restart();
  }
  if (session.has_figures()) {
    const bool gone = why.code() == StatusCode::kUnavailable;
    registry_.Remove(session.full_name(), session.was_ready(),
                     gone ? PluginView::State::kDisconnected : PluginView::State::kFailed, why);
  }
  if (session.was_ready()) UnshadowSuccessor(session.full_name());
  if (session.has_inventory()) listener_.OnLost(session, why);
}

// If a ready plugin is lost before its successor is ready, the successor decides from now on.
void PluginHost::UnshadowSuccessor(const std::string& full_name) {
  for (const auto& each : sessions_) {
    if (each->full_name() == full_name && !each->ready()) {
      each->SetShadow(Former(*each) != nullptr);
    }
  }
}

void PluginHost::Stop(std::function<void()> done) {
  over_ = true;
  acceptor_.Stop();
  stopped_ = std::move(done);
  stopping_ = loop_.After(options_.last_words, [this] { EndAll(); });
  to_answer_ = 1;  // counts this call itself
  const auto answered = [this] {
    if (--to_answer_ == 0)
      stopping_ = loop_.After(std::chrono::milliseconds(0), [this] { EndAll(); });
  };
  for (const auto& session : sessions_) {
    ++to_answer_;
    session->Shutdown(options_.last_words, answered);
  }
  answered();
}

void PluginHost::EndAll() {
  const EventLoop::HandlePtr running = std::move(stopping_);
  const Status why = Unavailable("this daemon ends");
  processes_.clear();
  while (!sessions_.empty())
    sessions_.front()->End(why);
  if (const auto stopped = std::exchange(stopped_, nullptr)) stopped();
}

}  // namespace resmgr::nri
