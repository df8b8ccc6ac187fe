// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/resources.h"

namespace resmgr {

// A decided but not yet executed change. Ends with exactly one of the matching Succeeded or Failed
// calls.
struct Admission {
  ContainerKey key{};
  ResourceValues adjustment{};
  uint64_t ticket = 0;  // the brain's number that tells updates of one container apart
};

// How a refusal for lack of room (ResourceExhausted) is treated.
enum class RefusalKind {
  kFinal,      // the refusal is counted and reported
  kTentative,  // not counted: the runtime is listed, and then the request is decided again
};

inline bool IsTentative(const Status& decided, RefusalKind refusal) {
  return refusal == RefusalKind::kTentative && decided.code() == StatusCode::kResourceExhausted;
}

// A start that waits. Destroying it withdraws the wait.
class StartWait {
 public:
  explicit StartWait(std::function<void()> withdraw) : withdraw_(std::move(withdraw)) {}
  ~StartWait() { withdraw_(); }
  StartWait(const StartWait&) = delete;
  StartWait& operator=(const StartWait&) = delete;

 private:
  const std::function<void()> withdraw_;
};

// One container for which another place is planned.
struct PlannedMove {
  std::string container;  // "namespace/pod/name"
  Placement from;
  Placement to;

  // Whether the container loses exclusive CPUs by the move.
  bool LosesExclusiveCpus() const { return to.exclusive.size() < from.exclusive.size(); }
};

// CPUs of the machine went offline, or came back.
struct OfflineChange {
  CpuSet cpus{};      // all that are offline now
  CpuSet reserved{};  // the policy's reserved CPUs, which no container may have exclusively
};

}  // namespace resmgr
