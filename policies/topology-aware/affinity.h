// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
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
#include "pkg/model/snapshot.h"
#include "pkg/policy/expression.h"

namespace resmgr {

// A wish to be placed near to other containers (weight above 0) or away from them (below 0).
struct Affinity {
  static constexpr int kMaxWeight = 1000;

  int weight = 1;                     // within [-kMaxWeight, kMaxWeight]
  std::optional<Expression> scope{};  // nullopt: containers of the same pod
  Expression match{};

  // Whether the affinity applies to the other container.
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
  // Limit of both annotations together, in bytes: they are read during decisions, and Kubernetes
  // allows 256 KiB.
  static constexpr size_t kMaxText = size_t{16} * 1024;

  // InvalidArgument: a malformed annotation, or one beyond these limits.
  static StatusOr<PodAffinities> Read(const StringMap& pod_annotations);

  // The affinities of one container. InvalidArgument for more than kMaxOfOne.
  StatusOr<std::span<const Affinity>> Of(std::string_view container) const;
  // The number of affinities of all containers together.
  size_t size() const { return size_; }

 private:
  Status Add(const StringMap::value_type& annotation, int sign);
  Status AddEntry(const ConfigNode::Entry& entry, int sign);
  Status Add(const std::string& container, Affinity affinity);

  std::map<std::string, std::vector<Affinity>, std::less<>> by_container_;
  size_t size_ = 0;
};

// PodAffinities with a cache: the pods of a workload have the same texts, and reading YAML takes
// longer than the rest of a decision. Thread-compatible.
class AffinityReader {
 public:
  // Limits of cached texts (the last ones used), of the length of a text and of its affinities,
  // since any user who may create pods may write anything there.
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

// Finds the containers that affinities apply to, without evaluating each expression for each
// container in each decision. There is a column for every key of the expressions: the distinct
// values that containers have for it, and the value of each container. An expression is evaluated
// once for each value, and there are far fewer namespaces and labels than containers: with
// affinities in each fifth pod a decision takes 52,500 instructions instead of 107,000 (callgrind,
// 500 containers on 512 CPUs).
//
// The index is empty before the first question, so nodes without affinities pay nothing. It uses
// the values that a container had when it was put in; its id, which may change later, is never a
// column. Thread-compatible.
class AffinityIndex {
 public:
  // Limit of columns: a further key replaces the one that was used longest ago.
  static constexpr size_t kMaxColumns = 32;

  // Forgets everything; the next question starts anew.
  void Clear();
  // The container is placed in this pool, for the first time or after another one. Does nothing
  // before the first question.
  void Put(const Pod& pod, const Container& container, int pool);
  // A container that was put in is in this pool now.
  void Move(ContainerKey key, int pool);
  // Does nothing for unknown containers, as Move.
  void Erase(ContainerKey key);

  // For each of `pools` pools, the sum of the weights of `affinities` for a container of `own_pod`,
  // over the containers in the pool that they apply to. `pool_of` returns the pool of a container
  // of the snapshot, or nullopt, and must agree with the pools that were put in.
  using PoolOf = std::function<std::optional<int>(ContainerKey)>;
  std::vector<int64_t> Weights(std::span<const Affinity> affinities, const Pod& own_pod,
                               size_t pools, const Snapshot& snapshot, const PoolOf& pool_of);
  // For each container that the affinities apply to, its weight.
  std::map<ContainerKey, int64_t> Meant(std::span<const Affinity> affinities, const Pod& own_pod,
                                        const Snapshot& snapshot, const PoolOf& pool_of);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  // The number of a value; kNone where there is none.
  using Number = uint32_t;
  static constexpr Number kNone = 0;
  struct Column {
    std::string key{};
    std::vector<std::string> values{""};  // by number; the first entry belongs to kNone
    std::vector<uint32_t> users{0};       // by number: how many containers have the value
    std::vector<Number> unused{};
    std::unordered_map<std::string, Number, Hash, std::equal_to<>> numbers{};
    std::vector<Number> of_slot{};
    uint64_t asked = 0;

    void Set(size_t slot, std::optional<std::string_view> value);
    void Unset(size_t slot);
  };
  // One container; its columns' entries have the same index.
  struct Slot {
    ContainerKey key{};
    int pool = kFree;
  };
  static constexpr int kFree = -1;
  using Marks = std::vector<uint8_t>;  // by slot: 1 or 0

  // Visits each slot that the affinities apply to, with its weight.
  template <typename Visit>
  void ForEachMeant(std::span<const Affinity> affinities, const Pod& own_pod,
                    const Snapshot& snapshot, const PoolOf& pool_of, const Visit& visit);
  void Build(const Snapshot& snapshot, const PoolOf& pool_of);
  Column& ColumnOf(std::string_view key, const Snapshot& snapshot);
  // Unmarks all containers for which the expression does not hold, or that are not of this pod.
  void Keep(const Expression& expression, const Snapshot& snapshot, Marks& marks);
  void KeepPod(const PodSandboxId& pod, const Snapshot& snapshot, Marks& marks);

  bool built_ = false;
  std::vector<Slot> slots_;
  std::vector<size_t> free_slots_;
  std::unordered_map<ContainerKey, size_t> slot_of_;
  std::vector<Column> columns_;
  uint64_t clock_ = 0;
  std::string scratch_;
};

}  // namespace resmgr
