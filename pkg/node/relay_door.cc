// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/relay_door.h"

#include <functional>
#include <memory>
#include <utility>

#include "pkg/config/config.h"
#include "pkg/config/runtimes_config.h"
#include "pkg/cri/backend_router.h"
#include "pkg/cri/method_table.h"
#include "pkg/cri/relay.h"
#include "pkg/cri/runtime_clients.h"
#include "pkg/cri/runtime_connection.h"
#include "pkg/cri/runtime_inspectors.h"
#include "pkg/cri/runtimes_watch.h"
#include "pkg/node/door_parts.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

// The default runtime and the further ones.
std::vector<Backends::Backend> AllBackends(const RelayDoorOptions& options) {
  std::vector<Backends::Backend> all = {{.name = std::string(kDefaultRuntime),
                                         .socket = options.runtime_socket,
                                         .image_socket = options.image_socket.value_or("")}};
  all.insert(all.end(), options.runtimes.begin(), options.runtimes.end());
  return all;
}

// One brain's connections to the runtimes behind the relay, one to each, which look like one
// connection to the brain. It counts as connected while one of them is. When a runtime connects,
// all unconnected others are tried at once before the brain learns of it, so that the first list
// includes all running runtimes. Loop's thread only.
class RelayLink final : public BrainLink {
 public:
  // Connects to the only runtime. `aliases` of its handlers may be null, and must outlive this
  // object, as `hosting` must, which is empty after the door's end.
  RelayLink(const DoorContext& context, const std::string& runtime_socket,
            const HandlerAliases* aliases, std::optional<DoorHosting>& hosting);
  // Connects to all of `backends`, which must outlive this object.
  RelayLink(const DoorContext& context, Backends& backends, std::optional<DoorHosting>& hosting);

  RuntimeClient& runtime() override { return *teller_; }
  void Connect(RuntimeEvents events) override;
  Status EnsureConnected() override;
  void Retire() override { LeaveEventsToClient(true); }

  // `leave`: the event streams of clients provide the events, so this link needs no stream of its
  // own.
  void LeaveEventsToClient(bool leave);
  // Passes on an event that a client got through the relay.
  void TellEvent(const ContainerEvent& event) {
    if (events_.happened) events_.happened(event);
  }
  // Called after a call that the relay does not understand, which may have changed anything.
  void TellChange() {
    if (events_.changed) events_.changed();
  }

 private:
  // Runs attempt(runtime) for each connection, then reports the new ones.
  template <typename Attempt>
  void TryEach(const Attempt& attempt);
  void OnConnected(size_t runtime);
  void OnDisconnected(size_t runtime);
  // Takes an event of the link itself.
  void OnEvent(size_t runtime, const ContainerEvent& event);

  std::optional<DoorHosting>& hosting_;
  const Backends* const backends_ = nullptr;  // set if there are several runtimes
  RuntimeEvents events_{};                    // set by Connect
  std::vector<std::unique_ptr<RuntimeConnection>> connections_;
  std::optional<RuntimeClients> clients_;  // set if there are several runtimes
  std::optional<UpdateTeller> teller_;     // in front of the runtimes
  bool trying_ = false;
  std::vector<size_t> came_;  // runtimes that the present TryEach has connected
};

RelayLink::RelayLink(const DoorContext& context, const std::string& runtime_socket,
                     const HandlerAliases* aliases, std::optional<DoorHosting>& hosting)
    : hosting_(hosting) {
  connections_.push_back(std::make_unique<RuntimeConnection>(context.loop, context.flushes,
                                                             runtime_socket,
                                                             /*image_socket=*/"", aliases));
  teller_.emplace(*connections_.front(), hosting_);
}

RelayLink::RelayLink(const DoorContext& context, Backends& backends,
                     std::optional<DoorHosting>& hosting)
    : hosting_(hosting), backends_(&backends) {
  std::vector<RuntimeClient*> clients;
  for (const Backends::Backend& backend : backends.all()) {
    connections_.push_back(std::make_unique<RuntimeConnection>(
        context.loop, context.flushes, backend.socket, backend.image_socket, backends.aliases()));
    clients.push_back(connections_.back().get());
  }
  clients_.emplace(context.loop, backends, std::move(clients),
                   RuntimeClients::Events{.connected = [this] { events_.connected(); },
                                          .joined = [this] { events_.joined(); },
                                          .disconnected = [this] { events_.disconnected(); }});
  teller_.emplace(*clients_, hosting_);
}

// A connect to a unix socket succeeds or fails at once, so this does not wait.
template <typename Attempt>
void RelayLink::TryEach(const Attempt& attempt) {
  trying_ = true;
  for (size_t i = 0; i < connections_.size(); ++i)
    attempt(i);
  trying_ = false;
  if (came_.empty()) return;
  const std::vector<size_t> came = std::exchange(came_, {});
  clients_ ? clients_->OnConnected(came) : events_.connected();
}

