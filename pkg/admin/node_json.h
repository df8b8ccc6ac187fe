// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"
#include "pkg/kube/names.h"
#include "pkg/model/container.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/resource_manager.h"

namespace resmgr {

// The node's data for cri-resmgr-ctl, as JSON with its members in a fixed order. No environment,
// annotation or label of a pod is part of it.
using OrderedJson = nlohmann::ordered_json;

// A fixed outside contract of `cri-resmgr-ctl containers -o json`:
//   {"id","pod","namespace","name","qos","state","cpus","mems","exclusive","shared","shares",
//    "quota","period","memoryLimit","pool","policy","reason"}
// Sets are kernel lists, "" if the container is not restricted; shares, quota (microseconds, -1:
// unlimited), period and memory limit (bytes) are the values that should be in force, 0 if unknown.
// A container with huge pages or extended resources also has "otherResources", an object of amounts
// by their Kubernetes names (pkg/model/container_facts.h). Parts of claims that hold CPUs are
// listed beside containers, in the state "claim" and without id.
OrderedJson ContainerJson(const Pod& pod, const Container& container, std::string_view policy);

// The CPUs to which the container is bound: by the decision or else by its own request. Empty if it
// may run on any.
CpuSet BoundCpus(const Container& container);

// Chooses the containers to show; by default all.
struct ContainerChoice {
  // Chooses containers that may run on CPUs of a NUMA node, or have memory there.
  struct Node {
    int id = 0;
    CpuSet cpus{};
  };
  std::string namespace_name{};  // "": of any
  LabelSelector labels{};        // of their pods
  CpuSet cpus{};                 // they may run on one of these; empty: on any
  std::string pool{};            // "": of any
  std::optional<Node> node{};    // nullopt: any

  bool Includes(const Pod& pod) const;
  bool Includes(const Container& container) const;
};

// How a name has to match: as a whole, or by its beginning.
enum class NameMatch { kWhole, kBeginning };

// Whether `what` names "namespace/pod/container": "[NAMESPACE/]POD[/CONTAINER]".
bool NamesFull(std::string_view full, std::string_view what, NameMatch match = NameMatch::kWhole);
// Whether `what` names the container as in NamesFull, or is the beginning of its id or of its
// claim's uid.
bool Names(const Pod& pod, const Container& container, std::string_view what,
           NameMatch match = NameMatch::kWhole);
// NotFound for `what`, with the most similar of the known names "namespace/pod/container".
Status NoSuchContainer(std::string_view what, const std::vector<std::string>& known = {});

// The chosen containers, in the order of their creation.
OrderedJson ContainersJson(const Snapshot& snapshot, std::string_view policy,
                           const ContainerChoice& choice = {});

// {"name","parent","kind","cpus","exclusive","shared","mems","sharedRequest" (milli-CPU, by the
//  containers of this very pool), "free" (milli-CPU that can still be asked for of "shared"),
//  "memoryBytes","memoryUsed","containers":["namespace/pod/name"]}; where pods cost more than their
//  containers, the pool that this is debited from has "overhead": {"cpu" (milli-CPU),"memory"}
OrderedJson PoolsJson(const Policy& policy, const Snapshot& snapshot);

// The present use of each pool, for a container that was refused: PoolsJson's "name", "exclusive",
// "shared", "sharedRequest", "free", "memoryBytes" and "memoryUsed" of the first 64 pools that hold
// or have something.
OrderedJson HeldByPoolJson(const Policy& policy, const Snapshot& snapshot);

// The containers of the choice that `what` names; "" names all. Each as ContainerJson with
// "request" and "limit" (milli-CPU), "memoryRequest", "role" ("regular", "init", "sidecar", "" when
// not known), "otherResources", "podOverhead" and "podResources"
// ({"shares","quota","period","memoryLimit"}, what is known; the overhead of the configuration
// where the kubelet states none), "owners" (stage_json.h; what the policy decides), "coldStartMs"
// (the time from its start until "mems" gets further nodes; 0: never), "hints", "settled" (the
// runtime has done it), "candidates" (lines), "considered" (the places in these lines:
// {"name","free" (milli-CPU),"freeMemory","nearDevices" (percent),"affinity","verdict"}; what the
// policy does not look at is left out) and, where its last update failed, "notUpdated" (why, and
// what to do); ExplainMethod adds "mistyped" (sentences about annotations of the pod). A part of a
// claim that holds CPUs is a container of the pod NAMESPACE/CLAIM, in the state "claim", with
// "claim" (its uid), "claimState" ("held", or what it lost), "device", "numaNode" (of the device),
// "wholeCores", "coreType" ("p-core"), "l3", "avoidSiblings", "seen" (the CPUs that its containers
// see where it avoids siblings), "sharedWithinPod", "reservedFor" (the pods that may use it, as the
// claim said when it was prepared: "uid", and "pod", NAMESPACE/NAME, of those that have containers
// here; none: all pods of its namespace) and "carriers" (containers). NotFound when there is none.
StatusOr<OrderedJson> ExplainJson(const ResourceManager& manager, std::string_view what,
                                  const ContainerChoice& choice = {},
                                  NameMatch match = NameMatch::kWhole);

// The number of containers for which the runtime has not done yet what it should.
size_t CountUnsettled(const ResourceManager& manager);

// The containers and their CPUs, as `status` tells them:
//   {"pods","containers","unsettled" (CountUnsettled),
//    "exclusive","shared","reserved" (kernel lists: CPUs that containers and claims have
//    for themselves, that the others share, and that are kept for the system)}
OrderedJson HeldJson(const ResourceManager& manager);

// {"container","from":{"cpus","exclusive","mems"},"to":{"cpus","exclusive","mems","reason"}}
OrderedJson MovesJson(const std::vector<ResourceManager::Move>& moves);

// UTC with milliseconds: "2024-05-06T07:08:09.123Z".
std::string Rfc3339(std::chrono::system_clock::time_point time);

}  // namespace resmgr
