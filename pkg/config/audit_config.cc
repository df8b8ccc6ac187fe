// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/audit_config.h"

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/parse.h"
#include "pkg/kube/duration.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kNoAudits = "disabled";
// Not shorter, since an audit asks the runtime for the status of each container.
constexpr milliseconds kShortestInterval = std::chrono::seconds(1);
constexpr milliseconds kLongestInterval = std::chrono::hours(24);

StatusOr<milliseconds> IntervalOf(std::string_view text) {
  if (text == kNoAudits) return milliseconds(0);
  const std::optional<milliseconds> interval = ParseDuration(text, kLongestInterval);
  if (!interval || *interval < kShortestInterval) {
    return InvalidArgument("\"{}\" is not a time from {} to {}, as in 1m30s, and not \"{}\"",
                           Printable(text, 64), DurationText(kShortestInterval),
                           DurationText(kLongestInterval), kNoAudits);
  }
  return *interval;
}

}  // namespace

void ReadAudit(MapReader& audit, AuditConfig& config) {
  audit.Parse("Interval", [&config](std::string_view text, const std::string&) -> Status {
    RESMGR_ASSIGN_OR_RETURN(config.interval, IntervalOf(text));
    return OkStatus();
  });
  audit.Bool("Repair", config.repair);
}

ConfigNode AuditNode(const AuditConfig& config) {
  const bool none = config.interval.count() == 0;
  return MapNode(
      {{"Interval", 1, ScalarNode(none ? std::string(kNoAudits) : DurationText(config.interval))},
       {"Repair", 1, ScalarNode(config.repair ? "true" : "false")}});
}

}  // namespace resmgr
