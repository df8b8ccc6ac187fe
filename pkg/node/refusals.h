// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/problem.h"
#include "pkg/resmgr/history.h"
#include "pkg/resmgr/observer.h"

namespace resmgr {

// The containers that were refused in the last hour and have not been placed since then, for the
// list of problems. Refusals by a former daemon come from the history, which keeps them
// (pkg/resmgr/history.h). Loop's thread only.
class Refusals final : public Observer {
 public:
  using Time = std::chrono::system_clock::time_point;
  using WallClock = std::function<Time()>;

  static constexpr std::chrono::hours kKept{1};
  // Limit of remembered containers; those with the oldest last refusal are forgotten.
  static constexpr size_t kMost = 128;

  struct Refusal {
    Time first{};
    Time last{};
    uint64_t count = 0;
    std::string error{};  // of the last one
    bool over = false;    // the container has been placed since then
  };

  // Takes over the refusals in the history.
  explicit Refusals(const History& history, WallClock now = std::chrono::system_clock::now);

  void OnPlaced(const Act& act) override { Settle(act); }
  void OnUpdated(const Act& act) override { Settle(act); }
  void OnRefused(const Act& act, const Status& why) override { Note(act, why); }
  void OnRefusedByStage(const Act& act, const Status& why) override { Note(act, why); }
  void OnStartRefused(const Act& act, const Status& why) override { Note(act, why); }

  // One problem for each of the newest refusals, and one for all the others.
  std::vector<Problem> problems() const;
  // By "namespace/pod/container".
  const std::map<std::string, Refusal>& all() const { return refusals_; }

 private:
  void Note(const std::string& container, Time time, std::string_view error);
  void Note(const Act& act, const Status& why);
  void Settle(const Act& act);
  void ForgetOld();

  const WallClock now_;
  std::map<std::string, Refusal> refusals_;
};

}  // namespace resmgr
