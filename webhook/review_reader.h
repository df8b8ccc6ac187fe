// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"

namespace resmgr::webhook {

// Reads an AdmissionReview and keeps only what this webhook looks at: the members that name the
// question, and of the object and the stored object the annotations and each container's name and
// resources. A review of 4 MiB can hold millions of values that nothing needs; as a tree they would
// take a hundred times its size.
//
// The members that are kept have the values and types that the text gives them; where a name is
// repeated, the last one counts. What is nested deeper than Kubernetes' own types below them is
// left out.
//
// InvalidArgument: the text is not JSON, or what would be kept takes more than kMaxKeptBytes; a pod
// as large as that exceeds other limits of Kubernetes. A pure function, thread-safe.
StatusOr<nlohmann::json> ReadReview(std::string_view text);

// An estimate of memory, not of text. etcd stores objects up to 1.5 MiB.
inline constexpr size_t kMaxKeptBytes = size_t{24} << 20;

}  // namespace resmgr::webhook
