// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/module_configs.h"
#include "pkg/policy/use_balance.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/sys/clock.h"
#include "pkg/usage/usage_figures.h"
#include "pkg/usage/use_averages.h"

namespace resmgr {

// The moves of one rebalance by use, and their results. A value type.
struct UseRound {
  enum class State {
    kPreview,      // nothing was moved
    kMeasuring,    // moved, and not judged yet
    kKept,         // enough of the predicted gain was measured
    kTakenBack,    // less was measured; back in the pools that accepted it
    kNotMeasured,  // sampling ended, or another decision intervened; containers stay
  };
  struct Move {
    std::string id{};         // the container's
    std::string container{};  // "namespace/pod/container"
    std::string from{};       // the names of pools
    std::string to{};
    double used = 0;  // in CPUs
    std::optional<double> pressure{};
    double gain = 0;                         // predicted reduction of lacking CPUs
    std::map<std::string, double> relief{};  // the same by pool; pools that lack more are left out
    std::string text{};
    State state = State::kPreview;
  };

  std::chrono::system_clock::time_point time{};
  std::chrono::milliseconds measured{0};  // time of the samples before the moves
  size_t containers = 0;                  // measured containers in shared pools
  std::vector<Move> moves{};
  double lacking = 0;  // lacking CPUs in all shared pools, before
  double lacking_predicted = 0;
  std::optional<double> lacking_after{};  // the same after the moves
  State state = State::kPreview;
  std::string note{};                               // a sentence about the result
  std::vector<ResourceManager::Move> placements{};  // of a preview: all that would change
};

std::string_view ToString(UseRound::State state);  // "preview", "measuring", "kept", ...

// Moves containers between the shared pools of the active policy according to what they use, and
// takes moves back, once, if they did not bring the predicted gain. Moves by itself only if so
// configured. Loop's thread only; never waits for a sample. Its knowledge ends with the daemon:
// moves that are being measured stay then. The next daemon does not know which containers must not
// be moved yet, and so moves nothing by itself until the longest such time is over.
class UseRebalancer {
 public:
  static constexpr int kMostMoves = 100;  // in one round
  static constexpr size_t kKeptRounds = 16;
  // How long a container that was moved by use is not moved again; longer if it was taken back.
  static constexpr std::chrono::minutes kHoldOff{30};
  static constexpr std::chrono::minutes kLongHoldOff{120};
  // The part of the predicted gain that must be measured, so that moves are kept.
  static constexpr double kKeptPart = 0.5;

  struct Options {
    Clock& clock;
    std::function<ResourceManager*()> manager;  // nullptr: no policy is active
    // Requests samples for this time from now on.
    std::function<void(std::chrono::milliseconds)> look_on = [](std::chrono::milliseconds) {};
    // True if a former daemon may have moved containers by use.
    bool after_restart = false;
  };
  explicit UseRebalancer(Options options);
  UseRebalancer(const UseRebalancer&) = delete;
  UseRebalancer& operator=(const UseRebalancer&) = delete;

  void Configure(const UsageConfig& config);
  // Takes the next figures: updates averages, judges moves and, if configured, makes moves. A
  // policy that follows use gets the averages once they cover as many samples as moves need.
  void Observe(const UsageFigures& figures);
  // Called when samples failed: the averages no longer describe the present.
  void Lose() { averages_.Clear(); }

  // Describes what a rebalance would do. FailedPrecondition: nothing is measured, or no policy is
  // active.
  StatusOr<UseRound> Preview(std::optional<int> most_moves);
  // Makes the moves. FailedPrecondition also if use was measured for too short a time, or former
  // moves are being measured.
  StatusOr<UseRound> Apply(std::optional<int> most_moves);

  // The last rounds that moved something, the newest last.
  const std::deque<UseRound>& rounds() const { return rounds_; }
  // A sentence about the result of this container's last move; "" if there is none.
  std::string AboutOf(const std::string& id) const;

 private:
  using Milliseconds = std::chrono::milliseconds;

  bool Measuring() const {
    return !rounds_.empty() && rounds_.back().state == UseRound::State::kMeasuring;
  }
  StatusOr<UseRound> Plan(ResourceManager& manager, std::optional<int> most_moves) const;
  Status MakeMoves(ResourceManager& manager, UseRound& round);
  void WaitForJudgement();
  void Judge(ResourceManager& manager);
  bool TakeBack(ResourceManager& manager, UseRound::Move& move, const std::string& why);
  void EndRound(UseRound::State state, std::string note);
  void HoldOff(const std::string& id, std::chrono::minutes time);
  void RunByItself();

  const Options options_;
  Milliseconds least_measured_{};  // time of samples before moves
  Milliseconds settles_{};         // time of samples after moves
  Milliseconds every_{0};          // period of moves by itself; 0: never
  int most_moves_ = 0;
  Clock::SteadyTime next_run_{};
  Clock::SteadyTime first_run_;  // moves nothing by itself before this time
  UseAverages averages_;
  std::deque<UseRound> rounds_;
  policy::PoolLoads loads_;                            // before the moves that are being measured
  EventLoop::HandlePtr overdue_;                       // ends a round that was not measured in time
  std::map<std::string, Clock::SteadyTime> held_off_;  // until when containers are not moved, by id
};

}  // namespace resmgr
