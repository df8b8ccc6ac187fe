// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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
  Expression match{};

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

// ReadAffinities that remembers: the pods of one workload carry the same texts, and reading YAML
// takes longer than all the rest of a decision. Thread-compatible.
class AffinityReader {
 public:
  // How many containers' affinities are remembered, those asked for last, and how long a text may
  // be for that.
  static constexpr size_t kRemembered = 128;
  static constexpr size_t kMaxRememberedSize = size_t{8} * 1024;

  // Valid until the next call.
  const StatusOr<std::vector<Affinity>>& Read(const StringMap& pod_annotations,
                                              std::string_view container_name);

 private:
  struct Known {
    StatusOr<std::vector<Affinity>> affinities;
    uint64_t asked = 0;
  };
  std::unordered_map<std::string, Known> known_;
  uint64_t clock_ = 0;
  StatusOr<std::vector<Affinity>> not_remembered_;
};

}  // namespace resmgr
