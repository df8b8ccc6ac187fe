// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace resmgr {

// Parses a time in Kubernetes' form (metav1.Duration: "90s", "1m30s", "1h", "500ms"; the form of
// Go's durations, in whole numbers of h, m, s and ms); nullopt for anything else and for more than
// `longest`.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text,
                                                       std::chrono::milliseconds longest);

// Formats a time that is not negative with the largest unit of which it is a multiple: "90s", "2m".
std::string DurationText(std::chrono::milliseconds duration);

}  // namespace resmgr
