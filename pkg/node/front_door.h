// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cri/runtimes_watch.h"
#include "pkg/dump/dumper.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/metrics/metrics.h"
#include "pkg/node/plugin_view.h"
#include "pkg/node/seen_container.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

struct Config;
class StateStore;

// How long calls in flight may take once a front door drains. systemd kills a daemon that takes
// longer than the unit's TimeoutStopSec, 30 s, for everything.
inline constexpr std::chrono::seconds kDrainDeadline{20};

// What a runtime tells on the connection of one brain. Each is set.
struct RuntimeEvents {
  std::function<void()> connected{};
  // Of several runtimes another one came, or came back.
  std::function<void()> joined{};
  // Of several runtimes the last one went.
  std::function<void()> disconnected{};
  std::function<void(const ContainerEvent&)> happened{};
  // A request may have made, changed or ended pods and containers in a way that is not known here.
  std::function<void()> changed{};
  // What the runtime took of updates of this container may not be in force.
  std::function<void(const ContainerId&)> doubtful{};
};

// What a front door does for one brain (a resource manager with its policy): it carries the brain's
// own requests to the runtime, and tells what the runtime tells. Loop's thread only.
class BrainLink {
 public:
  virtual ~BrainLink() = default;

  // For the resource manager's own requests.
  virtual RuntimeClient& runtime() = 0;
  // Connects to the runtime now or as soon as it appears, and again after each loss.
  virtual void Connect(RuntimeEvents events) = 0;
  // Does not wait for the next try. Unavailable tells what is wrong.
  virtual Status EnsureConnected() = 0;
  // This brain decides no requests any more: what still happens it learns from lists alone.
  virtual void Retire() = 0;
};

// Where requests about containers come in: the relay's CRI socket, an NRI runtime that connects to
// us, a Docker API. Made with its socket claimed and not served yet; serves from Start to Stop.
// Loop's thread only.
class FrontDoor {
 public:
  virtual ~FrontDoor() = default;

  // Before Start: what the door knows over restarts is kept there, until Stop.
  virtual void Remember(StateStore& /*state*/) {}
  // Requests come in from now on, and go through the pipeline's stages. The dumper, which
  // outlives the door's Stop, is shown the calls.
  virtual void Start(dump::Dumper& dumper) = 0;
  // For a new brain, which owns it. Must not be used after the end of the door.
  virtual std::unique_ptr<BrainLink> MakeLink() = 0;
  // The brain of this link decides about the requests that come from now on, as the pipeline tells
  // too; nullptr: none does.
  virtual void SetActive(BrainLink* link) = 0;
  // Refuses new requests, waits for those in flight for kDrainDeadline at most, then runs `done`,
  // once.
  virtual void Drain(std::function<void()> done) = 0;
  // For another daemon that is to serve in this one's place (hand_over.h): accepts no more clients,
  // waits for the requests in flight as Drain does, then runs `done`, once. Drain after that has
  // nothing to wait for. A door that serves no socket has nothing to do here.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the doors that have to wait keep it.
  virtual void Pause(std::function<void()> done) { done(); }
  // Serves again after Pause, whether or not `done` ran, with what is in InheritedSockets.
  virtual Status Resume() { return OkStatus(); }
  // Ends all requests at once; none comes any more.
  virtual void Stop() = 0;
  // What is in force of the configuration, at the start and after each change.
  virtual void Configure(const Config& /*config*/) {}
  // Those that it serves, in their order.
  virtual std::vector<PluginView> plugins() const { return {}; }
  // Tells of the CRI runtimes behind it, by asking each of them: within a second or so, once, and
  // not after Stop. Other doors have none.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the relay keeps it.
  virtual void DescribeRuntimes(std::function<void(std::vector<RuntimeView>)> done) { done({}); }
  // Another socket of the runtime than the one that requests come from.
  struct OtherSocket {
    std::string path{};
    bool used = false;
    Status reachable{};  // Unavailable: nothing listens there
  };
  virtual std::optional<OtherSocket> other_socket() const { return std::nullopt; }
  // The containers whose calls are shown to stages that remember them.
  virtual std::vector<SeenContainer> seen() const { return {}; }
};

// What every front door is made with; all outlive it.
struct DoorContext {
  EventLoop& loop;
  h2::FlushQueue& flushes;
  Pipeline& pipeline;          // what requests go through
  Metrics* metrics = nullptr;  // null: nothing is counted
};

// How the front door of a mode is made.
struct FrontDoorFactory {
  // AlreadyExists: another instance serves its socket.
  std::function<StatusOr<std::unique_ptr<FrontDoor>>(const DoorContext& context)> create{};
  // The sockets that it serves, by path.
  std::vector<std::string> sockets{};
  // For the log: "serving /run/x.sock, runtime /run/y.sock".
  std::string description{};
  // The module `hooks` of a configuration has an effect.
  bool asks_hook_servers = false;
  // The methods that metrics count by name, all others as one.
  std::vector<std::string> counted_methods{};
};

}  // namespace resmgr
