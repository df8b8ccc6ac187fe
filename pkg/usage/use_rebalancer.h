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

// Moves of one rebalance by use, and their results. A value.
struct UseRound {
  enum class State {
    kPreview,      // nothing was moved
    kMeasuring,    // moved
    kKept,         // enough of the predicted gain is measured
    kTakenBack,    // less is measured; containers are back in their pools, if these took them
    kNotMeasured,  // samples ended, or another decision came meanwhile; containers stay
  };
  struct Move {
    std::string id{};         // the container's
    std::string container{};  // "namespace/pod/container"
    std::string from{};       // pools
    std::string to{};
    double used = 0;  // CPUs
    std::optional<double> pressure{};
    double gain = 0;                         // CPUs that are lacking less, predicted
    std::map<std::string, double> relief{};  // the same by pool; pools that lack more are left out
    std::string text{};
    State state = State::kPreview;
  };

  std::chrono::system_clock::time_point time{};
  std::chrono::milliseconds measured{0};  // how long before
  size_t containers = 0;                  // of shared pools, that were measured
  std::vector<Move> moves{};
  double lacking = 0;  // CPUs, in all shared pools
  double lacking_predicted = 0;
  std::optional<double> lacking_after{};  // as measured
  State state = State::kPreview;
  std::string note{};                               // a sentence
  std::vector<ResourceManager::Move> placements{};  // of a preview: all that would change
};

std::string_view ToString(UseRound::State state);  // "preview", "measuring", "kept", ...

// Moves containers between the shared pools of the active policy by what they use, and takes moves
// back that did not bring what was predicted, once. Nothing moves by itself unless it is configured
// to. Loop's thread only; it never waits for a sample. Its knowledge ends with the daemon: moves
// that are being measured then stay. The next daemon does not know which moves are held off, and
// moves nothing by itself until the longest pause is over.
class UseRebalancer {
 public:
  static constexpr int kMostMoves = 100;  // of one round
  static constexpr size_t kKeptRounds = 16;
  // A container that was moved by use stays for so long; longer if it was taken back.
  static constexpr std::chrono::minutes kHoldOff{30};
  static constexpr std::chrono::minutes kLongHoldOff{120};
  // The part of the predicted gain that has to be measured.
  static constexpr double kKeptPart = 0.5;

  struct Options {
    Clock& clock;
    std::function<ResourceManager*()> manager;  // nullptr: no policy is active
    // Samples are wanted for so long from now on.
    std::function<void(std::chrono::milliseconds)> look_on = [](std::chrono::milliseconds) {};
    // A former daemon may have moved containers by use.
    bool after_restart = false;
  };
  explicit UseRebalancer(Options options);
  UseRebalancer(const UseRebalancer&) = delete;
  UseRebalancer& operator=(const UseRebalancer&) = delete;

  void Configure(const UsageConfig& config);
  // The next figures: averages follow, moves are judged, and, if configured, made. A policy that
  // follows use gets the averages, if these are of as many samples as moves need.
  void Observe(const UsageFigures& figures);
  // Samples failed: the averages do not describe the present.
  void Lose() { averages_.Clear(); }

  // Tells what a rebalance would do. FailedPrecondition: nothing is measured, or no policy is
  // active.
  StatusOr<UseRound> Preview(std::optional<int> most_moves);
  // Makes the moves. FailedPrecondition, too: measured for too short a time, or former moves are
  // being measured.
  StatusOr<UseRound> Apply(std::optional<int> most_moves);

  // The last ones that moved something, newest last.
  const std::deque<UseRound>& rounds() const { return rounds_; }
  // A sentence on the result of this container's last move; "" if there is none.
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
  Milliseconds least_measured_{};  // before moves
  Milliseconds settles_{};         // measured after them
  Milliseconds every_{0};          // by itself; 0: never
  int most_moves_ = 0;
  Clock::SteadyTime next_run_{};
  Clock::SteadyTime first_run_;  // no run by itself before
  UseAverages averages_;
  std::deque<UseRound> rounds_;
  policy::PoolLoads loads_;                            // before the moves that are being measured
  EventLoop::HandlePtr overdue_;                       // when they stay unmeasured
  std::map<std::string, Clock::SteadyTime> held_off_;  // container ids, until when
};

}  // namespace resmgr
