// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "policies/balloons/balloon_book.h"
#include "policies/balloons/balloon_explanation.h"
#include "policies/balloons/balloon_rules.h"

namespace resmgr {

// Takes over containers that exist, and makes a book of balloons for them. A container whose
// placement is legal does not move. Containers of claims, each alone in its balloon, come first and
// keep exactly the CPUs that they had exclusively, as far as these are available:
//   1. a container whose placement names a balloon of its type is in that balloon, which gets the
//      same number and CPUs;
//   2. if only CPUs are known (after a loss of state), containers on the same CPUs are in one
//      balloon, of one of their types that may have just these CPUs, or else is short of CPUs;
//      containers of other types are its guests, as for want of room. No balloon is resized then;
//   3. the balloons that always exist are made from the remaining CPUs;
//   4. the other containers are placed like new ones, but none can be refused;
//   5. if the type of a balloon found by CPUs only would give its containers other CPUs, the
//      balloon gets another type that does not, if there is one: all of them are guests then;
//   6. if containers would still move, now or at the next restart, and only CPUs are known, a
//      search looks for balloons by which no container moves.
class BalloonAdoption {
 public:
  BalloonAdoption(std::shared_ptr<const BalloonSetup> setup, BalloonRules rules);

  // Pod and container must stay until Run returns.
  void Add(const Pod& pod, const Container& container);
  BalloonBook Run();
  // Why a container is in no balloon; empty if it is in one.
  std::string WhyInNone(ContainerKey key) const;

 private:
  struct Found {
    const Container* container = nullptr;
    BalloonMember member;
    BalloonReason saved{};
    int type = 0;  // type of the balloon that the placement names
    int index = -1;
    bool placed = false;
    bool lost = false;  // only its CPUs are known
    bool alone = false;
  };
  // Containers that are taken to be of one balloon.
  struct Group {
    int type = 0;
    CpuSet visible;
    std::vector<Found*> members;
    bool plausible = true;
  };
  // How a balloon may fit a group. kExact: it has as many CPUs as the group needs. kFewer: it has
  // fewer, since others have the rest. kOther: it has as many or fewer, and may be of a type that
  // none of the containers has.
  enum class Fit { kExact, kFewer, kOther };

  BalloonBook ByLikelihood();
  void AdoptAlone(BalloonBook& book);
  void AdoptNamed(BalloonBook& book);
  void AdoptRooms(BalloonBook& book) const;
  void AdoptBorrowed(BalloonBook& book) const;
  void CreateAlways(BalloonBook& book) const;
  Status CreateEmpty(BalloonBook& book, int type) const;
  void PlaceOthers(BalloonBook& book) const;
  void RetypeGuests(BalloonBook& book) const;
  std::vector<const Found*> FoundIn(const Balloon& balloon) const;
  bool SeeTheSame(const BalloonBook& book, size_t place) const;
  bool Stays(const BalloonBook& book, const Found& found) const;
  bool AllStay(const BalloonBook& book, const std::vector<Group>& groups) const;
  bool AllStayLater(BalloonBook book, const std::vector<Group>& groups) const;
  std::vector<Group> GroupSeen();
  std::optional<SeenBalloon> AsSeen(const Group& group) const;
  std::optional<BalloonBook> BookOf(const BalloonBook& start, std::vector<Group>& groups,
                                    const BalloonExplanation& explanation);
  std::optional<BalloonBook> Explained(std::vector<Group>& groups);
  BalloonMember AsMember(const Found& found, const BalloonBook& book, int type, int index) const;
  CpuSet Seen() const;
  CpuSet MissedIn(const BalloonBook& book) const;
  void AdoptUnnamed(BalloonBook& book, std::vector<Group>& groups, Fit fit);
  bool AdoptGroup(BalloonBook& book, int index, const Group& group, const CpuSet& own, bool exact);
  std::vector<Group> GroupUnnamed(bool loosely);
  bool HidesThreadsOf(const Found& found, const CpuSet& visible, const CpuSet& other) const;
  bool Plausible(const Group& group) const;
  bool IsClaimed(const BalloonBook& book, const std::vector<Group>& groups, const Group& except,
                 int type) const;
  std::vector<int> TypesFor(const BalloonBook& book, const std::vector<Group>& groups,
                            const Group& group, const CpuSet& others, Fit fit) const;
  CpuSet MissedBy(const std::vector<Group>& groups, const Group& except) const;
  CpuSet OwnOf(const BalloonBook& book, const Group& group, const CpuSet& others,
               const CpuSet& missed, const Balloon* owner) const;
  CpuSet AsReported(const Found& found, const CpuSet& saved) const;
  CpuSet MissingOf(const BalloonBook& book, const Group& group, const CpuSet& own) const;
  static const Balloon* OwnerOf(const BalloonBook& book, const CpuSet& cpus);
  int IndexFor(const BalloonBook& book, int type, const CpuSet& own) const;
  CpuSet VisibleOf(const Found& found) const;
  bool MayHave(const Group& group, int type, int size) const;
  int NeededBy(const Group& group, int type) const;
  int TargetOf(const Group& group, int type) const;

  const std::shared_ptr<const BalloonSetup> setup_;
  const BalloonRules rules_;
  // The balloons of a node as it starts without containers. Balloons that have none now get the
  // components that they have there.
  BalloonBook at_start_;
  std::vector<Found> found_;
  bool has_state_ = false;
  std::map<ContainerKey, std::string> none_;
};

}  // namespace resmgr
