// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace resmgr {

// A time as Kubernetes writes it (metav1.Duration: "90s", "1m30s", "1h", "500ms"; the form of Go's
// durations, in whole numbers of h, m, s and ms); nullopt for anything else and for more than
// `longest`.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text,
                                                       std::chrono::milliseconds longest);

// In that form, with the largest unit that it is a whole number of: "90s", "2m". Not below 0.
std::string DurationText(std::chrono::milliseconds duration);

}  // namespace resmgr
