// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"
#include "pkg/kube/label_selector.h"
#include "pkg/model/container.h"
#include "pkg/model/problem.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

// What cri-resmgr-ctl shows of a node, as JSON with its members in a fixed order. No environment,
// annotation or label of a pod is part of it.
using OrderedJson = nlohmann::ordered_json;

// A fixed outside contract of `cri-resmgr-ctl containers -o json`:
//   {"id","pod","namespace","name","qos","state","cpus","mems","exclusive","shared","shares",
//    "quota","period","memoryLimit","pool","policy","reason"}
// Sets are kernel lists, "" where the container is not restricted; shares, quota (microseconds, -1
// is no limit), period and memory limit (bytes) are what should be in force, 0 where nothing is
// known. A container with huge pages or extended resources also has "otherResources", an object of
// amounts by their Kubernetes names (pkg/model/container_facts.h).
OrderedJson ContainerJson(const Pod& pod, const Container& container, std::string_view policy);

// Chooses the containers to show; by default all.
struct ContainerChoice {
  std::string namespace_name{};  // "": of any
  LabelSelector labels{};        // of their pods

  bool Includes(const Pod& pod) const;
};

// Whether `what` names it: "[NAMESPACE/]POD[/CONTAINER]", or the beginning of an id.
bool Names(const Pod& pod, const Container& container, std::string_view what);
// NotFound, for a choice by `what`.
Status NoSuchContainer(std::string_view what);

// Those of the choice, in the order of their creation.
OrderedJson ContainersJson(const Snapshot& snapshot, std::string_view policy,
                           const ContainerChoice& choice = {});

// {"name","parent","kind","cpus","exclusive","shared","mems","sharedRequest" (milli-CPU, by the
//  containers of this very pool), "free" (milli-CPU that can still be asked for of "shared"),
//  "memoryBytes","memoryUsed","containers":["namespace/pod/name"]}; where pods cost more than their
//  containers, the pool that this is debited from has "overhead": {"cpu" (milli-CPU),"memory"}
OrderedJson PoolsJson(const Policy& policy, const Snapshot& snapshot);

// The containers of the choice that `what` names; "" names all. Each as ContainerJson with
// "request" and "limit" (milli-CPU), "memoryRequest", "role" ("regular", "init", "sidecar", "" when
// not known), "otherResources", "podOverhead" and "podResources"
// ({"shares","quota","period","memoryLimit"}, what is known; the overhead of the configuration
// where the kubelet states none), "owners" (stage_json.h; what the policy decides), "coldStartMs"
// (how long after its start "mems" gets the rest; 0: not at all), "hints", "settled" (the runtime
// has done it), "candidates" (lines) and, where its last update failed, "notUpdated" (why, and what
// to do). NotFound when there is none.
StatusOr<OrderedJson> ExplainJson(const ResourceManager& manager, std::string_view what,
                                  const ContainerChoice& choice = {});

// What `status` tells of the containers and their CPUs:
//   {"pods","containers","unsettled" (containers for which the runtime has not done yet what it
//    should), "exclusive","shared","reserved" (kernel lists: CPUs that containers have for
//    themselves, that the others share, and that are kept for the system)}
OrderedJson HeldJson(const ResourceManager& manager);
// Problems: containers whose last update failed, the first few of them.
std::vector<Problem> FailingUpdates(const ResourceManager& manager);
// Problems: containers with fewer CPUs for themselves than they ask for, while these are offline.
std::vector<Problem> LackingCpus(const ResourceManager& manager, const CpuSet& offline);

// {"container","from":{"cpus","exclusive","mems"},"to":{"cpus","exclusive","mems","reason"}}
OrderedJson MovesJson(const std::vector<ResourceManager::Move>& moves);

}  // namespace resmgr
