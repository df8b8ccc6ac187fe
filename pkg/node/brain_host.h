// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/node/front_door.h"
#include "pkg/node/policy_host.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/policy_stage.h"
#include "pkg/resmgr/history.h"
#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Creates a brain (a resource manager with its policy) and its link to the front door when a policy
// other than null becomes active, and lets the brain decide about requests. Retires the brain when
// null becomes active: it exists until its last requests have ended and no container is bound to
// its CPUs. If a former daemon left notes of bound containers, a brain is created and retired at
// once even under the null policy. Loop's thread only.
class BrainHost final : public PolicyHost {
 public:
  struct Options {
    EventLoop& loop;
    const Machine& machine;
    FrontDoor& door;                 // outlives the host, but must be stopped before the host's end
    Pipeline& pipeline;              // the pipeline of the door's requests
    HintFinder& hints;               // shared by all brains, to limit the number of its threads
    DeviceHints* devices = nullptr;  // also shared; null: no kubelet is asked
    StateStore* state = nullptr;     // may be null: nothing is saved then
    ResourceManager::Options manager{};  // the observer sees the acts of all brains
    // Called when the runtime reports that another client has changed a container. May be empty.
    std::function<void()> updated_outside{};
    // How often retired brains are checked for whether they can be destroyed.
    std::chrono::milliseconds drain_check{1000};
  };

  explicit BrainHost(Options options);
  // Removes the brain's stage from the pipeline, which goes on with the door's stages.
  ~BrainHost() override;
  BrainHost(const BrainHost&) = delete;
  BrainHost& operator=(const BrainHost&) = delete;

  // Adds an observer of all brains. To be called before Start; the observer must outlive this
  // object.
  void Observe(Observer& observer) { observers_.Add(observer); }
  // Sets the first policy; nullptr is null. The door must have started.
  void Start(std::unique_ptr<Policy> policy);

  void SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done) override;
  Status SetOffline(std::unique_ptr<Policy> policy, const OfflineChange& offline) override;
  StatusOr<std::vector<ResourceManager::Move>> PreviewPolicy(const Policy* policy) const override;
  void SetStartFailurePolicy(FailurePolicy policy) override;
  void SetRefusedUpdates(RefusedUpdates choice) override;
  const History& history() const override { return history_; }
  ResourceManager* manager() override { return brain_ == nullptr ? nullptr : &brain_->manager; }
  const ResourceManager* updating_manager() const override;
  bool AllLetGo() const override { return updating_manager() == nullptr; }

  // "connected", or the problem; "not used" under the null policy.
  std::string RuntimeState() const;

 private:
  struct Brain {
    Brain(const Options& options, std::unique_ptr<Policy> policy);

    // True once another brain decides, or none is needed: then this brain sends nothing any more.
    bool stopped = false;
    std::unique_ptr<BrainLink> link;
    ResourceManager manager;
    PolicyStage stage;
  };

  void MakeBrain(std::unique_ptr<Policy> policy);
  void TellOffline(Brain& brain) const;
  // Sets the brain that decides about requests; nullptr: none.
  void SetActive(Brain* brain);
  void Connect(Brain& brain);
  void Retire();
  void AddRetired(std::unique_ptr<Brain> brain);
  static void Stop(Brain& brain);
  // Whether a brain that does not decide any more has nothing to send.
  static bool IsDone(const Brain& brain);
  void DestroyDrained();

  Options options_;
  History history_;
  std::optional<RefusalNotes> refusal_notes_;
  Observers observers_;
  bool overrides_warned_ = false;
  OfflineChange offline_;
  std::unique_ptr<Brain> brain_;
  // Brains with requests under way, or with containers that are still bound to their CPUs.
  std::list<std::unique_ptr<Brain>> retired_;
  std::list<std::unique_ptr<Brain>> retiring_;  // destroyed in the next turn of the loop
  EventLoop::HandlePtr drain_check_;
};

}  // namespace resmgr
