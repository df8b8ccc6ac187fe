// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "pkg/cri/hint_finder.h"
#include "pkg/cri/interceptors.h"
#include "pkg/cri/relay.h"
#include "pkg/cri/runtime_connection.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/node/policy_host.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Makes the brain when a policy other than null becomes the active one, with a connection to the
// runtime of its own, and puts it between the relay's calls and the runtime; takes it away when
// null becomes active. One that is taken away goes on beside the calls until it has let go whom it
// placed; so does one that is made for that alone, where a daemon before this one has left notes.
// Loop's thread only.
class BrainHost final : public PolicyHost {
 public:
  struct Options {
    EventLoop& loop;
    h2::FlushQueue& flushes;
    const Machine& machine;
    std::string runtime_socket{};
    StateStore* state = nullptr;  // may be null: nothing is remembered then
    ResourceManager::Options manager{};
    HintFinder::Options hints{};
  };

  explicit BrainHost(Options options);

  // The policy at the start; nullptr is null.
  void Start(std::unique_ptr<Policy> policy);
  // Where calls are looked at, from now on; before SetPolicy. The relay ends before this does.
  void Serve(Relay& relay);

  void SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done) override;
  StatusOr<std::vector<ResourceManager::Move>> PreviewPolicy(const Policy* policy) const override;
  void SetStartFailurePolicy(FailurePolicy policy) override;
  const History& history() const override { return history_; }
  ResourceManager* manager() override { return brain_ == nullptr ? nullptr : &brain_->manager; }

  // "connected", or why not; "not used" under the null policy.
  std::string RuntimeState() const;

 private:
  struct Brain {
    Brain(const Options& options, HintFinder& hints, std::unique_ptr<Policy> policy);

    // Another brain decides, or none is needed any more: nothing is to be sent.
    bool stopped = false;
    RuntimeConnection runtime;
    ResourceManager manager;
    ResourceInterceptor interceptor;
  };

  void MakeBrain(std::unique_ptr<Policy> policy);
  void Connect(Brain& brain);
  void Retire();
  void AddRetired(std::unique_ptr<Brain> brain);
  static void Stop(Brain& brain);
  void DestroyDrained();

  Options options_;
  HintFinder hints_;  // of all brains, so that its threads are few
  History history_;
  bool overrides_warned_ = false;
  Relay* relay_ = nullptr;
  std::unique_ptr<Brain> brain_;
  // Those whose last calls are still under way, or that still have to let containers go.
  std::list<std::unique_ptr<Brain>> retired_;
  EventLoop::HandlePtr drain_check_;
};

}  // namespace resmgr
