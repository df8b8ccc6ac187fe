// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <string>

#include "pkg/resmgr/history.h"
#include "pkg/resmgr/observer.h"
#include "pkg/state/state_store.h"

namespace resmgr {

// Keeps the last refusals of the history in the state, so that `explain` and `history` tell them
// after a restart, too. A refusal is forgotten when its container is placed. It observes after the
// history does. Loop's thread only.
class RefusalNotes final : public Observer {
 public:
  // Limit of saved refusals, which are the newest ones.
  static constexpr size_t kMost = 64;

  // Puts an earlier daemon's saved refusals into the history. Both must outlive this.
  RefusalNotes(StateStore& state, History& history);

  void OnRefused(const Act& act, const Status& why) override;
  void OnRefusedByStage(const Act& act, const Status& why) override { OnRefused(act, why); }
  void OnStartRefused(const Act& act, const Status& why) override { OnRefused(act, why); }
  void OnPlaced(const Act& act) override;
  void OnUpdated(const Act& act) override { OnPlaced(act); }

 private:
  void Forget(std::list<std::string>::iterator name);

  StateStore& state_;
  const History& history_;
  std::list<std::string> names_;  // names with saved refusals, oldest first
};

}  // namespace resmgr
