// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/use_rebalancer.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/amount_text.h"
#include "pkg/log/log.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Moves are decided only by samples over this time, and over at least three intervals.
constexpr milliseconds kLeastMeasured = seconds(30);
// Moves are judged by samples over this time, or over kSettlingSamples intervals if these are
// longer.
constexpr milliseconds kSettles = seconds(60);
constexpr int kSettlingSamples = 6;
// If samples stop or fail, moves that are not judged after this multiple of the settling time stay.
constexpr int kPatience = 5;

struct Found {
  const Pod* pod = nullptr;
  const Container* container = nullptr;
};

Found FindById(const Snapshot& snapshot, const std::string& id) {
  Found found;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (container.id.value() == id) found = {&pod, &container};
  });
  return found;
}

// The reason for a move: "measured use: web uses 1.50 CPUs and waits ..."
std::string TextOf(const policy::UseMove& move, const std::string& container) {
  const std::string waits =
      move.pressure ? fmt::format(" and waits in {:.0f} % of the time", *move.pressure) : "";
  return fmt::format(
      "measured use: {} uses {:.2f} CPUs{}; {} has {:.0f} CPUs and needs {:.1f}, {} has {:.0f} and "
      "needs {:.1f}; the move saves {:.1f} lacking CPUs",
      container, move.used, waits, move.from, move.from_load.cpus, move.from_load.wanted, move.to,
      move.to_load.cpus, move.to_load.wanted, move.gain);
}

policy::PoolLoad LoadOf(const policy::PoolLoads& loads, const std::string& pool) {
  const auto found = loads.find(pool);
  return found == loads.end() ? policy::PoolLoad() : found->second;
}

using MoveGroup = std::vector<UseRound::Move*>;
using Relief = std::map<std::string, double>;

void AddTo(Relief& sum, const Relief& relief) {
  for (const auto& [pool, less] : relief)
    sum[pool] += less;
}

// The gain of these moves: their share of the relief that `all` moves brought to the pools that
// lacked CPUs, minus the additional lack in the other pools that these moves concern.
double GainOf(const MoveGroup& moves, const Relief& all, const policy::PoolLoads& before,
              const policy::PoolLoads& now) {
  Relief relief;
  std::set<std::string> others;
  for (const UseRound::Move* const move : moves) {
    AddTo(relief, move->relief);
    others.insert({move->from, move->to});
  }
  const auto less = [&](const std::string& pool) {
    return LoadOf(before, pool).lacking - LoadOf(now, pool).lacking;
  };
  double gain = 0;
  for (const auto& [pool, part] : relief) {
    gain += less(pool) * part / all.at(pool);
    others.erase(pool);
  }
  for (const std::string& pool : others)
    gain += std::min(0.0, less(pool));
  return gain;
}

std::string SecondsText(milliseconds time) {
  return fmt::format("{} s", std::chrono::duration_cast<seconds>(time).count());
}

}  // namespace

std::string_view ToString(UseRound::State state) {
  switch (state) {
    case UseRound::State::kPreview:
      return "preview";
    case UseRound::State::kMeasuring:
      return "measuring";
    case UseRound::State::kKept:
      return "kept";
    case UseRound::State::kTakenBack:
      return "taken back";
    case UseRound::State::kNotMeasured:
      break;
  }
  return "not measured";
}

UseRebalancer::UseRebalancer(Options options)
    : options_(std::move(options)),
      first_run_(options_.clock.Steady() +
                 (options_.after_restart ? kLongHoldOff : std::chrono::minutes(0))) {
  Configure(UsageConfig());
}

void UseRebalancer::Configure(const UsageConfig& config) {
  least_measured_ = std::min(kLeastMeasured, 3 * config.interval);
  settles_ = kSettlingSamples * config.interval;
  if (settles_ > kSettles) settles_ = std::max(kSettles, 2 * config.interval);
  most_moves_ = static_cast<int>(config.rebalance_moves);
  if (std::exchange(every_, config.rebalance_every) != config.rebalance_every)
    next_run_ = std::max(options_.clock.Steady() + every_, first_run_);
}

void UseRebalancer::Observe(const UsageFigures& figures) {
  averages_.Add(figures);
  ResourceManager* const manager = options_.manager();
  if (manager != nullptr && Measuring() && averages_.elapsed() >= settles_) Judge(*manager);
  if (every_.count() > 0 && options_.clock.Steady() >= next_run_ && !Measuring()) RunByItself();
  // Too short a time shows little: averages begin anew after a start, a gap or moves.
  const bool measured = averages_.elapsed() >= least_measured_;
  if (measured && manager != nullptr && manager->policy().FollowsUse())
    manager->policy_changes().FollowUse(averages_.Of(manager->snapshot()));
}

