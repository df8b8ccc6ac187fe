// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/relay_door.h"

#include <utility>

#include "pkg/cri/known_methods.h"
#include "pkg/cri/relay.h"
#include "pkg/cri/runtime_connection.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/policy_stage.h"
#include "pkg/resmgr/clock.h"
#include "pkg/sys/file_limit.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

class RelayLink final : public BrainLink {
 public:
  RelayLink(const DoorContext& context, HintFinder& hints, const std::string& runtime_socket)
      : hints_(hints), runtime_(context.loop, context.flushes, runtime_socket) {}

  RuntimeClient& runtime() override { return runtime_; }
  void Attach(ResourceManager& manager) override {
    manager_ = &manager;
    stage_.emplace(manager, hints_, [this] { return runtime_.EnsureConnected(); });
  }
  void Connect(RuntimeEvents events) override {
    runtime_.Start({.connected = std::move(events.connected),
                    .disconnected = std::move(events.disconnected),
                    .happened = std::move(events.happened)});
  }
  Status EnsureConnected() override { return runtime_.EnsureConnected(); }
  void Retire() override { LeaveEventsToClient(true); }
  bool drained() const override { return stage_->calls() == 0; }

  // Clients listen to the runtime's events, and the relay tells them to us.
  void LeaveEventsToClient(bool leave) { runtime_.LeaveEventsToClient(leave); }
  ResourceManager& manager() { return *manager_; }
  PolicyStage& stage() { return *stage_; }

 private:
  HintFinder& hints_;
  RuntimeConnection runtime_;
  ResourceManager* manager_ = nullptr;
  std::optional<PolicyStage> stage_;
};

class RelayDoor final : public FrontDoor {
 public:
  RelayDoor(const DoorContext& context, RelayDoorOptions options, ListeningSocket listener)
      : context_(context),
        options_(std::move(options)),
        hints_(context.loop, {}),
        clock_(context.loop),
        pipeline_(clock_),
        listener_(std::move(listener)) {
    for (Stage* const stage : options_.stages)
      pipeline_.Add(*stage);
  }

  void Start(dump::Dumper& dumper) override;
  std::unique_ptr<BrainLink> MakeLink() override {
    return std::make_unique<RelayLink>(context_, hints_, options_.runtime_socket);
  }
  void SetActive(BrainLink* link) override;
  void Drain(std::function<void()> done) override { relay_->Drain(std::move(done)); }
  void Stop() override { relay_.reset(); }

 private:
  const DoorContext context_;
  const RelayDoorOptions options_;
  HintFinder hints_;  // of all brains, so that its threads are few
  LoopClock clock_;
  Pipeline pipeline_;                        // outlives the relay's calls
  std::optional<ListeningSocket> listener_;  // until the start
  RelayLink* active_ = nullptr;
  std::optional<Relay> relay_;
};

void RelayDoor::Start(dump::Dumper& dumper) {
  const Relay::Options options{.runtime_socket = options_.runtime_socket,
                               .image_socket = options_.image_socket,
                               .max_clients = Relay::ClientsWith(RaiseFileLimit()),
                               .drain_timeout = kDrainDeadline};
  relay_.emplace(
      context_.loop, context_.flushes, *std::exchange(listener_, std::nullopt), options,
      Relay::Watchers{.pipeline = &pipeline_, .dumper = &dumper, .metrics = context_.metrics});
  relay_->OnClientsListen([this](bool listen) {
    if (active_ != nullptr) active_->LeaveEventsToClient(listen);
  });
  relay_->OnEvent([this](const ContainerEvent& event) {
    if (active_ != nullptr) active_->manager().OnContainerEvent(event);
  });
}

void RelayDoor::SetActive(BrainLink* link) {
  // All links of this door are of its own making.
  active_ = static_cast<RelayLink*>(link);
  pipeline_.SetPolicyStage(active_ == nullptr ? nullptr : &active_->stage());
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
