// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "policies/balloons/balloon_book.h"

namespace resmgr {

// Limit of considered balloons in an explanation.
inline constexpr size_t kMostToldBalloons = 16;

// Chooses the balloon of a new container: it asks one method after the other (same group, pod or
// namespace; new, balanced, inflated balloons) as the type says, and takes the first balloon that
// can have the container. Where only CPUs are missing it then makes room: a few containers of small
// balloons move to others of their type. Unless the options say otherwise, a container that the
// scheduler was right to send then gets CPUs of balloons whose containers share them anyway, or at
// last joins a balloon that is then short of CPUs. A container that is to be alone gets a new
// balloon, wholly where its hint says.
class BalloonPlacer {
 public:
  explicit BalloonPlacer(BalloonBook& book) : book_(book) {}

  // The place of the balloon that the member joined; its text and the considered balloons are
  // complete then. ResourceExhausted names the need, the limits and what is idle; the book is as
  // before then.
  StatusOr<size_t> Place(const std::shared_ptr<BalloonMember>& member);
  // Options that would let this one in now, which Place refuses: single changes of its type or of
  // the section.
  std::vector<std::string> WaysIn(const BalloonMember& member) const;
  // Never fails while any balloon has CPUs: for containers that run already.
  StatusOr<size_t> PlaceRunning(const std::shared_ptr<BalloonMember>& member);

 private:
  using Try = StatusOr<size_t>;
  // The number of CPUs that must suffice for a container, and the number by which the emptiest
  // balloon is found: present CPUs for both; possible CPUs for both; possible CPUs, with the
  // emptiest balloon found by present CPUs.
  enum class Room { kPresent, kMost, kMostByPresent };
  struct Merge {
    uint64_t from = 0;
    uint64_t to = 0;
    int saved = 0;
    int moved = 0;
    bool dedicated = false;  // of a type that prefers to keep containers apart
  };

  Try Chain(BalloonBook& book, BalloonMember& member, const BalloonMemberPtr& shared);
  Try Fill(BalloonBook& book, BalloonMember& member, const BalloonMemberPtr& shared,
           std::string_view step, bool (*belongs)(const Balloon&, const BalloonMember&), Room room);
  Try Alone(BalloonBook& book, BalloonMember& member, const BalloonMemberPtr& shared) const;
  Try New(BalloonBook& book, BalloonMember& member, const BalloonMemberPtr& shared);
  Try MakeRoom(BalloonMember& member, const BalloonMemberPtr& shared);
  Try ByRules(BalloonMember& member, const BalloonMemberPtr& shared);
  // Places the container on CPUs that other balloons give up. `may_lack`: these may be short of
  // CPUs then; else they have to find as many elsewhere.
  Try TakeFromSharing(BalloonMember& member, const BalloonMemberPtr& shared,
                      std::span<const BalloonLevel> levels, bool may_lack);
  Try Overcommit(BalloonMember& member, const BalloonMemberPtr& shared);
  std::optional<Merge> BestMerge(const BalloonBook& book, int budget) const;
  static bool CarryOut(BalloonBook& book, const Merge& merge);
  // Whether enough CPUs would help.
  bool LimitsAllow(const BalloonMember& member) const;
  bool SchedulerMaySend(const BalloonMember& member) const;
  Status Refusal(const BalloonMember& member) const;
  Status RefusalAlone(const BalloonMember& member) const;
  std::vector<ConsideredBalloon> Considered(const BalloonMember& member) const;

  BalloonBook& book_;
};

}  // namespace resmgr
