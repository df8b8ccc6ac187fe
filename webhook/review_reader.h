// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

// Reads an AdmissionReview and keeps only the members that this webhook needs: those that identify
// the question, and for the object and the stored object the annotations and each container's name
// and resources. A review of 4 MiB can hold millions of other values, which as a tree would take a
// hundred times its size.
//
// Kept members have the values and types of the text; of a repeated name the last one counts.
// Values that are nested deeper than Kubernetes' own types are left out.
//
// kInvalidArgument: the text is not JSON, or the kept members take more than kMaxKeptBytes; a pod
// of that size exceeds other limits of Kubernetes. A pure function, thread-safe.
StatusOr<nlohmann::json> ReadReview(std::string_view text);

// An estimate of memory, not of text. etcd stores objects up to 1.5 MiB.
inline constexpr size_t kMaxKeptBytes = size_t{24} << 20;

}  // namespace resmgr::webhook