void UseRebalancer::RunByItself() {
  next_run_ = options_.clock.Steady() + every_;
  const StatusOr<UseRound> round = Apply(std::nullopt);
  if (!round.ok()) GetLogger("usage").Info("no rebalance by use: {}", Message(round.status()));
}

StatusOr<UseRound> UseRebalancer::Plan(ResourceManager& manager,
                                       std::optional<int> most_moves) const {
  if (averages_.elapsed().count() == 0)
    return FailedPrecondition("what is used is not measured yet; ask again in a few seconds");
  const Clock::SteadyTime now = options_.clock.Steady();
  const policy::MeasuredUse use = averages_.Of(manager.snapshot());
  policy::UseLimits limits;
  limits.most_moves = std::clamp(most_moves.value_or(most_moves_), 0, kMostMoves);
  const policy::UsePlan plan =
      manager.policy_changes().PlanByUse(use, limits, [&](const ContainerId& id) {
        const auto held = held_off_.find(std::string(id.value()));
        return held != held_off_.end() && held->second > now;
      });
  UseRound round{.time = options_.clock.Now(),
                 .measured = averages_.elapsed(),
                 .containers = plan.measured,
                 .lacking = plan.lacking,
                 .lacking_predicted = plan.lacking_after};
  for (const policy::UseMove& move : plan.moves) {
    const Container* const container = manager.snapshot().FindContainer(move.key);
    const Pod* const pod =
        container == nullptr ? nullptr : manager.snapshot().FindPod(container->pod_id);
    if (pod == nullptr) continue;
    std::string name = FullName(*pod, container->name);
    std::string text = TextOf(move, name);
    round.moves.push_back({.id = std::string(container->id.value()),
                           .container = std::move(name),
                           .from = move.from,
                           .to = move.to,
                           .used = move.used,
                           .pressure = move.pressure,
                           .gain = move.gain,
                           .relief = move.relief,
                           .text = std::move(text)});
  }
  if (plan.loads.size() < 2) {
    round.note = fmt::format("policy {} has no shared pools between which containers can move",
                             manager.policy().name());
  } else if (plan.moves.empty()) {
    round.note = fmt::format("{:.1f} CPUs are lacking in all pools together: no move gains enough",
                             plan.lacking);
  }
  return round;
}

StatusOr<UseRound> UseRebalancer::Preview(std::optional<int> most_moves) {
  ResourceManager* const manager = options_.manager();
  if (manager == nullptr) return FailedPrecondition("no policy is active");
  RESMGR_ASSIGN_OR_RETURN(UseRound round, Plan(*manager, most_moves));
  std::vector<policy::PoolMove> moves;
  for (const UseRound::Move& move : round.moves) {
    if (const Found found = FindById(manager->snapshot(), move.id); found.container != nullptr)
      moves.push_back({found.container->key, move.to});
  }
  RESMGR_ASSIGN_OR_RETURN(round.placements, manager->policy_changes().PreviewMoveShared(moves));
  return round;
}

StatusOr<UseRound> UseRebalancer::Apply(std::optional<int> most_moves) {
  RESMGR_ASSIGN_OR_RETURN(UseRound round, Preview(most_moves));
  if (Measuring()) return FailedPrecondition("the moves of the last rebalance are being measured");
  if (round.moves.empty()) return round;
  if (averages_.elapsed() < least_measured_) {
    options_.look_on(2 * least_measured_);
    return FailedPrecondition("use was measured for {} only: {} are needed; ask again then",
                              SecondsText(averages_.elapsed()), SecondsText(least_measured_));
  }
  ResourceManager& manager = *options_.manager();
  loads_ = manager.policy_changes().Loads(averages_.Of(manager.snapshot()));
  RESMGR_RETURN_IF_ERROR(MakeMoves(manager, round));
  averages_.BeginAt(options_.clock.Steady());
  if (rounds_.size() == kKeptRounds) rounds_.pop_front();
  rounds_.push_back(round);
  rounds_.back().placements = {};  // large, and nothing reads them later
  WaitForJudgement();
  return round;
}

void UseRebalancer::WaitForJudgement() {
  options_.look_on(kPatience * settles_);
  overdue_ = options_.clock.After(kPatience * settles_, [this] {
    for (UseRound::Move& move : rounds_.back().moves)
      move.state = UseRound::State::kNotMeasured;
    EndRound(UseRound::State::kNotMeasured,
             "what the moves brought was not measured, since samples ended: they stay");
  });
}

