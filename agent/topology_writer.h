// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/event_series.h"
#include "agent/http.h"
#include "agent/pacing.h"
#include "pkg/api/node_reports.pb.h"
#include "pkg/base/status.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

using cri_resmgr::v1::ShowTopologyRequest;

// Keeps the node's NodeResourceTopology equal to the daemon's last view, by server-side apply
// without force. Content that the server has taken is written again only `refresh` later, in case
// somebody deleted the object: an apply that changes nothing costs the server no write. A write
// - has the view at the time of sending, and follows the one before after `gap` at least; while the
//   server does not answer, a new view replaces the one that is tried: an outage leaves no queue;
// - is sent within `soon` where pods came or went or other CPUs are available, which a scheduler
//   waits for; else, and for the first view of this agent, at a random time within `spread`.
// If the server has no such resource (404) or refuses the content or the access, or if another
// program writes the same object (409), this is logged once; a conflict also makes an Event of the
// node (TopologyConflict). The next try follows `pause` later, or after a refusal of content or
// access, which a server that has just started gives to all, after `first_pause`, then twice as
// long each time up to `pause`. Without a view, an object that this agent has applied is removed
// once. Thread-compatible.
class TopologyWriter {
 public:
  struct Options {
    std::chrono::milliseconds spread{75'000};
    std::chrono::milliseconds soon{600};
    std::chrono::milliseconds gap{1000};
    std::chrono::milliseconds first_pause{5000};
    std::chrono::milliseconds pause{std::chrono::minutes(10)};
    std::chrono::milliseconds refresh{std::chrono::minutes(75)};  // and a fifth of it at most
    Backoff::Options backoff{.limit = std::chrono::milliseconds(200'000)};
  };

  TopologyWriter(HttpTransport& transport, Clock& timers, std::string node, const Options& options,
                 uint64_t seed, EventSeries::WallClock now = std::chrono::system_clock::now);

  // nullopt: the object is removed. kInvalidArgument as from CheckTopology: the former view stays
  // in force.
  Status Show(std::optional<ShowTopologyRequest> view);
  // Takes the node's object as it is now. Nothing is written before the first one.
  void NodeSeen(const Json& node);

 private:
  // The server's object, as far as it is known.
  enum class Known { kNothing, kWritten, kAbsent };

  bool UpToDate() const;
  bool IsUrgent() const;
  void Plan();
  void Write();
  void Written(const std::string& body, const Status& status);
  void LookForOwn();
  void Found(const StatusOr<HttpReply>& reply);
  void Removed(const Status& status);
  void Pause(const Status& why);
  std::string Body() const;

  const std::string node_;
  const Options options_;
  Clock& timers_;
  Jitter jitter_;
  std::string uid_;     // the node's; "": not seen yet
  bool shown_ = false;  // the daemon has given its first view
  std::optional<ShowTopologyRequest> view_;
  std::optional<ShowTopologyRequest> sent_;  // the view of the last write
  Known known_ = Known::kNothing;
  std::string body_;     // if kWritten
  bool paused_ = false;  // the server refused; timer_ ends this
  resmgr::Backoff pauses_;
  std::optional<StatusCode> told_;  // the refusal that was logged last
  std::optional<Clock::SteadyTime> last_write_;
  Clock::SteadyTime due_{};
  EventLoop::HandlePtr timer_;    // the next request
  EventLoop::HandlePtr refresh_;  // the content is to be written again
  Delivery delivery_;
  EventSeries conflicts_;
};

// The path of the node's NodeResourceTopology (topology.node.k8s.io/v1alpha2), which has its name.
std::string TopologyPath(std::string_view node);

// Checks that schedulers can read the view's object as intended: lists, names of resources and
// pods, no negative numbers, no more available than there is, a distance to each zone.
// kInvalidArgument names the bad value.
Status CheckTopology(const ShowTopologyRequest& view);

// The object of a view that was checked, for server-side apply. Its owner is the node of this UID,
// so that it is deleted with the node. Zones are "node-0", "node-1", ... without gaps, since the
// plugin of the scheduler indexes lists with these numbers; an attribute has the number of the NUMA
// node. The fingerprint covers the pods of the view, which all have exclusive resources.
Json TopologyObject(std::string_view node, std::string_view uid, const ShowTopologyRequest& view);

}  // namespace resmgr::agent
