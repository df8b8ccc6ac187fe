// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/backoff.h"
#include "agent/delivery.h"
#include "agent/event_series.h"
#include "agent/http.h"
#include "agent/jitter.h"
#include "agent/json_path.h"
#include "agent/token_bucket.h"
#include "agent/verdict.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// The annotations of the node that tell what became of its configuration. Absent where there is
// nothing to say.
inline constexpr std::string_view kStatusAnnotation =
    "cri-resource-manager.intel.com/config-status";  // accepted, rejected, pending or none
inline constexpr std::string_view kMapAnnotation = "cri-resource-manager.intel.com/config-map";
inline constexpr std::string_view kVersionAnnotation =
    "cri-resource-manager.intel.com/config-version";  // resourceVersion of the map
inline constexpr std::string_view kErrorAnnotation = "cri-resource-manager.intel.com/config-error";
inline constexpr std::array kStatusAnnotations = {kStatusAnnotation, kMapAnnotation,
                                                  kVersionAnnotation, kErrorAnnotation};

// Where cri-resmgr shows which containers lost exclusive CPUs by what is in force now.
inline constexpr std::string_view kPolicyLossesAnnotation =
    "cri-resource-manager.intel.com/policy-losses";

struct ReportOptions {
  // What thousands of nodes have to tell of a ConfigMap that they share comes at some time within
  // this one: 10,000 reports are 133 a second. Twice as long for a rejection, which is
  // an Event too.
  std::chrono::milliseconds spread{75'000};
  // Changes that follow each other so closely are one report.
  std::chrono::milliseconds debounce{200};
  TokenBucket::Options limit{};
  // While the API server does not take it.
  Backoff::Options backoff{.limit = std::chrono::milliseconds(200'000)};
};

// Keeps the node's annotations what the last verdict says, and makes an Event of the node for a
// rejection (ConfigRejected) and for containers that lost exclusive CPUs (ExclusiveCpusLost). What
// the node shows already is not written again, so the restart of an agent or of the API server
// causes no report. Otherwise it is
//   - one PATCH, and one Event at most, of the verdict that counts when its time has come;
//   - at some time within `spread` where the reason is a map that other nodes share, else soon;
//   - never more often than `limit`.
// Thread-compatible.
class StatusReporter {
 public:
  // `own_map` is the name of the one ConfigMap that is for this node alone.
  StatusReporter(HttpTransport& transport, Clock& timers, std::string node, std::string own_map,
                 const ReportOptions& options, uint64_t seed,
                 const EventSeries::WallClock& now = std::chrono::system_clock::now);

  void Report(const Verdict& verdict);
  // The node's object as it is now; to be told before the first verdict, and at each change.
  void NodeSeen(const Json& node);
  // Other annotations of the node, null for one to be removed, that follow from a map which nodes
  // share. They are part of the next report, within `spread` at the latest. False, and not taken,
  // where too many wait already. An API server that refuses a report with them gets it without
  // them, and they are dropped.
  bool TakeAlong(const Json& annotations);
  // `written` gets the annotations taken along each time that they are sent to the API server.
  void TellOthersWritten(std::function<void(const Json& annotations)> written) {
    others_written_ = std::move(written);
  }
  // These annotations are to be written by other means, so values of the same keys that were taken
  // along are out of date. False: the server has a request with some of these keys, and may carry
  // it out after a request that is sent now.
  bool LeaveOut(const Json& annotations);
  // Those that are not written yet.
  const Json& taken_along() const { return others_; }
  // Whether the next report waits for its time within `spread`.
  bool WaitsWithSharedNews() const { return timer_ != nullptr && spread_; }

 private:
  // Values of kStatusAnnotations; empty: absent.
  using Texts = std::array<std::string, kStatusAnnotations.size()>;

  static Texts TextsOf(const Verdict& verdict, const std::string& losses);
  bool IsSharedNews() const;
  void Plan();
  void Fire();
  void Write();
  void Written(const StatusOr<HttpReply>& reply);
  void WriteEvents();
  void TellRejection();
  void TellLosses();

  const std::string node_;
  const std::string own_map_;
  const ReportOptions options_;
  Clock& timers_;
  Jitter jitter_;
  TokenBucket limit_;
  Verdict verdict_;                      // the last one
  Texts wanted_{};                       // what it says
  Texts shown_{};                        // on the node, as far as known
  std::optional<Texts> sent_;            // what is under way
  bool seen_ = false;                    // the node, since that was sent
  std::string uid_;                      // of the node's object
  std::string sent_uid_;                 // of the one that what is under way was meant for
  Json others_ = Json::object();         // of TakeAlong, until they are written
  Json others_sent_ = Json::object();    // those of them that are under way
  Json others_before_ = Json::object();  // those of requests that it replaced before a reply
  std::function<void(const Json& annotations)> others_written_ = [](const Json&) {};
  std::string losses_;                      // what the node shows of them
  std::optional<std::string> told_losses_;  // by an Event, or before the agent's start
  int rejections_ = 0;                      // since the last Event
  Clock::SteadyTime due_{};
  bool spread_ = false;         // due_ is some time within the spread
  EventLoop::HandlePtr timer_;  // the next report
  RateLimit refusals_;          // in the log
  Delivery annotations_;
  EventSeries rejected_;
  EventSeries lost_;
};

}  // namespace resmgr::agent
