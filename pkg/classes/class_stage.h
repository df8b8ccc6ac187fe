// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

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
  // Decides about the calls. Must outlive them.
  class Decider {
   public:
    virtual ~Decider() = default;

    // Returns the pod; nullptr if it is not known.
    virtual const Pod* FindPod(const PodSandboxId& id) = 0;
    // `files` reads the files of cgroup v2 that the request itself sets; only for use within.
    using RequestedFiles = std::function<const StringMap&()>;
    virtual StatusOr<Adjustment> AtCreation(const Pod& pod, const CreateRequest& create,
                                            const RequestedFiles& files) = 0;
    // Returns whether the container's start must wait; if so, runs `go` once it may start, and
    // never from within.
    virtual bool HoldStart(const ContainerId& id, std::function<void()> go) = 0;
    // As HoldStart, for an update that gives the container this CPU quota in microseconds;
    // EndUpdate is called when the update has ended in any way.
    virtual bool HoldUpdate(const StageCall& update, const ContainerId& id, int64_t quota,
                            std::function<void()> go) = 0;
    virtual void EndUpdate(const StageCall& update) = 0;
    // Called when a creation or a start has ended, before other stages see the end.
    virtual void NoteEnd() = 0;
  };

  // `patience`: the longest delay of a start, which then goes on.
  ClassStage(Decider& decider, std::chrono::milliseconds patience);

  std::unique_ptr<StageCall> Begin(const Request& request) override;

 private:
  Decider& decider_;
};

}  // namespace resmgr