void RelayLink::Connect(RuntimeEvents events) {
  events_ = std::move(events);
  // The inventory takes the list of the only runtime.
  const auto listing = [this] {
    return hosting_ ? hosting_->inventory().TakeOthersList() : nullptr;
  };
  TryEach([&](size_t i) {
    RuntimeConnection::Events of_runtime{
        .connected = [this, i] { OnConnected(i); },
        .disconnected = [this, i] { OnDisconnected(i); },
        .happened = [this, i](const ContainerEvent& event) { OnEvent(i, event); }};
    if (backends_ == nullptr) of_runtime.listing = listing;
    connections_[i]->Start(std::move(of_runtime));
  });
}

void RelayLink::OnEvent(size_t runtime, const ContainerEvent& event) {
  if (backends_ != nullptr && backends_->IsEventOfOther(runtime, event.id)) return;
  if (hosting_) hosting_->inventory().OnEvent(event);
  TellEvent(event);
}

void RelayLink::OnConnected(size_t runtime) {
  if (hosting_) hosting_->RuntimeConnected();
  came_.push_back(runtime);
  if (trying_) return;
  TryEach([this](size_t i) { (void)connections_[i]->EnsureConnected(); });
}

void RelayLink::OnDisconnected(size_t runtime) {
  clients_ ? clients_->OnDisconnected(runtime) : events_.disconnected();
}

Status RelayLink::EnsureConnected() {
  Status first;
  bool any = false;
  TryEach([&](size_t i) {
    const Status status = connections_[i]->EnsureConnected();
    any = any || status.ok();
    if (first.ok()) first = status;
  });
  return any ? OkStatus() : first;
}

void RelayLink::LeaveEventsToClient(bool leave) {
  for (const auto& connection : connections_)
    connection->LeaveEventsToClient(leave);
}

class RelayDoor final : public FrontDoor {
 public:
  RelayDoor(const DoorContext& context, RelayDoorOptions options, ListeningSocket listener)
      : context_(context), options_(std::move(options)), listener_(std::move(listener)) {
    for (Stage* const stage : options_.stages)
      context_.pipeline.Add(*stage);
    if (!options_.aliases.empty()) aliases_.emplace(options_.aliases);
    if (!options_.runtimes.empty()) {
      backends_.emplace(AllBackends(options_), aliases());
      router_.emplace(context_.loop, context_.flushes, *backends_);
    }
    hosting_.emplace(context_, *this, options_.hooks, options_.nri_host,
                     [this] { return MakeAccess(); });
  }
  ~RelayDoor() override {
    for (Stage* const stage : options_.stages)
      context_.pipeline.Remove(*stage);
  }

  CreationWays ways() const override { return {.holds_starts = true}; }
  void Remember(StateStore& state) override {
    if (backends_) RememberOwners(state);
    if (aliases_) {
      aliases_->Remember(&state);
    } else {
      state.RetainNotes(StateStore::PodNote::kHandler, [](std::string_view) { return false; });
      state.Commit();
    }
  }
  void Start(dump::Dumper& dumper) override;
  std::unique_ptr<BrainLink> MakeLink() override {
    if (backends_) return std::make_unique<RelayLink>(context_, *backends_, hosting_);
    return std::make_unique<RelayLink>(context_, options_.runtime_socket, aliases(), hosting_);
  }
  void SetActive(BrainLink* link) override;
  void Configure(const Config& config) override {
    if (hosting_) hosting_->Configure(config);
  }
  std::vector<PluginView> plugins() const override {
    return hosting_ ? hosting_->plugins() : std::vector<PluginView>();
  }
  std::vector<Problem> problems() const override {
    std::vector<Problem> all;
    if (hosting_) all = hosting_->problems();
    // If there is one runtime, the brain's link reports it; several are reported by the watch.
    if (active_ == nullptr && !backends_) AddUnreached("runtime", options_.runtime_socket, all);
    const std::string images = options_.image_socket.value_or("");
    if (!images.empty() && images != options_.runtime_socket)
      AddUnreached("image service", images, all);
    return all;
  }
  void DescribeRuntimes(std::function<void(std::vector<RuntimeView>)> done) override {
    if (!watch_) return done({});
    watch_->Describe(std::move(done));
  }
  std::vector<RuntimeView> runtimes() const override {
    return watch_ ? watch_->Known() : std::vector<RuntimeView>();
  }
  std::vector<SeenContainer> seen() const override {
    return hosting_ ? hosting_->seen() : std::vector<SeenContainer>();
  }
  void Drain(std::function<void()> done) override;
  void Pause(std::function<void()> done) override;
  Status Resume() override;
  void Stop() override {
    relay_.reset();
    watch_.reset();
    hosting_.reset();
    if (aliases_) aliases_->Remember(nullptr);
  }

