// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>

#include "agent/event_series.h"
#include "agent/http.h"
#include "agent/pacing.h"
#include "pkg/api/node_reports.pb.h"
#include "pkg/base/status.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// Something that happened to a pod of this node, or to the node itself: then namespace, name and
// UID are empty.
using cri_resmgr::v1::PodEvent;

// Whether the API server would take the event; kInvalidArgument names the bad field. Names and
// namespaces of pods are DNS names, a UID has letters, digits and dashes, a reason is a word in
// CamelCase, a message has 1 to 1024 bytes of text without control characters.
Status CheckPodEvent(const PodEvent& event);

// Writes Events of pods, and of the node, which counts as a pod, by client-go's rules: a repeated
// event changes count and time of the existing Event; if one pod and reason has more than ten
// different messages within ten minutes, further ones become one Event ("combined from similar
// events"); and one pod gets 25 at once, then one in five minutes. Beyond that, requests are
// spread: each is made one to three spreads after the one before, or after the event. So a cluster
// of n nodes makes at most n / (2 * spread) requests a second, and Events about containers that a
// new map has moved wait for at least one spread, in which all nodes report about the map. An Event
// that is forbidden is first tried again for a minute (ForbiddenPauses), while others go on. All
// memory is bounded. Thread-compatible.
class PodEvents {
 public:
  using WallClock = std::function<std::chrono::system_clock::time_point()>;

  struct Options {
    std::chrono::milliseconds spread{75'000};
    size_t most_waiting = 100;  // Events to be written
    size_t most_known = 512;    // Events that may happen again
    size_t most_pods = 256;     // pods whose events are counted
    TokenBucket::Options per_pod{.burst = 25, .period = std::chrono::minutes(5)};
    // Different messages, before they are combined.
    size_t similar = 10;
    std::chrono::minutes similar_within{10};
    Backoff::Options backoff{.limit = std::chrono::milliseconds(200'000)};
  };

  PodEvents(HttpTransport& transport, Clock& timers, std::string node, Options options,
            uint64_t seed, WallClock now = std::chrono::system_clock::now);

  // False: there is no room, or the pod has had too many Events. The event must pass CheckPodEvent.
  bool Add(const PodEvent& event);

 private:
  // One Event that exists at the API server or is to be created.
  struct Known {
    EventObject object{};
    bool exists = false;   // as far as known
    bool waiting = false;  // in waiting_
    int64_t unwritten = 0;
    ForbiddenPauses forbidden{};
    EventLoop::HandlePtr again{};             // it was forbidden, and waits again when this fires
    std::list<std::string>::iterator used{};  // in used_
  };
  struct Similar {
    std::set<size_t> messages{};  // hashes
    Clock::SteadyTime last{};
  };
  struct PodRecord {
    TokenBucket bucket;
    std::map<std::string, Similar> similar{};  // by type and reason
    Clock::SteadyTime last{};
  };

  PodRecord& RecordOf(const PodEvent& event);
  bool IsOneOfMany(PodRecord& record, const PodEvent& event);
  Known& KnownAs(const std::string& key, const PodEvent& event);
  void ForgetSome();
  void Wait(const std::string& key, Known& known);
  void Plan();
  void SendNext();
  void Sent(const std::string& key, bool updated, const StatusOr<HttpReply>& reply);
  void Refused(const std::string& key, Known& known, const HttpReply& reply);

  const std::string node_;
  const Options options_;
  Clock& timers_;
  const WallClock now_;
  Jitter jitter_;
  std::map<std::string, PodRecord> pods_;  // by namespace, name and UID
  std::map<std::string, Known> known_;     // by all fields that make two Events equal
  std::list<std::string> used_;            // keys of known_, the last used one at the end
  std::list<std::string> waiting_;         // keys of known_
  std::string under_way_;                  // a key of known_
  EventObject::Time last_name_{};
  EventLoop::HandlePtr timer_;  // the next request
  bool refusal_told_ = false;
  Delivery delivery_;
};

}  // namespace resmgr::agent
