// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/relay_door.h"

#include <utility>

#include "pkg/cri/known_methods.h"
#include "pkg/cri/relay.h"
#include "pkg/cri/runtime_connection.h"
#include "pkg/sys/file_limit.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

class RelayLink final : public BrainLink {
 public:
  // `connected` is told of each connection to the runtime, `seen` of the events that come to the
  // link itself.
  RelayLink(const DoorContext& context, const std::string& runtime_socket,
            std::function<void()> connected, std::function<void(const ContainerEvent&)> seen)
      : connected_(std::move(connected)),
        seen_(std::move(seen)),
        runtime_(context.loop, context.flushes, runtime_socket) {}

  RuntimeClient& runtime() override { return runtime_; }
  void Connect(RuntimeEvents events) override {
    happened_ = std::move(events.happened);
    runtime_.Start({.connected =
                        [this, connected = std::move(events.connected)] {
                          connected_();
                          connected();
                        },
                    .disconnected = std::move(events.disconnected),
                    .happened =
                        [this](const ContainerEvent& event) {
                          seen_(event);
                          TellEvent(event);
                        }});
  }
  Status EnsureConnected() override { return runtime_.EnsureConnected(); }
  void Retire() override { LeaveEventsToClient(true); }

  // Clients listen to the runtime's events, and the relay tells them to us.
  void LeaveEventsToClient(bool leave) { runtime_.LeaveEventsToClient(leave); }
  // A client got this event by the relay.
  void TellEvent(const ContainerEvent& event) {
    if (happened_) happened_(event);
  }

 private:
  const std::function<void()> connected_;
  const std::function<void(const ContainerEvent&)> seen_;
  RuntimeConnection runtime_;
  std::function<void(const ContainerEvent&)> happened_;  // set once it connects
};

class RelayDoor final : public FrontDoor {
 public:
  RelayDoor(const DoorContext& context, RelayDoorOptions options, ListeningSocket listener)
      : context_(context), options_(std::move(options)), listener_(std::move(listener)) {
    for (Stage* const stage : options_.stages)
      context_.pipeline.Add(*stage);
    const std::string images = options_.image_socket.value_or(options_.runtime_socket);
    if (options_.hooks) {
      hook_hosting_.emplace(context_, options_.runtime_socket, images, *options_.hooks);
    }
    if (options_.nri_host) {
      nri_hosting_.emplace(context_, options_.runtime_socket, images, *options_.nri_host);
    }
  }
  ~RelayDoor() override {
    for (Stage* const stage : options_.stages)
      context_.pipeline.Remove(*stage);
  }

  void Start(dump::Dumper& dumper) override;
  std::unique_ptr<BrainLink> MakeLink() override {
    return std::make_unique<RelayLink>(
        context_, options_.runtime_socket,
        [this] {
          if (hook_hosting_) hook_hosting_->OnRuntimeConnected();
        },
        [this](const ContainerEvent& event) { TellPlugins(event); });
  }
  void SetActive(BrainLink* link) override;
  std::vector<PluginView> plugins() const override {
    std::vector<PluginView> all =
        hook_hosting_ ? hook_hosting_->plugins() : std::vector<PluginView>();
    if (nri_hosting_) {
      for (PluginView& plugin : nri_hosting_->plugins())
        all.push_back(std::move(plugin));
    }
    return all;
  }
  void Drain(std::function<void()> done) override;
  void Stop() override {
    relay_.reset();
    nri_hosting_.reset();
    hook_hosting_.reset();
  }

 private:
  void TellPlugins(const ContainerEvent& event) {
    if (hook_hosting_) hook_hosting_->OnContainerEvent(event);
    if (nri_hosting_) nri_hosting_->OnContainerEvent(event);
  }

  const DoorContext context_;
  const RelayDoorOptions options_;
  std::optional<ListeningSocket> listener_;  // until the start
  RelayLink* active_ = nullptr;
  std::optional<HookHosting> hook_hosting_;  // these outlive the relay's calls
  std::optional<NriHosting> nri_hosting_;
  std::optional<Relay> relay_;
};

void RelayDoor::Start(dump::Dumper& dumper) {
  const Relay::Options options{.runtime_socket = options_.runtime_socket,
                               .image_socket = options_.image_socket,
                               .max_clients = Relay::ClientsWith(RaiseFileLimit()),
                               .drain_timeout = kDrainDeadline};
  relay_.emplace(
      context_.loop, context_.flushes, *std::exchange(listener_, std::nullopt), options,
      Relay::Observers{
          .pipeline = &context_.pipeline, .dumper = &dumper, .metrics = context_.metrics});
  relay_->OnClientsListen([this](bool listen) {
    if (active_ != nullptr) active_->LeaveEventsToClient(listen);
  });
  relay_->OnEvent([this](const ContainerEvent& event) {
    TellPlugins(event);
    if (active_ != nullptr) active_->TellEvent(event);
  });
  if (hook_hosting_) hook_hosting_->Start();
  if (nri_hosting_) nri_hosting_->Start();
}

void RelayDoor::Drain(std::function<void()> done) {
  relay_->Drain([this, done = std::move(done)] {
    if (!nri_hosting_) return done();
    nri_hosting_->Stop(done);
  });
}

void RelayDoor::SetActive(BrainLink* link) {
  // All links of this door are of its own making.
  active_ = static_cast<RelayLink*>(link);
  if (active_ != nullptr) active_->LeaveEventsToClient(relay_->clients_listen());
}

}  // namespace

FrontDoorFactory RelayDoorFactory(RelayDoorOptions options) {
  std::string description =
      fmt::format("serving {}, runtime {}", options.relay_socket, options.runtime_socket);
  const auto create = [options = std::move(options)](
                          const DoorContext& context) -> StatusOr<std::unique_ptr<FrontDoor>> {
    RESMGR_ASSIGN_OR_RETURN(ListeningSocket listener,
                            ListeningSocket::Create(options.relay_socket));
    return std::make_unique<RelayDoor>(context, options, std::move(listener));
  };
  return {.create = create,
          .description = std::move(description),
          .counted_methods = KnownMethodPaths()};
}

}  // namespace resmgr
