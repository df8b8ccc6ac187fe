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

// What placing a pod takes of its manifest.
struct Manifest {
  struct Container {
    std::string name{};
    Requirements requirements{};  // a limit without a request is the request too
    std::map<std::string, uint64_t> hugepage_limits{};  // as in LinuxResources
    bool sidecar = false;                               // an init container that goes on running
  };

  std::string namespace_name{};
  std::string name{};
  std::string uid{};  // empty: any
  std::string runtime_handler{};
  StringMap labels{};
  StringMap annotations{};
  std::vector<Container> init_containers{};  // in their order
  std::vector<Container> containers{};
  // The pod's own resources (spec.resources, with the requests that the API server adds). They
  // stand in for limits that a container lacks, and decide its QoS class.
  Requirements pod_level{};
  // What its runtime class costs beside the containers (spec.overhead): CPU and memory.
  Requirements overhead{};

  std::string FullName() const;  // "namespace/name"
  QosClass Qos() const;
  // What the kubelet says of the pod as a whole, its overhead not included: what it states, else
  // the most that its containers have at a time.
  Requirements Whole() const;
  // Of either list; nullptr when there is none of that name.
  Container* Find(std::string_view container_name);
};

// Reads a document of kind Pod. Keys that placing does not take are not looked at, unless they look
// like one that it does. InvalidArgument "SOURCE:LINE: path: ..." for what an API server would
// refuse: no name or one that cannot be, no container, a name twice, no quantity, a request above
// its limit, a container's limit above that of its pod.
StatusOr<Manifest> ReadManifest(const ConfigNode& document);

// Some values of a container's `resources`, in place of those that it has: what a resize may say.
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
