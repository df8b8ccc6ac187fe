// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "pkg/audit/cgroup_reader.h"
#include "pkg/model/container.h"
#include "pkg/model/resources.h"
#include "pkg/resmgr/observer.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Looks at new containers half a second after their creation, once they run: a runtime may give a
// container other CPUs than requested (CRI-O's workloads do), and a periodic audit would find that
// only a minute later. Reads their cgroups, and asks the runtime once about containers without a
// readable cgroup. Loop's thread only.
class CreationWatch final : public Observer {
 public:
  struct Options {
    EventLoop& loop;
    // The active resource manager; nullptr if there is none.
    std::function<ResourceManager*()> manager;
    // Called on the loop, once for each look that finds a new container with other values than
    // decided.
    std::function<void()> drifted;
    CgroupReader cgroups{};
    std::chrono::milliseconds pause{500};
  };
  // Limit of new containers in one look; further ones are left to the audit.
  static constexpr size_t kMost = 256;

  explicit CreationWatch(Options options);
  CreationWatch(const CreationWatch&) = delete;
  CreationWatch& operator=(const CreationWatch&) = delete;

  // Turns the watch on or off.
  void SetOn(bool on) { on_ = on; }

 private:
  struct Subject {
    ContainerKey key{};
    ContainerId id{};
    std::string cgroup_parent{};
    ResourceValues decided{};
  };
  struct Look;

  void OnInForce(const Act& act, const Place& place) override;
  void Begin();
  void AskForRest(const std::shared_ptr<Look>& look);
  void End(Look& look);
  std::vector<Subject> TakeSubjects(const ResourceManager& manager);

  const Options options_;
  bool on_ = true;
  absl::flat_hash_map<ContainerKey, int> created_;  // number of looks that found it not started yet
  EventLoop::HandlePtr timer_;
  std::shared_ptr<Look> look_;  // the look under way; nullptr: none
  OffLoop reading_;
};

}  // namespace resmgr
