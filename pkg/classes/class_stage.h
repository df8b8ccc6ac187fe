// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/pod.h"
#include "pkg/model/request.h"
#include "pkg/pipeline/stage.h"

namespace resmgr {

// Refuses creations of containers whose pod asks for classes that do not exist, and adds the
// settings that the runtime itself applies. Delays starts until the worker has done its part, for a
// limited time. Loop's thread only.
class ClassStage final : public Stage {
 public:
  struct Functions {
    // Returns the pod; nullptr if it is not known.
    std::function<const Pod*(const PodSandboxId& id)> find{};
    std::function<StatusOr<Adjustment>(const Pod& pod, const CreateRequest& create)> decide{};
    // Called with the files of cgroup v2 that the creation request itself sets, if `decide` sets
    // any.
    std::function<void(const StringMap& files)> requested{};
    // Returns whether the container's start must wait; if so, runs `go` once it may start, and
    // never from within.
    std::function<bool(const ContainerId& id, std::function<void()> go)> hold{};
    // As `hold`, for an update that gives the container this CPU quota in microseconds; `updated`
    // is called when the update has ended in any way.
    std::function<bool(const StageCall& update, const ContainerId& id, int64_t quota,
                       std::function<void()> go)>
        update{};
    std::function<void(const StageCall& update)> updated{};
    // Called when a creation or a start has ended, before other stages see the end.
    std::function<void()> ended{};
    // The longest delay of a start, which then goes on.
    std::chrono::milliseconds patience{};
  };

  explicit ClassStage(Functions functions);

  std::unique_ptr<StageCall> Begin(const Request& request) override;

 private:
  const Functions functions_;
};

}  // namespace resmgr