 private:
  std::unique_ptr<RuntimeAccess> MakeAccess() {
    if (backends_)
      return std::make_unique<RuntimeInspectors>(context_.loop, context_.flushes, *backends_);
    return std::make_unique<RuntimeConnection>(context_.loop, context_.flushes,
                                               options_.runtime_socket,
                                               options_.image_socket.value_or(""), aliases());
  }
  // Restores the runtime of each id from the former daemon's state: otherwise the first runtime
  // that lists an id would count as its owner.
  void RememberOwners(const StateStore& state) {
    state.ForEach([this](std::string_view id, const SavedContainer& saved) {
      if (!saved.origin) return;
      const std::optional<size_t> runtime = backends_->Find(saved.origin->runtime);
      if (!runtime) return;
      IdOwners& owners = backends_->owners();
      (void)owners.Add(IdOwners::Kind::kPodSandbox, saved.origin->pod.id.value(), *runtime);
      (void)owners.Add(IdOwners::Kind::kContainer, id, *runtime);
    });
  }
  HandlerAliases* aliases() { return aliases_ ? &*aliases_ : nullptr; }

  const DoorContext context_;
  const RelayDoorOptions options_;
  std::optional<ListeningSocket> listener_;  // until the start
  bool paused_ = false;                      // Pause is complete
  RelayLink* active_ = nullptr;
  std::optional<HandlerAliases> aliases_;  // set if handlers have aliases
  std::optional<Backends> backends_;       // set if there are several runtimes
  std::optional<BackendRouter> router_;
  std::optional<RuntimesWatch> watch_;  // from Start to Stop
  std::optional<DoorHosting> hosting_;  // outlives the relay's calls
  std::optional<Relay> relay_;
};

void RelayDoor::Start(dump::Dumper& dumper) {
  const Relay::Options options{
      .runtime_socket = options_.runtime_socket,
      .image_socket = options_.image_socket,
      .max_clients = Relay::ClientsWith(RaiseFileLimit(), 1 + options_.runtimes.size()),
      .drain_timeout = kDrainDeadline};
  relay_.emplace(
      context_.loop, context_.flushes, *std::exchange(listener_, std::nullopt), options,
      Relay::Observers{
          .pipeline = &context_.pipeline, .dumper = &dumper, .metrics = context_.metrics});
  relay_->SetAliases(aliases());
  if (router_) {
    relay_->SetRouter(&*router_);
    watch_.emplace(context_.loop, context_.flushes, *backends_, context_.metrics);
  } else {
    watch_.emplace(context_.loop, context_.flushes, AllBackends(options_).front(), aliases());
  }
  relay_->OnClientsListen([this](bool listen) {
    if (active_ != nullptr) active_->LeaveEventsToClient(listen);
  });
  relay_->OnEvent([this](const ContainerEvent& event) {
    if (hosting_) hosting_->inventory().OnEvent(event);
    if (active_ != nullptr) active_->TellEvent(event);
  });
  relay_->OnUnknownMethod([this] {
    if (active_ != nullptr) active_->TellChange();
  });
  hosting_->Start();
}

void RelayDoor::Drain(std::function<void()> done) {
  const auto stop_plugins = [this, done = std::move(done)] {
    hosting_ ? hosting_->StopPlugins(done) : done();
  };
  paused_ ? stop_plugins() : relay_->Drain(stop_plugins);
}

void RelayDoor::Pause(std::function<void()> done) {
  relay_->Drain([this, done = std::move(done)] {
    paused_ = true;
    done();
  });
}

Status RelayDoor::Resume() {
  RESMGR_ASSIGN_OR_RETURN(ListeningSocket listener, ListeningSocket::Create(options_.relay_socket));
  paused_ = false;
  relay_->Resume(std::move(listener));
  return OkStatus();
}

void RelayDoor::SetActive(BrainLink* link) {
  // This door made all of its links, so the type is known.
  active_ = static_cast<RelayLink*>(link);
  if (hosting_) hosting_->SetLinked(active_ != nullptr);
  if (active_ != nullptr) active_->LeaveEventsToClient(relay_->clients_listen());
}

}  // namespace

FrontDoorFactory RelayDoorFactory(RelayDoorOptions options) {
  std::vector<std::string> sockets = {options.relay_socket};
  if (options.nri_host) sockets.push_back(options.nri_host->host.socket);
  std::string description =
      fmt::format("serving {}, runtime {}", options.relay_socket, options.runtime_socket);
  for (const Backends::Backend& runtime : options.runtimes)
    description += fmt::format(", {} {}", runtime.name, runtime.socket);
  const auto create = [options = std::move(options)](
                          const DoorContext& context) -> StatusOr<std::unique_ptr<FrontDoor>> {
    RESMGR_ASSIGN_OR_RETURN(ListeningSocket listener,
                            ListeningSocket::Create(options.relay_socket));
    return std::make_unique<RelayDoor>(context, options, std::move(listener));
  };
  return {.create = create,
          .sockets = std::move(sockets),
          .description = std::move(description),
          .asks_hook_servers = true,
          .counted_methods = KnownMethodPaths()};
}

}  // namespace resmgr
