// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/event_series.h"
#include "agent/http.h"
#include "agent/pacing.h"
#include "agent/selection.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// The annotations of the node that show the state of its configuration. Absent if there is nothing
// to say.
inline constexpr std::string_view kStatusAnnotation =
    "cri-resource-manager.intel.com/config-status";  // accepted, rejected, pending or none
inline constexpr std::string_view kMapAnnotation = "cri-resource-manager.intel.com/config-map";
inline constexpr std::string_view kVersionAnnotation =
    "cri-resource-manager.intel.com/config-version";  // resourceVersion of the map
inline constexpr std::string_view kErrorAnnotation = "cri-resource-manager.intel.com/config-error";
inline constexpr std::array kStatusAnnotations = {kStatusAnnotation, kMapAnnotation,
                                                  kVersionAnnotation, kErrorAnnotation};

// Set by cri-resmgr: the containers that lost exclusive CPUs under the present configuration.
inline constexpr std::string_view kPolicyLossesAnnotation =
    "cri-resource-manager.intel.com/policy-losses";

struct ReportOptions {
  // Period in which thousands of nodes report, at random times, about a ConfigMap that they share:
  // 10,000 reports are 133 a second. Twice as long for a rejection, which also makes an Event.
  std::chrono::milliseconds spread{75'000};
  // Changes within this time are one report.
  std::chrono::milliseconds debounce{200};
  TokenBucket::Options limit{};
  // Waits while the API server does not take the report.
  Backoff::Options backoff{.limit = std::chrono::milliseconds(200'000)};
};

// Keeps the node's annotations equal to the last verdict, and makes an Event of the node for a
// rejection (ConfigRejected) and for containers that lost exclusive CPUs (ExclusiveCpusLost).
// Values that the node shows already are not written again, so the restart of an agent or of the
// API server causes no report. Otherwise a report is
// - one PATCH, and at most one Event, of the verdict at the time of sending;
// - sent at a random time within `spread` if it is about a map that other nodes share, else soon;
// - never more often than `limit`.
// Thread-compatible.
class StatusReporter {
 public:
  // `own_map` is the name of the one ConfigMap that is for this node alone.
  StatusReporter(HttpTransport& transport, Clock& timers, std::string node, std::string own_map,
                 const ReportOptions& options, uint64_t seed,
                 const EventSeries::WallClock& now = std::chrono::system_clock::now);

  void Report(const Verdict& verdict);
  // Takes the node's object as it is now; called before the first verdict, and at each change.
  void NodeSeen(const Json& node);
  // Adds other annotations of the node, null for one to be removed, that follow from a map that
  // nodes share. They become part of the next report, within `spread` at the latest. Returns false
  // and takes none if too many wait already. If the API server refuses a report with them, they are
  // dropped and the report is sent without them; if it forbids them (403), as one that has just
  // started forbids everything, they are first tried again for a minute.
  bool TakeAlong(const Json& annotations);
  // `written` gets the taken annotations each time that they are sent to the API server.
  void TellOthersWritten(std::function<void(const Json& annotations)> written) {
    others_written_ = std::move(written);
  }
  // Drops these keys from the taken annotations, since the caller writes them by other means. False
  // if a request with some of these keys has no reply yet: the server may carry it out after a
  // request that is sent now.
  bool LeaveOut(const Json& annotations);
  // The taken annotations that are not written yet.
  const Json& taken_along() const { return others_; }
  // Whether the next report waits for its random time within `spread`.
  bool WaitsWithSharedNews() const { return timer_ != nullptr && spread_; }

 private:
  // Values of kStatusAnnotations; an empty one is absent.
  using Texts = std::array<std::string, kStatusAnnotations.size()>;

  static Texts TextsOf(const Verdict& verdict, const std::string& losses);
  bool IsSharedNews() const;
  void Plan();
  void Fire();
  void Write();
  void Written(const StatusOr<HttpReply>& reply);
  bool Withhold(const Status& refusal);
  void WriteEvents();
  void TellRejection();
  void TellLosses();

  const std::string node_;
  const std::string own_map_;
  const ReportOptions options_;
  Clock& timers_;
  Jitter jitter_;
  TokenBucket limit_;
  Verdict verdict_;                      // the last one set
  Texts wanted_{};                       // the texts of verdict_
  Texts shown_{};                        // shown by the node, as far as known
  std::optional<Texts> sent_;            // the report under way
  bool seen_ = false;                    // the node was seen since sent_ was sent
  std::string uid_;                      // the node object's
  std::string sent_uid_;                 // the UID when sent_ was sent
  Json others_ = Json::object();         // from TakeAlong, until they are written
  Json others_sent_ = Json::object();    // the part of others_ that is under way
  Json others_before_ = Json::object();  // those of requests that were replaced before a reply
  std::function<void(const Json& annotations)> others_written_ = [](const Json&) {};
  ForbiddenPauses withheld_for_;            // after answers that forbid others_
  EventLoop::HandlePtr withheld_;           // others_ are not sent until it fires
  std::string losses_;                      // the losses that the node shows
  std::optional<std::string> told_losses_;  // by an Event, or before the agent's start
  int rejections_ = 0;                      // rejections since the last Event
  Clock::SteadyTime due_{};
  bool spread_ = false;         // due_ is some time within the spread
  EventLoop::HandlePtr timer_;  // the next report
  RateLimit refusals_;          // limits log lines about refusals
  Delivery annotations_;
  EventSeries rejected_;
  EventSeries lost_;
};

}  // namespace resmgr::agent
