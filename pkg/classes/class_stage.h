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

// Refuses creations of containers whose pod asks for classes that do not exist, and adds what
// the runtime itself does for classes; holds starts back until the worker has done its part, for a
// limited time. Loop's thread only.
class ClassStage final : public Stage {
 public:
  struct Functions {
    // The pod, nullptr where it is not known.
    std::function<const Pod*(const PodSandboxId& id)> find{};
    std::function<StatusOr<Adjustment>(const Pod& pod, const CreateRequest& create)> decide{};
    // Called with the files of cgroup v2 that the creation request itself sets, if `decide` sets
    // any.
    std::function<void(const StringMap& files)> requested{};
    // Runs `go` once the container may start, never from within; false: it may at once.
    std::function<bool(const ContainerId& id, std::function<void()> go)> hold{};
    // Also holds an update that gives the container this CPU quota, in microseconds; `updated`
    // follows once the update has ended in any way.
    std::function<bool(const StageCall& update, const ContainerId& id, int64_t quota,
                       std::function<void()> go)>
        update{};
    std::function<void(const StageCall& update)> updated{};
    // Called when a creation or a start has ended, before the other stages are.
    std::function<void()> ended{};
    // The longest time that a start waits; after it the start goes on.
    std::chrono::milliseconds patience{};
  };

  explicit ClassStage(Functions functions);

  std::unique_ptr<StageCall> Begin(const Request& request) override;

 private:
  const Functions functions_;
};

}  // namespace resmgr
