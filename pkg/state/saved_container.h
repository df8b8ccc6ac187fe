// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"

namespace resmgr {

// What lists of its runtime tell of a container and its pod, as far as decisions need it.
struct SavedOrigin {
  std::string runtime;  // by its name in the configuration
  Pod pod;              // id, uid, name, namespace, handler, overhead, annotations for policies
  std::string container_name;
  uint32_t attempt = 0;
  // As decided.
  std::optional<CpuSet> cpus;
  std::optional<NodeSet> mems;
};

// The same, to be saved with the container itself.
struct OriginView {
  std::string_view runtime;
  const Pod& pod;
};

// What is kept of a container over restarts: everything that its runtime cannot tell. Where it
// runs, the runtime knows better.
struct SavedContainer {
  // Its exclusive CPUs, shares, quota, period, counted memory nodes, pool and reason; the sets of
  // CPUs and memory nodes are not kept.
  Placement placement;
  // What the kubelet asked for: the runtime reports what we made of it.
  LinuxResources requested;
  Requirements requirements;
  std::vector<LocalityHint> hints;
  // Of its pod, for when the runtime cannot tell; older notes do not have it.
  std::optional<QosClass> qos;
  std::string needs_note;
  // As of the container (pkg/model/container.h); older notes do not have it.
  bool cpus_bound = false;
  bool mems_bound = false;
  // Where there are several runtimes: it has to do while this one is away.
  std::optional<SavedOrigin> origin{};
  // Of one that shares exactly as many CPUs as it asks for: these, which could be taken for its own
  // otherwise. Else empty.
  CpuSet shared_cpus{};
};

// What is kept of this one: a protobuf message (pkg/api/state.proto). What a newer version adds, an
// older one ignores. The same container always gives the same bytes. Appends to `out`.
// `origin`, which may be null: of its pod.
void EncodeSaved(const Container& container, QosClass qos, std::string& out,
                 const OriginView* origin = nullptr);
// InvalidArgument when it is not one.
StatusOr<SavedContainer> DecodeSaved(std::string_view bytes);

// What a pod sandbox has as a whole, where that was changed after its creation: overhead and
// resources of the pod (pkg/api/state.proto, StatedPod).
std::string EncodeStated(const Pod& pod);
// Puts these into the pod. InvalidArgument: the bytes are none, and nothing is changed.
Status AddStated(std::string_view bytes, Pod& pod);

}  // namespace resmgr
