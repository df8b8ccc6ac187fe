// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/usage_config.h"

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/parse.h"
#include "pkg/kube/duration.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestSample = std::chrono::seconds(1);
constexpr milliseconds kLongestSample = std::chrono::minutes(5);

}  // namespace

void ReadUsage(MapReader& usage, UsageConfig& config) {
  usage.Parse("Interval", [&config](std::string_view text, const std::string&) -> Status {
    const std::optional<milliseconds> interval = ParseDuration(text, kLongestSample);
    if (!interval || *interval < kShortestSample) {
      return InvalidArgument("\"{}\" is not a time from {} to {}, as in 10s", Printable(text, 64),
                             DurationText(kShortestSample), DurationText(kLongestSample));
    }
    config.interval = *interval;
    return OkStatus();
  });
  usage.Bool("PerContainerMetrics", config.per_container_metrics);
}

ConfigNode UsageNode(const UsageConfig& config) {
  return MapNode(
      {{"Interval", 1, ScalarNode(DurationText(config.interval))},
       {"PerContainerMetrics", 1, ScalarNode(config.per_container_metrics ? "true" : "false")}});
}

}  // namespace resmgr
