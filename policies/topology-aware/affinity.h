// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "policies/topology-aware/expression.h"

namespace resmgr {

// A wish to be placed near to other containers (weight above 0) or away from them (below 0).
struct Affinity {
  static constexpr int kMaxWeight = 1000;

  int weight = 1;                     // within [-kMaxWeight, kMaxWeight]
  std::optional<Expression> scope{};  // nullopt: containers of the same pod
  Expression match;

  // Whether the other container is one that is meant.
  bool Meets(const Pod& own_pod, const Pod& pod, const Container& container) const;
};

// The affinities that a pod's annotations DOMAIN/affinity and DOMAIN/anti-affinity (both domains
// of pkg/kube/annotations.h, the first one that is there) give one of its containers. Their YAML is
// a map from container names to either form:
//   a list of {scope, match, weight}; weight is 1 if not given, and the expressions are as
//     Expression reads them
//   a list of names of containers of the same pod, meant in both directions
// Weights beyond the limits are cut. InvalidArgument for what cannot be read, and for more than
// kMaxAffinities of one container.
inline constexpr size_t kMaxAffinities = 64;
StatusOr<std::vector<Affinity>> ReadAffinities(const StringMap& pod_annotations,
                                               std::string_view container_name);

}  // namespace resmgr
