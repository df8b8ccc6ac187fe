// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "policies/balloons/balloon_book.h"

namespace resmgr {

// Limit of considered balloons that an explanation shows.
inline constexpr size_t kMostToldBalloons = 16;

// Chooses the balloon of a new container: tries one method after the other (same group, pod or
// namespace; new, balanced, inflated balloons) as the type says, and takes the first balloon that
// can have the container. If only CPUs are missing, it makes room: a few containers of small
// balloons move to other balloons of their type. After that, unless the options forbid it, a
// container that the scheduler rightly sent gets CPUs of balloons whose containers share CPUs
// anyway, or joins a balloon that becomes short of CPUs. A container that is to be alone gets a new
// balloon, inside the CPUs of its hint.
class BalloonPlacer {
 public:
  explicit BalloonPlacer(BalloonBook& book) : book_(book) {}

  // Returns the place of the balloon that the member joined, and completes the member's text and
  // considered balloons. ResourceExhausted names the need, the limits and what is idle; the book
  // does not change then.
  StatusOr<size_t> Place(const std::shared_ptr<BalloonMember>& member);
  // As Place, but takes only balloons that need nothing of others, so fewer containers find one.
  StatusOr<size_t> PlaceWithoutOthers(const std::shared_ptr<BalloonMember>& member);
  // As PlaceWithoutOthers, but takes only the balloon of the member's group, pod or namespace.
  StatusOr<size_t> PlaceTogether(const std::shared_ptr<BalloonMember>& member);
  // Makes room for larger needs of a container where it is, so that it keeps its CPUs.
  Status GrowInPlace(size_t place, const std::shared_ptr<BalloonMember>& member);
  // Options that would let a container in that Place refuses: single changes of its type or of the
  // section.
  std::vector<std::string> WaysIn(const BalloonMember& member) const;
  // Places a container that runs already, even on too few CPUs. Fails only if no balloon has CPUs.
  StatusOr<size_t> PlaceRunning(const std::shared_ptr<BalloonMember>& member);

 private:
  using Try = StatusOr<size_t>;
  // Puts the container into a balloon, once there is room; returns its place.
  using Attempt = std::function<Try(BalloonBook& book)>;
  // For each candidate, the CPUs that must suffice and the CPUs by which the emptiest balloon is
  // chosen. kPresent: present CPUs for both. kMost: possible CPUs for both. kMostByPresent:
  // possible CPUs must suffice, and present CPUs choose.
  enum class Room { kPresent, kMost, kMostByPresent };
  struct Merge {
    uint64_t from = 0;
    uint64_t to = 0;
    int saved = 0;
    int moved = 0;
    bool dedicated = false;  // whether the type keeps containers apart
  };

  Try Chain(BalloonBook& book, BalloonMember& member, const BalloonMemberPtr& shared);
  Try Together(BalloonBook& book, BalloonMember& member, const BalloonMemberPtr& shared);
  Try Fill(BalloonBook& book, BalloonMember& member, const BalloonMemberPtr& shared,
           std::string_view step, bool (*belongs)(const Balloon&, const BalloonMember&), Room room);
  Try Alone(BalloonBook& book, BalloonMember& member, const BalloonMemberPtr& shared) const;
  Try New(BalloonBook& book, BalloonMember& member, const BalloonMemberPtr& shared);
  Try MakeRoom(BalloonMember& member, const Attempt& attempt);
  Try ByRules(BalloonMember& member, const BalloonMemberPtr& shared);
  // Places the container on CPUs that other balloons give up. `may_lack`: these balloons may become
  // short of CPUs; else they must find as many elsewhere. `own`: CPUs of its balloon.
  Try TakeFromSharing(BalloonMember& member, const Attempt& attempt, const CpuSet& own,
                      std::span<const BalloonLevel> levels, bool may_lack);
  Try Overcommit(BalloonMember& member, const BalloonMemberPtr& shared);
  std::optional<Merge> BestMerge(const BalloonBook& book, int budget) const;
  static bool CarryOut(BalloonBook& book, const Merge& merge);
  // Whether the limits of the type would allow the container if there were enough CPUs.
  bool LimitsAllow(const BalloonMember& member) const;
  bool SchedulerMaySend(int64_t request) const;
  Status Refusal(const BalloonMember& member) const;
  Status RefusalAlone(const BalloonMember& member) const;
  std::vector<ConsideredBalloon> Considered(const BalloonMember& member) const;

  BalloonBook& book_;
};

}  // namespace resmgr
