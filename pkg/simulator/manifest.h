// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The part of a pod's manifest that matters for its placement.
struct Manifest {
  struct Container {
    std::string name{};
    Requirements requirements{};  // a limit without a request is also the request
    std::map<std::string, uint64_t> hugepage_limits{};  // see LinuxResources
    bool sidecar = false;                               // an init container that keeps running
    std::vector<std::string> claims{};  // "namespace/name" of the ResourceClaims that it carries
  };

  std::string namespace_name{};
  std::string name{};
  std::string uid{};  // empty: any value
  std::string runtime_handler{};
  StringMap labels{};
  StringMap annotations{};
  std::vector<Container> init_containers{};  // in their order
  std::vector<Container> containers{};
  // The pod's own resources (spec.resources), with the requests that the API server adds. They are
  // the limits of containers that have none, and decide the QoS class.
  Requirements pod_level{};
  // The overhead of its runtime class (spec.overhead): CPU and memory.
  Requirements overhead{};

  std::string FullName() const;  // "namespace/name"
  // The containers of both lists.
  std::vector<const Container*> All() const;
  // The claims of all its containers, each once.
  std::vector<std::string> Claims() const;
  QosClass Qos() const;
  // The resources of the whole pod, as the kubelet states them, without overhead: the pod's own
  // ones, else the highest sum that its containers have at a time.
  Requirements Whole() const;
  // Finds a container in either list; nullptr if there is none of that name.
  Container* Find(std::string_view container_name);
};

// Reads a document of kind Pod. Keys that do not matter for placing are ignored, unless they
// resemble one that does. kInvalidArgument "SOURCE:LINE: path: ..." for errors that an API server
// would find: a missing or invalid name, no container, a duplicate name, a malformed quantity, a
// request above its limit, a container's limit above that of its pod, a claim that the pod does not
// name. A claim from a template has the name in the pod's status.
StatusOr<Manifest> ReadManifest(const ConfigNode& document);

// Some values of a container's `resources` that a resize sets; the others stay.
struct ResourceResize {
  std::optional<MilliCpu> cpu_request{};
  std::optional<MilliCpu> cpu_limit{};
  std::optional<Bytes> memory_request{};
  std::optional<Bytes> memory_limit{};
};

// Reads a ResourceRequirements of a resize; only cpu and memory can be resized.
StatusOr<ResourceResize> ReadResourceResize(const ConfigNode& resources, std::string_view path);
Requirements Changed(Requirements requirements, const ResourceResize& change);

}  // namespace resmgr
