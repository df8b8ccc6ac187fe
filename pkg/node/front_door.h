// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_context.h"
#include "pkg/cri/runtimes_watch.h"
#include "pkg/dump/dumper.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/metrics/metrics.h"
#include "pkg/model/problem.h"
#include "pkg/node/door_views.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

struct Config;
class StateStore;

// Time limit of calls in flight when a front door drains. systemd kills a daemon whose whole end
// takes longer than the unit's TimeoutStopSec, 30 s.
inline constexpr std::chrono::seconds kDrainDeadline{20};

// Callbacks for a runtime's events on the connection of one brain. All are set.
struct RuntimeEvents {
  std::function<void()> connected{};
  // One of several runtimes has connected, for the first time or again.
  std::function<void()> joined{};
  // The connection to the last runtime was lost.
  std::function<void()> disconnected{};
  std::function<void(const ContainerEvent&)> happened{};
  // A request may have created, changed or ended pods and containers, with unknown effect.
  std::function<void()> changed{};
  // Updates of this container that the runtime accepted may not be in force.
  std::function<void(const ContainerId&)> doubtful{};
};

// A front door's part for one brain (a resource manager with its policy): sends the brain's own
// requests to the runtime, and reports the runtime's events. Loop's thread only.
class BrainLink {
 public:
  virtual ~BrainLink() = default;

  // Used for the resource manager's own requests.
  virtual RuntimeClient& runtime() = 0;
  // Connects to the runtime now or as soon as it appears, and again after each loss.
  virtual void Connect(RuntimeEvents events) = 0;
  // Tries to connect now if not connected. kUnavailable names the problem.
  virtual Status EnsureConnected() = 0;
  // Called when this brain decides about no further requests: from then on it learns of changes
  // only from lists.
  virtual void Retire() = 0;
};

// An entry for requests about containers: the relay's CRI socket, an NRI runtime to which the
// daemon is a plugin, a Docker API. Created with its socket claimed but not served; serves from
// Start to Stop. Loop's thread only.
class FrontDoor {
 public:
  virtual ~FrontDoor() = default;

  // Called before Start. The door keeps data for restarts in `state` until Stop.
  virtual void Remember(StateStore& /*state*/) {}
  // From now on requests arrive and go through the pipeline's stages. The dumper, which sees the
  // calls, must live until after Stop.
  virtual void Start(dump::Dumper& dumper) = 0;
  // Creates a link for a new brain, which owns the link. It must not be used after the door's end.
  virtual std::unique_ptr<BrainLink> MakeLink() = 0;
  // From now on the brain of this link decides about requests; the pipeline's stages change at the
  // same time. nullptr: no brain decides.
  virtual void SetActive(BrainLink* link) = 0;
  // Refuses new requests, waits at most kDrainDeadline for those in flight, then runs `done`, once.
  virtual void Drain(std::function<void()> done) = 0;
  // For another daemon that takes over (hand_over.h): accepts no more clients, waits for the
  // requests in flight as Drain does, then runs `done`, once. A Drain after that has nothing to
  // wait for. A door without a socket has nothing to do.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the doors that have to wait keep it.
  virtual void Pause(std::function<void()> done) { done(); }
  // Serves again after Pause, whether or not `done` ran, on the sockets in InheritedSockets.
  virtual Status Resume() { return OkStatus(); }
  // Ends all requests at once; no more arrive.
  virtual void Stop() = 0;
  // Gets the configuration in force, at the start and after each change.
  virtual void Configure(const Config& /*config*/) {}
  // The ways in which the door and its runtime apply classes to a container that is created.
  virtual CreationWays ways() const { return {}; }
  // Whether the door's requests show containers' claims only by environment variables
  // (PolicyStage).
  virtual bool ShowsClaimsByVariables() const { return false; }
  // The served plugins, in their order.
  virtual std::vector<PluginView> plugins() const { return {}; }
  // Problems that neither `plugins` nor a brain's link reports.
  virtual std::vector<Problem> problems() const { return {}; }
  // Describes the CRI runtimes behind the door, by asking each of them: calls `done` once, within
  // about a second, and not after Stop. Other doors have none.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the relay keeps it.
  virtual void DescribeRuntimes(std::function<void(std::vector<RuntimeView>)> done) { done({}); }
  // The same from the last answers, without asking and without runtimes that have not been asked
  // yet. Empty if there is only one runtime.
  virtual std::vector<RuntimeView> runtimes() const { return {}; }
  // The runtime's CRI socket, if requests come through another socket.
  struct OtherSocket {
    std::string path{};
    bool used = false;
    Status reachable{};  // kUnavailable: no process listens there
  };
  virtual std::optional<OtherSocket> other_socket() const { return std::nullopt; }
  // The containers known from passing calls, if stages remember them.
  virtual std::vector<SeenContainer> seen() const { return {}; }
};

// The environment of a new front door; all of it outlives the door.
struct DoorContext {
  EventLoop& loop;
  h2::FlushQueue& flushes;
  Pipeline& pipeline;          // the pipeline for requests
  Metrics* metrics = nullptr;  // null: no counting
};

// Creates the front door for a mode of the daemon.
struct FrontDoorFactory {
  // kAlreadyExists: another instance serves the door's socket.
  std::function<StatusOr<std::unique_ptr<FrontDoor>>(const DoorContext& context)> create{};
  // Paths of the sockets that the door serves.
  std::vector<std::string> sockets{};
  // For the log: "serving /run/x.sock, runtime /run/y.sock".
  std::string description{};
  // Whether the door asks hook servers, so that a configuration's module `hooks` has an effect.
  bool asks_hook_servers = false;
  // The methods with a count of their own in metrics; all others share one.
  std::vector<std::string> counted_methods{};
};

}  // namespace resmgr
