// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "pkg/base/string_map.h"

namespace resmgr {

// CRI-O's annotations of pods (its pkg/annotations/v2), which count with any runtime.

inline constexpr std::string_view kCpuSharedAnnotation = "cpu-shared.crio.io";

// The annotation KEY/CONTAINER, else KEY, as it is written on the pod.
std::optional<StringMap::value_type> FindCrioAnnotation(const StringMap& annotations,
                                                        std::string_view key,
                                                        std::string_view container);

// Whether a container with CPUs of its own is to use the shared CPUs as well
// ("cpu-shared.crio.io/CONTAINER: enable").
bool WantsSharedCpus(const StringMap& annotations, std::string_view container);
// Behind the reason of its place.
inline constexpr std::string_view kAndSharedNote = ", and shared CPUs by annotation";

}  // namespace resmgr
