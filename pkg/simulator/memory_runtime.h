// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// A container runtime in memory: holds pods and containers, and does every update at once. Loop's
// thread only.
class MemoryRuntime : public RuntimeClient {
 public:
  // The loop must outlive it.
  explicit MemoryRuntime(EventLoop& loop) : loop_(loop) {}

  void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                       std::function<void(Status)> done) override;
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;

  // Some answers are still on their way.
  bool busy() const { return answers_ > 0; }

  // In the order of their creation.
  const std::vector<RuntimeContainer>& containers() const { return held_.containers; }
  const Pod* FindPod(const PodSandboxId& id) const;
  RuntimeContainer* Find(const ContainerId& id);

  void AddPod(Pod pod);
  void RemovePod(const PodSandboxId& id);
  void Add(RuntimeContainer container);
  void Remove(const ContainerId& id);
  // What an accepted request puts in force.
  void Apply(const ContainerId& id, const LinuxResources& resources);
  void Apply(const ContainerId& id, const ResourceValues& adjustment);

 private:
  // Runs it on the loop, after the present call.
  void Answer(std::function<void()> answer);

  EventLoop& loop_;
  RuntimeInventory held_;
  size_t answers_ = 0;
};

}  // namespace resmgr
