// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>

#include "agent/backoff.h"
#include "agent/delivery.h"
#include "agent/event_object.h"
#include "agent/http.h"
#include "agent/jitter.h"
#include "agent/token_bucket.h"
#include "pkg/base/status.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// Something that happened to a pod of this node, so many times by now.
struct PodEvent {
  std::string pod_namespace{};
  std::string pod{};  // its name
  std::string uid{};
  bool warning = false;
  std::string reason{};
  std::string message{};
  int64_t count = 1;
  EventObject::Time last{};
};

// Whether the API server could take it: kInvalidArgument names what is wrong. Pods' names and
// namespaces are DNS names, a UID has letters, digits and dashes, a reason is a word in CamelCase,
// a message is 1 to 1024 bytes of text without control characters.
Status CheckPodEvent(const PodEvent& event);

// Writes Events of pods, as client-go does: what is the same again changes count and time of the
// Event that there is; of more than ten different messages about one pod and reason in ten minutes
// the further ones become one Event ("combined from similar events"); and one pod gets 25 at once,
// then one in five minutes. Beyond that, requests are spread: each is made one to three spreads
// after the one before, or after it happened. So a cluster of n nodes makes n / (2 * spread) a
// second whatever happens, and not while all of them report what became of a map that moved
// containers. All that is kept is bounded. Thread-compatible.
class PodEvents {
 public:
  using WallClock = std::function<std::chrono::system_clock::time_point()>;

  struct Options {
    std::chrono::milliseconds spread{75'000};
    size_t most_waiting = 100;  // Events to be written
    size_t most_known = 512;    // Events that may happen again
    size_t most_pods = 256;     // that are counted
    TokenBucket::Options per_pod{.burst = 25, .period = std::chrono::minutes(5)};
    // Of different messages, before they become one.
    size_t similar = 10;
    std::chrono::minutes similar_within{10};
    Backoff::Options backoff{.limit = std::chrono::milliseconds(200'000)};
  };

  PodEvents(HttpTransport& transport, Clock& timers, std::string node, Options options,
            uint64_t seed, WallClock now = std::chrono::system_clock::now);

  // False: there is no room for it, or its pod has had too many. What CheckPodEvent passes.
  bool Add(const PodEvent& event);

 private:
  // One Event at the API server, or to be.
  struct Known {
    EventObject object{};
    bool exists = false;   // as far as known
    bool waiting = false;  // in waiting_
    int64_t unwritten = 0;
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
  void Plan();
  void SendNext();
  void Sent(const std::string& key, bool updated, const StatusOr<HttpReply>& reply);
  void Refused(const Status& why);

  const std::string node_;
  const Options options_;
  Clock& timers_;
  const WallClock now_;
  Jitter jitter_;
  std::map<std::string, PodRecord> pods_;  // by namespace, name and UID
  std::map<std::string, Known> known_;     // by all that makes an Event the same
  std::list<std::string> used_;            // keys of known_, the last used one at the end
  std::list<std::string> waiting_;         // keys of known_
  std::string under_way_;                  // a key of known_
  EventObject::Time last_name_{};
  EventLoop::HandlePtr timer_;  // the next request
  bool refusal_told_ = false;
  Delivery delivery_;
};

}  // namespace resmgr::agent
