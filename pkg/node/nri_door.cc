// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/nri_door.h"

#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <sys/stat.h>

#include "pkg/cri/runtime_connection.h"
#include "pkg/log/log.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

class NriDoor;

// A brain's link. After its end, calls of the brain get no answer any more.
class NriLink final : public BrainLink, private RuntimeClient {
 public:
  explicit NriLink(NriDoor& door) : door_(door) {}
  ~NriLink() override;

  RuntimeClient& runtime() override { return *this; }
  void Connect(RuntimeEvents events) override;
  Status EnsureConnected() override;
  void Retire() override {}

  const RuntimeEvents& events() const { return events_; }

 private:
  void UpdateContainer(const ContainerId& id, const ResourceValues& values,
                       std::function<void(Status)> done) override;
  void UpdateContainers(std::span<const Update> updates, UpdatesDone done) override;
  std::shared_ptr<const void> UpdatesFollow() override;
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;
  bool ListsTellNews() const override { return false; }

  NriDoor& door_;
  RuntimeEvents events_;
  Lifetime lifetime_;
};

class NriDoor final : public FrontDoor {
 public:
  // `claim` keeps other daemons from the runtime while the door exists.
  NriDoor(const DoorContext& context, nri::PluginFront::Options options,
          const std::string& runtime_socket, UniqueFd claim)
      : context_(context),
        options_(std::move(options)),
        claim_(std::move(claim)),
        cri_socket_(runtime_socket),
        cri_(context.loop, context.flushes, runtime_socket) {}

  void Start(dump::Dumper& dumper) override {
    nri::PluginFront::Options options = options_;
    options.connection.dumper = &dumper;
    options.by_cri = [this](const ContainerId& id, const ResourceValues& values,
                            std::function<void(Status)> done) {
      cri_.UpdateContainer(id, {.resources = AsResources(values)}, std::move(done));
    };
    front_.emplace(context_.loop, context_.pipeline, std::move(options),
                   nri::PluginFront::Events{
                       .connected = [this] { Tell([](const auto& to) { to.connected(); }); },
                       .disconnected = [this] { Tell([](const auto& to) { to.disconnected(); }); },
                       .happened =
                           [this](const ContainerEvent& event) {
                             Tell([&event](const auto& to) { to.happened(event); });
                           },
                       .doubtful =
                           [this](const ContainerId& id) {
                             Tell([&id](const auto& to) { to.doubtful(id); });
                           }});
    front_->Start();
  }
  // The first versions of NRI with these fields in an adjustment (pkg/api/nri.proto).
  CreationWays ways() const override {
    constexpr nri::ApiVersion kIoPriority{0, 10, 0};
    constexpr nri::ApiVersion kScheduler{0, 11, 0};
    constexpr nri::ApiVersion kMemoryPolicy{0, 12, 0};
    const nri::ApiVersion version = front_ ? front_->host_version() : nri::ApiVersion();
    return {.io_priority = version >= kIoPriority,
            .scheduler = version >= kScheduler,
            .memory_policy = version >= kMemoryPolicy,
            .rdt_groups = version >= nri::kNamesRdtGroups};
  }
  // The runtime has turned CDI devices into variables and devices before it asks plugins.
  bool ShowsClaimsByVariables() const override { return true; }
  std::unique_ptr<BrainLink> MakeLink() override { return std::make_unique<NriLink>(*this); }
  void SetActive(BrainLink*) override {}
  // Nothing to wait for: answers take microseconds, and the runtime sends nothing to a plugin that
  // is gone.
  void Drain(std::function<void()> done) override { context_.loop.Post(std::move(done)); }
  void Stop() override { front_.reset(); }
  // Only tests whether the socket takes a connection; the one for CRI calls is made when needed.
  std::optional<OtherSocket> other_socket() const override {
    return OtherSocket{.path = cri_socket_,
                       .used = front_ && front_->asks_cri(),
                       .reachable = ConnectUnix(cri_socket_).status()};
  }

  void Add(NriLink& link) { connected_.insert(&link); }
  void Remove(NriLink& link) { connected_.erase(&link); }
  // nullptr before Start and after Stop.
  nri::PluginFront* front() { return front_ ? &*front_ : nullptr; }
  EventLoop& loop() { return context_.loop; }

 private:
  template <typename Event>
  void Tell(const Event& event) {
    // A copy, since a callback may create or end a link.
    const std::set<NriLink*> links = connected_;
    for (NriLink* const link : links)
      if (connected_.contains(link)) event(link->events());
  }

  const DoorContext context_;
  const nri::PluginFront::Options options_;
  const UniqueFd claim_;
  const std::string cri_socket_;
  RuntimeConnection cri_;
  std::set<NriLink*> connected_;  // links that get the runtime's events
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
  door_.loop().Post(lifetime_.Guard([this] {
    if (EnsureConnected().ok()) events_.connected();
  }));
}

void NriLink::UpdateContainer(const ContainerId& id, const ResourceValues& values,
                              std::function<void(Status)> done) {
  if (door_.front() == nullptr) return;
  door_.front()->UpdateContainer(id, values, lifetime_.Guard(std::move(done)));
}

void NriLink::UpdateContainers(std::span<const Update> updates, UpdatesDone done) {
  if (door_.front() == nullptr) return;
  door_.front()->UpdateContainers(updates, lifetime_.Guard(std::move(done)));
}

std::shared_ptr<const void> NriLink::UpdatesFollow() {
  return door_.front() == nullptr ? nullptr : door_.front()->UpdatesFollow();
}

void NriLink::ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) {
  if (door_.front() == nullptr) return;
  door_.front()->ListAll(std::move(known), lifetime_.Guard(std::move(done)));
}

// Keeps a second daemon from the runtime: both would place the same containers in turn. The
// runtime's directory is the only place that all daemons know, whatever their flags are. If a
// daemon may not write there, it runs without a claim.
StatusOr<UniqueFd> ClaimRuntime(const std::string& socket) {
  constexpr mode_t kMode = 0700;  // the mode that a runtime uses for it
  if (const std::string parent = std::filesystem::path(socket).parent_path(); !parent.empty())
    ::mkdir(parent.c_str(), kMode);
  StatusOr<UniqueFd> claim = ClaimPath(socket + ".plugin");
  if (claim.ok() || claim.status().code() == StatusCode::kAlreadyExists) return claim;
  GetLogger("nri/plugin")
      .Warn("cannot detect another cri-resmgr at {}: {}", socket, Message(claim.status()));
  return UniqueFd();
}

}  // namespace

FrontDoorFactory NriDoorFactory(nri::PluginFront::Options options, std::string runtime_socket) {
  std::string description = fmt::format("NRI plugin {}-{} at {}", options.connection.index,
                                        options.connection.name, options.connection.socket);
  return {.create = [options = std::move(options), runtime_socket = std::move(runtime_socket)](
                        const DoorContext& context) -> StatusOr<std::unique_ptr<FrontDoor>> {
            RESMGR_ASSIGN_OR_RETURN(UniqueFd claim, ClaimRuntime(options.connection.socket));
            return std::make_unique<NriDoor>(context, options, runtime_socket, std::move(claim));
          },
          .description = std::move(description),
          .counted_methods = {}};
}

}  // namespace resmgr
