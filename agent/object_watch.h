// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/http.h"
#include "agent/pacing.h"
#include "pkg/base/status.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };

  Type type = Type::kBookmark;
  Json object{};  // for kError a Status object
};

// Reads the body of a watch: one JSON object per line, {"type": ..., "object": {...}}, in pieces of
// any size (Kubernetes API, "Efficient detection of changes"). Holds at most one line.
// Thread-compatible.
class WatchDecoder {
 public:
  // The largest object that etcd holds is 1.5 MiB; JSON escapes make more of it.
  static constexpr size_t kMaxLine = 8 << 20;

  // Returning false ends the reading.
  using Sink = std::function<bool(WatchEvent event)>;

  explicit WatchDecoder(size_t max_line = kMaxLine) : max_line_(max_line) {}

  // Calls the sink for every line that has become complete. Unknown types are left out: a newer
  // server may have more. kInvalidArgument for a line that is too long or not an event; nothing
  // more can be read then.
  Status Feed(std::string_view bytes, const Sink& sink);

 private:
  size_t max_line_;
  std::string line_;
};

// The timing of repeated requests to the API server.
struct RetryOptions {
  // Waits after an answer that refuses the request.
  Backoff::Options backoff{};
  // Waits while the server does not answer.
  RetryGate::Options outage{};
  // The first request of each watch is sent at a random time within this period.
  std::chrono::milliseconds start_spread{0};
  // The server is asked to end a watch after a random time between this and twice this.
  std::chrono::seconds watch_timeout{300};
  uint64_t seed = 0;
};

// Follows one object by its name: lists it, then watches from that version on, and repeats both as
// often as necessary. Needs the verbs get, list and watch for that name alone, since each request
// has the field selector metadata.name. Thread-compatible.
//
//   wait ──▶ list ──▶ watch ──▶ stream ends or breaks ──▶ wait ──▶ watch from the last version seen
//             ▲                 410 Gone, or another refusal for the third time ──▶ wait ──▶ list
//             └───────────────────────────────────────────────────────────────────────────────┘
//
// A server that does not answer causes no list: a server that comes back should be spared its cost.
// Lists are served from the server's cache, which may lag behind: the first list takes what it has
// (`resourceVersion=0`), and the watch from there on catches up. After 410 the cache must not be
// older than the last version seen, so that no node gets a former state back. A server that
// cannot do so any more refuses this list, too, and after the third refusal counts as a new one.
class ObjectWatch {
 public:
  struct Target {
    std::string collection{};  // path, "/api/v1/nodes"
    std::string name{};
    // Asks for `metadata` alone if the server supports that; otherwise it sends whole objects.
    bool metadata_only = false;
  };
  // Called with the object as it is now, nullptr if absent. The first call is the first complete
  // view. Calls may repeat a known state. The receiver may not destroy this object in the call.
  using Changed = std::function<void(const Json* object)>;

  // `gate` is shared by all watches of one server, and outlives them.
  ObjectWatch(HttpTransport& transport, Clock& timers, RetryGate& gate, Target target,
              const RetryOptions& options, Changed changed);

  void Start();

  // The last error; OK since the server has shown the object's state.
  const Status& trouble() const { return trouble_; }

 private:
  void List();
  void Listed(const StatusOr<HttpReply>& reply);
  Status ReadList(const HttpReply& reply);
  void Watch();
  void Data(std::string_view piece);
  bool Event(const WatchEvent& event);
  void Ended(const StatusOr<HttpReply>& reply);
  // Handles an error answer, in the body of a watch or instead of it, which decides the next
  // request. Returns how long to wait.
  std::chrono::milliseconds Refused(int code);
  // `at_least` is the wait that the server asked for; the random `wait` is added to it.
  void Retry(const Status& why, std::chrono::milliseconds wait,
             std::chrono::milliseconds at_least = {});
  void Ask();
  void Succeeded();
  void LogTrouble(const Status& why);
  std::string Selector() const;
  std::string Accepted(std::string_view kind) const;
  bool IsTarget(const Json& object) const;

  HttpTransport& transport_;
  Clock& timers_;
  RetryGate& gate_;
  Target target_;
  const RetryOptions options_;
  const Changed changed_;
  Backoff backoff_;
  Jitter jitter_;
  RateLimit log_limit_;
  StatusCode logged_ = StatusCode::kOk;

  std::string version_;  // resourceVersion seen last; "": list first
  bool gone_ = false;    // the server cannot watch from version_: list, from it on
  int refusals_ = 0;     // since the last success
  Status trouble_;
  WatchDecoder decoder_;
  Clock::SteadyTime watch_began_{};
  std::unique_ptr<HttpTransport::Call> call_;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr::agent
