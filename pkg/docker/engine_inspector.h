// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "pkg/docker/engine_client.h"
#include "pkg/docker/engine_inventory.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::docker {

// The stages' questions to dockerd. They have connections of their own, so that they do not delay
// the resource manager's updates. Loop's thread only.
class EngineInspector final : public RuntimeAccess {
 public:
  EngineInspector(EventLoop& loop, const std::string& socket, Others others)
      : others_(others),
        client_(loop, socket),
        stop_client_(loop, socket),
        brief_client_(loop, socket) {}

  void AskVersion(Done<Version> done) override;
  void InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) override;
  void InspectContainer(const ContainerId& id, Done<ContainerFacts> done) override;
  void InspectImage(const PodSandboxId& pod, std::string_view reference,
                    Done<ImageFacts> done) override;
  // Leaves out containers that are removed meanwhile. A container that cannot be inspected has only
  // its listed facts.
  void InspectAll(Done<Everything> done) override;

  // Leaves out values that Docker has no field for (unified except pids.max and memory.low, limits
  // of huge pages, the OOM score).
  void UpdateContainer(const ContainerId& id, const ResourceChange& change,
                       std::function<void(Status)> done) override;
  void StopContainer(const ContainerId& id, std::chrono::seconds grace,
                     std::function<void(Status)> done) override;
  void StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) override;
  void RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) override;

 private:
  const Others others_;
  EngineClient client_;        // for InspectAll, which makes many calls
  EngineClient stop_client_;   // for stops and removals, which hang with a container's processes
  EngineClient brief_client_;  // for all other calls, which must not wait for these
};

}  // namespace resmgr::docker
