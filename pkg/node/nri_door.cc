// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/nri_door.h"

#include <optional>
#include <set>
#include <utility>

#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/policy_stage.h"
#include "pkg/resmgr/clock.h"

namespace resmgr {
namespace {

class NriDoor;

// What is asked for one brain is answered no more once that is gone.
class NriLink final : public BrainLink, private RuntimeClient {
 public:
  NriLink(NriDoor& door, HintFinder& hints) : door_(door), hints_(hints) {}
  ~NriLink() override;

  RuntimeClient& runtime() override { return *this; }
  void Attach(ResourceManager& manager) override {
    stage_.emplace(manager, hints_, [this] { return EnsureConnected(); });
  }
  void Connect(RuntimeEvents events) override;
  Status EnsureConnected() override;
  void Retire() override {}
  bool drained() const override { return stage_->calls() == 0; }

  PolicyStage& stage() { return *stage_; }
  const RuntimeEvents& events() const { return events_; }

 private:
  void UpdateContainer(const ContainerId& id, const ResourceValues& values,
                       std::function<void(Status)> done) override;
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;

  template <typename Result>
  std::function<void(Result)> WhileHere(std::function<void(Result)> done) {
    return [alive = std::weak_ptr<char>(alive_), done = std::move(done)](Result result) {
      if (!alive.expired()) done(std::move(result));
    };
  }

  NriDoor& door_;
  HintFinder& hints_;
  RuntimeEvents events_;
  std::optional<PolicyStage> stage_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

class NriDoor final : public FrontDoor {
 public:
  NriDoor(const DoorContext& context, nri::PluginFront::Options options)
      : context_(context),
        options_(std::move(options)),
        hints_(context.loop, {}),
        clock_(context.loop),
        pipeline_(clock_) {}

  void Start(dump::Dumper&) override {
    front_.emplace(context_.loop, pipeline_, options_,
                   nri::PluginFront::Events{
                       .connected = [this] { Tell([](const auto& to) { to.connected(); }); },
                       .disconnected = [this] { Tell([](const auto& to) { to.disconnected(); }); },
                       .happened =
                           [this](const ContainerEvent& event) {
                             Tell([&event](const auto& to) { to.happened(event); });
                           }});
    front_->Start();
  }
  std::unique_ptr<BrainLink> MakeLink() override {
    return std::make_unique<NriLink>(*this, hints_);
  }
  void SetActive(BrainLink* link) override {
    // All links of this door are of its own making.
    auto* const active = static_cast<NriLink*>(link);
    pipeline_.SetPolicyStage(active == nullptr ? nullptr : &active->stage());
  }
  // Answers are a matter of microseconds, and the runtime asks nothing of a plugin that is gone.
  void Drain(std::function<void()> done) override { context_.loop.Post(std::move(done)); }
  void Stop() override { front_.reset(); }

  void Add(NriLink& link) { connected_.insert(&link); }
  void Remove(NriLink& link) { connected_.erase(&link); }
  // nullptr after the end.
  nri::PluginFront* front() { return front_ ? &*front_ : nullptr; }
  EventLoop& loop() { return context_.loop; }

 private:
  template <typename Event>
  void Tell(const Event& event) {
    // What a link does then may make or end another one.
    const std::set<NriLink*> links = connected_;
    for (NriLink* const link : links)
      if (connected_.contains(link)) event(link->events());
  }

  const DoorContext context_;
  const nri::PluginFront::Options options_;
  HintFinder hints_;  // of all brains, so that its threads are few
  LoopClock clock_;
  Pipeline pipeline_;
  std::set<NriLink*> connected_;  // those that are told of the runtime
  std::optional<nri::PluginFront> front_;
};

NriLink::~NriLink() {
  door_.Remove(*this);
}

Status NriLink::EnsureConnected() {
  return door_.front() == nullptr ? Unavailable("this daemon ends")
                                  : door_.front()->EnsureConnected();
}

void NriLink::Connect(RuntimeEvents events) {
  events_ = std::move(events);
  door_.Add(*this);
  if (!EnsureConnected().ok()) return;
  door_.loop().Post([this, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired() && EnsureConnected().ok()) events_.connected();
  });
}

void NriLink::UpdateContainer(const ContainerId& id, const ResourceValues& values,
                              std::function<void(Status)> done) {
  if (door_.front() == nullptr) return;
  door_.front()->UpdateContainer(id, values, WhileHere(std::move(done)));
}

void NriLink::ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) {
  if (door_.front() == nullptr) return;
  door_.front()->ListAll(std::move(known), WhileHere(std::move(done)));
}

}  // namespace

FrontDoorFactory NriDoorFactory(nri::PluginFront::Options options) {
  std::string description = fmt::format("NRI plugin {}-{} at {}", options.connection.index,
                                        options.connection.name, options.connection.socket);
  return {.create = [options = std::move(options)](
                        const DoorContext& context) -> StatusOr<std::unique_ptr<FrontDoor>> {
            return std::make_unique<NriDoor>(context, options);
          },
          .description = std::move(description),
          .counted_methods = {}};
}

}  // namespace resmgr
