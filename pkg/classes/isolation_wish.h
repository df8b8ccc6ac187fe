// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/base/string_map.h"
#include "pkg/classes/interrupt_wish.h"
#include "pkg/config/classes_config.h"
#include "pkg/model/pod.h"

namespace resmgr {

// The disturbances that a container's CPUs are to be kept free of, and the source that says so. A
// value.
struct IsolationWish {
  IsolationConfig isolation{};
  InterruptWish affinity{};  // of single interrupts
  std::string source{};      // the key of the configuration, or the annotations
  std::string note{};        // annotations that have no effect, with the reason; usually empty
  IsolationConfig asked{};   // by the annotations, where the configuration refuses absent classes
  // Annotations of CRI-O ask for it: environment variables tell the CPUs with housekeeping, and
  // the container's own and shared ones.
  bool tells_housekeeping = false;
  bool tells_shared = false;
  StringMap environment{};  // by the names of variables

  bool any() const { return isolation.any() || affinity.any(); }
  friend bool operator==(const IsolationWish&, const IsolationWish&) = default;
};

// The wish for a container of the pod, if it gets CPUs of its own: the configuration, over which
// the pod's annotation `isolation` wins (pkg/kube/annotations.h), and over that those of CRI-O
// ("irq-load-balancing.crio.io", and with "/CONTAINER" behind it); and the interrupts of the
// annotation `irq-affinity`. InvalidArgument: an annotation that counts has no valid value; the
// message names it. Pure.
StatusOr<IsolationWish> IsolationOf(const Pod& pod, std::string_view container,
                                    const ClassesConfig& config);

}  // namespace resmgr