// Makes the moves one by one, so that each is logged with its own reason. If one fails, the later
// ones are left out; only a change since the plan can make one fail.
Status UseRebalancer::MakeMoves(ResourceManager& manager, UseRound& round) {
  Logger& log = GetLogger("usage");
  size_t made = 0;
  Status status;
  for (UseRound::Move& move : round.moves) {
    const Found found = FindById(manager.snapshot(), move.id);
    if (found.container == nullptr) break;
    const std::vector<policy::PoolMove> one = {{found.container->key, move.to}};
    status = manager.policy_changes().MoveShared(one, move.text);
    if (!status.ok()) break;
    move.state = UseRound::State::kMeasuring;
    HoldOff(move.id, kHoldOff);
    log.Info("moved {} from {} to {}: {}", move.container, move.from, move.to, move.text);
    ++made;
  }
  round.moves.resize(made);
  if (made == 0) return status.ok() ? FailedPrecondition("the containers have ended") : status;
  round.state = UseRound::State::kMeasuring;
  round.note = fmt::format("what the moves bring is measured for {}", SecondsText(settles_));
  return OkStatus();
}

void UseRebalancer::HoldOff(const std::string& id, std::chrono::minutes time) {
  const Clock::SteadyTime now = options_.clock.Steady();
  std::erase_if(held_off_, [now](const auto& held) { return held.second <= now; });
  held_off_[id] = now + time;
}

void UseRebalancer::EndRound(UseRound::State state, std::string note) {
  UseRound& round = rounds_.back();
  round.state = state;
  round.note = std::move(note);
  loads_.clear();
  overdue_.reset();
  GetLogger("usage").Info("rebalance by use: {}", round.note);
}

// Judges the moves out of one pool together.
void UseRebalancer::Judge(ResourceManager& manager) {
  UseRound& round = rounds_.back();
  const policy::PoolLoads now = manager.policy_changes().Loads(averages_.Of(manager.snapshot()));
  std::map<std::string, MoveGroup> groups;
  Relief relief;
  for (UseRound::Move& move : round.moves) {
    const Found found = FindById(manager.snapshot(), move.id);
    move.state = UseRound::State::kNotMeasured;
    if (found.container == nullptr || found.container->placement.pool != move.to) continue;
    groups[move.from].push_back(&move);
    AddTo(relief, move.relief);
  }
  double predicted = 0;
  double gained = 0;
  size_t taken_back = 0;
  size_t stay = 0;
  for (auto& [from, moves] : groups) {
    double expected = 0;
    for (UseRound::Move* const move : moves) {
      expected += move->gain;
      move->state = UseRound::State::kKept;
    }
    const double gain = GainOf(moves, relief, loads_, now);
    predicted += expected;
    gained += gain;
    if (gain >= kKeptPart * expected) continue;
    const std::string why = fmt::format(
        "measured use: the move saved {:.1f} lacking CPUs, not {:.1f}: taken back", gain, expected);
    for (UseRound::Move* const move : moves)
      ++(TakeBack(manager, *move, why) ? taken_back : stay);
  }
  round.lacking_after = policy::Lacking(now);
  if (groups.empty())
    return EndRound(UseRound::State::kNotMeasured, "all moved containers ended, or moved again");
  EndRound(
      taken_back + stay > 0 ? UseRound::State::kTakenBack : UseRound::State::kKept,
      fmt::format("{:.1f} CPUs are lacking, {:.1f} before {}: {:.1f} CPUs were gained of {:.1f} "
                  "predicted{}{}",
                  *round.lacking_after, round.lacking, CountText(std::ssize(round.moves), "move"),
                  gained, predicted,
                  taken_back > 0 ? "; what did not keep its promise was taken back" : "",
                  stay > 0 ? "; what could not move back stays" : ""));
}

// Returns false if the container has ended, or stays because its former pool does not accept it any
// more.
bool UseRebalancer::TakeBack(ResourceManager& manager, UseRound::Move& move,
                             const std::string& why) {
  HoldOff(move.id, kLongHoldOff);
  const Found found = FindById(manager.snapshot(), move.id);
  if (found.container == nullptr) return false;
  const std::vector<policy::PoolMove> back = {{found.container->key, move.from}};
  const Status status = manager.policy_changes().MoveShared(back, why);
  Logger& log = GetLogger("usage");
  if (!status.ok()) {
    log.Info("{} stays in {}, although too little was gained: {}", move.container, move.to,
             Message(status));
    return false;
  }
  move.state = UseRound::State::kTakenBack;
  log.Info("moved {} back to {}: {}", move.container, move.from, why);
  return true;
}

std::string UseRebalancer::AboutOf(const std::string& id) const {
  for (auto round = rounds_.rbegin(); round != rounds_.rend(); ++round) {
    for (const UseRound::Move& move : round->moves) {
      if (move.id != id) continue;
      return fmt::format("moved by use from {} to {}, {}: {:.1f} CPUs predicted; {}", move.from,
                         move.to, ToString(move.state), move.gain, round->note);
    }
  }
  return "";
}

}  // namespace resmgr
