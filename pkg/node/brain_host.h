// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "pkg/node/front_door.h"
#include "pkg/node/policy_host.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/policy_stage.h"
#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Makes the brain when a policy other than null becomes the active one, with a link of its own to
// the front door, and lets it decide about requests; retires it when null becomes active. A retired
// brain exists until its last requests have ended and no container is bound to the CPUs that it
// chose. A brain is also made, and retired at once, under the null policy where an earlier daemon
// left notes of containers that are bound. Loop's thread only.
class BrainHost final : public PolicyHost {
 public:
  struct Options {
    EventLoop& loop;
    const Machine& machine;
    FrontDoor& door;                     // stopped before the end of the host, which it outlives
    Pipeline& pipeline;                  // of the door's requests
    HintFinder& hints;                   // of all brains, so that its threads are few
    StateStore* state = nullptr;         // may be null: nothing is remembered then
    ResourceManager::Options manager{};  // its observer is told of what all brains do
    // Makes the policies that decide out of those that are given: null is none of them. May be
    // empty.
    std::function<std::unique_ptr<Policy>(std::unique_ptr<Policy>)> wrap{};
    // Told where the runtime tells that another client has changed a container. May be empty.
    std::function<void()> updated_outside{};
    // How often to look whether a retired brain can be destroyed.
    std::chrono::milliseconds drain_check{1000};
  };

  explicit BrainHost(Options options);
  // Takes the brain's stage out of the pipeline, which lives on with the stages of the door.
  ~BrainHost() override;
  BrainHost(const BrainHost&) = delete;
  BrainHost& operator=(const BrainHost&) = delete;

  // Before Start: it is told of what all brains do, too. It must outlive this.
  void Observe(Observer& observer) { observers_.Add(observer); }
  // The policy at the start; nullptr is null. The door has started.
  void Start(std::unique_ptr<Policy> policy);

  void SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done) override;
  StatusOr<std::vector<ResourceManager::Move>> PreviewPolicy(const Policy* policy) const override;
  void SetStartFailurePolicy(FailurePolicy policy) override;
  void SetRefusedUpdates(RefusedUpdates choice) override;
  const History& history() const override { return history_; }
  ResourceManager* manager() override { return brain_ == nullptr ? nullptr : &brain_->manager; }
  bool AllLetGo() const override;

  // "connected", or why not; "not used" under the null policy.
  std::string RuntimeState() const;

 private:
  struct Brain {
    Brain(const Options& options, std::unique_ptr<Policy> policy);

    // Another brain decides, or none is needed any more: nothing is to be sent.
    bool stopped = false;
    std::unique_ptr<BrainLink> link;
    ResourceManager manager;
    PolicyStage stage;
  };

  std::unique_ptr<Policy> Wrapped(std::unique_ptr<Policy> policy) const;
  void MakeBrain(std::unique_ptr<Policy> policy);
  // The brain that decides about requests; nullptr: none does.
  void SetActive(Brain* brain);
  void Connect(Brain& brain);
  void Retire();
  void AddRetired(std::unique_ptr<Brain> brain);
  static void Stop(Brain& brain);
  void DestroyDrained();

  Options options_;
  History history_;
  Observers observers_;
  bool overrides_warned_ = false;
  std::unique_ptr<Brain> brain_;
  // Brains whose last requests are under way, or that still have containers to release from the
  // CPUs that they chose.
  std::list<std::unique_ptr<Brain>> retired_;
  std::list<std::unique_ptr<Brain>> retiring_;  // in the next turn of the loop
  EventLoop::HandlePtr drain_check_;
};

}  // namespace resmgr
