// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/policy/expression.h"

namespace resmgr {

// A demand to be placed near to other containers (weight above 0) or away from them (below 0).
struct Affinity {
  static constexpr int kMaxWeight = 1000;

  int weight = 1;                     // within [-kMaxWeight, kMaxWeight]
  std::optional<Expression> scope{};  // nullopt: containers of the same pod
  Expression match{};

  // Whether the affinity is about the other container.
  bool Meets(const Pod& own_pod, const Pod& pod, const Container& container) const;
};

// The affinities that a pod's annotations DOMAIN/affinity and DOMAIN/anti-affinity (both domains of
// pkg/kube/annotations.h, of which the first existing one counts) give its containers. Their YAML
// is a map from container names to either form:
//   a list of {scope, match, weight}; weight is 1 if not given, and the expressions are as
//     Expression reads them
//   a list of names of containers of the same pod, meant in both directions
// Weights beyond the limits are cut.
class PodAffinities {
 public:
  static constexpr size_t kMaxOfOne = 64;
  static constexpr size_t kMaxOfPod = 512;
  // Bytes of both annotations together. They are read where decisions are made, and Kubernetes
  // lets a pod have 256 KiB.
  static constexpr size_t kMaxText = size_t{16} * 1024;

  // InvalidArgument: a malformed annotation, or one beyond these bounds.
  static StatusOr<PodAffinities> Read(const StringMap& pod_annotations);

  // The affinities of one container. InvalidArgument for more than kMaxOfOne.
  StatusOr<std::span<const Affinity>> Of(std::string_view container) const;
  // The number for all containers together.
  size_t size() const { return size_; }

 private:
  Status Add(const StringMap::value_type& annotation, int sign);
  Status AddEntry(const ConfigNode::Entry& entry, int sign);
  Status Add(const std::string& container, Affinity affinity);

  std::map<std::string, std::vector<Affinity>, std::less<>> by_container_;
  size_t size_ = 0;
};

// PodAffinities that remembers: the pods of one workload carry the same texts, and reading YAML
// takes longer than all the rest of a decision. Thread-compatible.
class AffinityReader {
 public:
  // Limits of remembered texts (the last ones used), of a text's length and of its affinities: any
  // user who may create pods may write anything there.
  static constexpr size_t kRemembered = 64;
  static constexpr size_t kMaxRememberedSize = size_t{8} * 1024;
  static constexpr size_t kMaxRememberedAffinities = 256;

  // Reads the affinities of a pod with these annotations ahead of time.
  void Prepare(const StringMap& pod_annotations);
  // The affinities of one container, valid until the next call. Errors as from PodAffinities.
  StatusOr<std::span<const Affinity>> Read(const StringMap& pod_annotations,
                                           std::string_view container);

 private:
  struct Known {
    StatusOr<PodAffinities> affinities;
    uint64_t asked = 0;
  };
  // The affinities of the pod; nullptr without annotations about them.
  const StatusOr<PodAffinities>* Find(const StringMap& pod_annotations);

  std::unordered_map<std::string, Known> known_;
  uint64_t clock_ = 0;
  StatusOr<PodAffinities> not_remembered_;
};

}  // namespace resmgr
