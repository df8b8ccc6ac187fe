// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/base/units.h"

namespace resmgr {

// Parses Kubernetes quantities (apimachinery/pkg/api/resource), the form of resource requests: a
// decimal number ("2", ".5", "1.25") and at most one of
//   n u m k M G T P E        powers of 1000, "m" being thousandths
//   Ki Mi Gi Ti Pi Ei        powers of 1024
//   e3, E-2, ...             a power of 10
// Suffixes are case-sensitive: "M" is a million, "m" a thousandth. The value is computed exactly,
// and a rest below the result's unit rounds up, as in Kubernetes. kInvalidArgument for any other
// text, negative numbers, more than 19 significant digits, and values beyond 64 bits.
StatusOr<MilliCpu> ParseMilliCpu(std::string_view quantity);
StatusOr<Bytes> ParseBytes(std::string_view quantity);
// As ParseBytes, for configurations: the units of parts of a byte, and less than one, are
// kInvalidArgument, too. "64m" is mostly meant as 64M, and would be one byte.
StatusOr<Bytes> ParseConfiguredBytes(std::string_view quantity);

// The same value in Kubernetes' canonical form: no fraction, the largest possible suffix, and the
// form of the input kept (decimal, binary or with an exponent): "1.50" is 1500m, "1024Mi" is 1Gi.
// kInvalidArgument as above.
StatusOr<std::string> CanonicalQuantity(std::string_view quantity);

// The shortest quantity of this value: "2" for 2000, "750m" for 750.
std::string FormatMilliCpu(MilliCpu value);

// Parses a time in Kubernetes' form (metav1.Duration: "90s", "1m30s", "1.5s", "500ms", "0"; the
// form of Go's durations, in h, m, s and ms). A fraction of a millisecond is cut off. nullopt for
// anything else and for more than `longest`.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text,
                                                       std::chrono::milliseconds longest);

// Formats a time that is not negative with the largest unit of which it is a multiple: "90s", "2m".
std::string DurationText(std::chrono::milliseconds duration);

}  // namespace resmgr
