// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"

namespace resmgr {

// What is kept of a container over restarts: everything that its runtime cannot tell. Where it
// runs, the runtime knows better.
struct SavedContainer {
  // Without the sets of CPUs and memory nodes.
  CpuSet exclusive;
  std::optional<int64_t> cpu_shares;
  std::optional<int64_t> cpu_quota;
  std::optional<int64_t> cpu_period;
  std::string pool;
  std::string reason;
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

  friend bool operator==(const SavedContainer&, const SavedContainer&) = default;
};

// What is kept of this one: a protobuf message (pkg/api/state.proto). What a newer version adds, an
// older one ignores. The same container always gives the same bytes. Appends to `out`.
void EncodeSaved(const Container& container, QosClass qos, std::string& out);
// InvalidArgument when it is not one.
StatusOr<SavedContainer> DecodeSaved(std::string_view bytes);

}  // namespace resmgr
