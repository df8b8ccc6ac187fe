// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "pkg/node/policy_host.h"

namespace resmgr::test {

// A host without a brain that changes its policy, or refuses to, as the test says.
class FakePolicyHost final : public PolicyHost {
 public:
  void SetPolicy(std::unique_ptr<Policy>, std::function<void(Status)> done) override {
    ++changes;
    if (at_change) at_change();
    done(refusal);
  }
  Status SetOffline(std::unique_ptr<Policy>, const OfflineChange& now) override {
    ++offline_changes;
    if (refusal.ok()) offline = now;
    return refusal;
  }
  StatusOr<std::vector<ResourceManager::Move>> PreviewPolicy(const Policy*) const override {
    if (!refusal.ok()) return refusal;
    return moves;
  }
  void SetStartFailurePolicy(FailurePolicy) override {}
  void SetRefusedUpdates(RefusedUpdates) override {}
  const History& history() const override { return nothing_done; }
  ResourceManager* manager() override { return brain; }
  const ResourceManager* updating_manager() const override {
    return brain == nullptr ? releasing : brain;
  }
  bool AllLetGo() const override { return let_go; }

  ResourceManager* brain = nullptr;            // the resource manager that it shows
  const ResourceManager* releasing = nullptr;  // a former one that sends updates
  int changes = 0;
  int offline_changes = 0;
  OfflineChange offline;
  bool let_go = true;
  Status refusal;
  std::function<void()> at_change;
  History nothing_done;
  std::vector<ResourceManager::Move> moves;
};

}  // namespace resmgr::test
