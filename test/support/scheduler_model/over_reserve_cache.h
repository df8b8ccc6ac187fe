// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/scheduler_model/pod_view.h"
#include "test/support/scheduler_model/topology_match.h"
#include "test/support/scheduler_model/topology_view.h"

namespace resmgr::test {

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed };

// Namespace and name.
using PodKey = std::pair<std::string, std::string>;

// The fingerprint of pods, v001 (k8stopologyawareschedwg), in any order. Pure.
std::string SchedulerFingerprint(const std::vector<PodKey>& pods);

// A model of the cache "over-reserve" of the plugin NodeResourceTopologyMatch, for one node, made
// from a description of its behaviour and not from the code that publishes the objects. Its
// arguments are the defaults: it knows pods by an informer of its own, any foreign pod makes the
// node's data stale, and the object says which pods are counted. Thread-compatible.
class OverReserveCache {
 public:
  // `object` is the node's NodeResourceTopology when the scheduler starts, without pods on the
  // node.
  OverReserveCache(nlohmann::json object, ResourceList allocatable);

  // The scheduler's informers tell of the node's object, and of a pod that is bound to the node.
  void ObjectSeen(nlohmann::json object) { seen_ = std::move(object); }
  void PodSeen(const PodKey& key, const PodView& pod, PodPhase phase);
  void PodGone(const PodKey& key) { pods_.erase(key); }

  // A pod of this scheduler: what the plugin says of the node. The node is dirty where no zone has
  // room for the pod.
  FilterAnswer Filter(const PodView& pod);
  // The pod is to be bound to the node: its request is subtracted from each zone until the next
  // object is taken.
  void Reserve(const PodKey& key, const PodView& pod);

  // Once in cacheResyncPeriodSeconds. A dirty node, and one with foreign pods, gets the object that
  // was seen last, without the reservations, where its fingerprint is that of the pods.
  void Resync();

  // The fingerprint of the pods that count for the scheduler, by the method of the object that was
  // seen last.
  std::string Fingerprint() const;
  // The fingerprint that this object has; "" where it has none.
  std::string FingerprintOfObject() const;

  // No foreign pod came since the object that is used.
  bool fresh() const { return !foreign_; }
  bool dirty() const { return dirty_; }
  // The object that is used, after the reservations.
  TopologyView Topology() const;

 private:
  struct Pod {
    PodView view{};
    PodPhase phase = PodPhase::kPending;
  };

  bool Counts(const Pod& pod, bool exclusive_only) const;

  const ResourceList allocatable_;
  nlohmann::json taken_;
  nlohmann::json seen_;
  std::map<PodKey, Pod> pods_;
  std::map<PodKey, ResourceList> reserved_;
  std::map<PodKey, bool> own_;  // pods of this scheduler, ever
  bool dirty_ = false;
  bool foreign_ = false;
};

}  // namespace resmgr::test
