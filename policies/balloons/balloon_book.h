// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policies/balloons/balloon.h"
#include "policies/balloons/balloon_reason.h"
#include "policies/balloons/balloon_setup.h"
#include "policies/balloons/shared_list.h"

namespace resmgr {

// All balloons of a node, with their CPUs and containers. A call that fails changes nothing. Every
// CPU is in at most one balloon. Copies are independent and cheap: they share the balloons that
// none of them changes. Balloons are in the order of their creation and named by their place in the
// list; a place is valid until a balloon is removed.
class BalloonBook {
 public:
  explicit BalloonBook(std::shared_ptr<const BalloonSetup> setup);

  const BalloonSetup& setup() const { return *setup_; }
  const SharedList<Balloon>& balloons() const { return balloons_; }
  // CPUs that no balloon has; balloons may borrow some of them.
  const CpuSet& idle() const { return idle_; }
  // The idle CPUs that no balloon borrows.
  CpuSet unlent() const { return idle_ - lent_; }
  std::string NameOf(const Balloon& balloon) const;  // "TYPE[N]"
  std::string NameOf(int type, int index) const;
  std::optional<size_t> Find(ContainerKey key) const;
  BalloonMemberPtr MemberOf(ContainerKey key) const;  // nullptr if there is none
  int Count(int type) const;

  // Makes a balloon of the type with its minimum size, preferably near `hints`, and with components
  // like those of `parts` if given. ResourceExhausted: there is no room, or the type has its
  // maximum number of balloons.
  StatusOr<size_t> Create(int type, const std::vector<BalloonHint>& hints = {},
                          const BalloonPart* parts = nullptr);
  // Makes the balloons that must always exist, on an empty machine.
  Status CreateAlways();
  // Calls `create` for each balloon that always exists and is missing, once CreateFixed was called.
  Status CreateAlwaysBy(const std::function<Status(int type)>& create);
  // Makes a balloon for one container of a type whose containers are alone; it keeps its CPUs until
  // the container leaves. Takes idle CPUs within `place`: splits no idle core if possible, and
  // takes CPUs that others borrow last. ResourceExhausted: too few are idle there.
  StatusOr<size_t> CreateAlone(const BalloonMemberPtr& member, const CpuSet& place);
  // Makes a balloon with this number and those of the CPUs that are idle; if it exists already,
  // adds them. Returns its place; nullopt if it is new and none of the CPUs is idle. `saved` tells
  // the components and their CPUs, if these are known.
  std::optional<size_t> Adopt(int type, int index, const CpuSet& cpus,
                              const BalloonReason& saved = {});
  // Gives an adopted balloon its former room if it can still be one. To be called after all
  // balloons of running containers were adopted.
  void AdoptRoom(size_t place, const CpuSet& room);

  // Takes over from the book before what placements do not tell, for balloons that are still the
  // same: their order, the pause of borrowing, and explanations. To be called when all containers
  // are in their balloons.
  void TakeOver(const BalloonBook& former);

  // Changes the type, to one without components, and the members of a balloon. False: it has
  // components or a room, or the limits of the types do not allow it.
  bool Retype(size_t place, int type, std::vector<BalloonMemberPtr> members);

  // Makes the balloons of types that list CPUs, with these CPUs alone: no other balloon may have
  // them, even if its containers run there.
  Status CreateFixed();
  // Completes these balloons and adopted ones: chooses their rooms, and the CPUs that a minimum
  // size wants beyond a list. If a balloon finds too little room, it grows without one. To be
  // called after all were made or adopted, since these CPUs may not be those of another balloon.
  Status Complete();

  // The container joins, and the balloon grows to the size that it then needs.
  Status Join(size_t place, const BalloonMemberPtr& member);
  // The container joins, and the balloon grows only as far as it can.
  void Squeeze(size_t place, const BalloonMemberPtr& member);
  // The container joins, and the size stays.
  void Put(size_t place, const BalloonMemberPtr& member);
  // Replaces the balloon's member `former` by this one, which may be the same container with other
  // needs, and adapts the size. Can only fail if more is needed than before.
  Status Replace(size_t place, ContainerKey former, const BalloonMemberPtr& member);
  // As Replace, but the balloon grows only as far as it can.
  void ReplaceShort(size_t place, ContainerKey former, const BalloonMemberPtr& member);
  // The container is gone: the balloon shrinks or is removed, and balloons that are short of CPUs
  // grow.
  void Leave(ContainerKey key);
  // Balloons with fewer CPUs than their containers need grow as far as possible.
  void GrowShort();
  // Balloons with more CPUs than their containers need give the rest back.
  void ShrinkLarge();
  // How many more CPUs the balloon's containers need. 0 for a balloon of a claim, which keeps its
  // size.
  int Lacks(const Balloon& balloon) const;
  // Makes `count` of the balloon's CPUs in `part` idle, although its containers need them. The
  // balloon must have no components.
  void GiveUp(size_t place, const CpuSet& part, int count);
  // Grows a balloon that lacks CPUs by one. False: it cannot grow.
  bool GrowByOne(size_t place);

  // Lets the balloon borrow `count` CPUs, or fewer if its type allows fewer or fewer are idle.
  void Borrow(size_t place, int count, std::chrono::system_clock::time_point now);
  // How many CPUs it may borrow by the limits of its type.
  int MostBorrowed(const Balloon& balloon) const;
  // The CPUs that the balloon may borrow in addition to those that it has borrowed.
  CpuSet FreeToBorrow(const Balloon& balloon) const { return FreeFor(balloon) - lent_; }
  // Restores borrowing from before a restart, as far as the CPUs are idle.
  void AdoptBorrowed(size_t place, const CpuSet& cpus);
  // Ends the borrowing of CPUs that are not idle any more, or that exceed the balloon's limit.
  // Called at the end of each decision.
  void SettleBorrowed();

  // Needed: the whole CPUs that the balloon would need with `more` milli-CPUs. MostNow: the number
  // of CPUs that it can have now.
  int Needed(const Balloon& balloon, int64_t more) const;
  int MostNow(const Balloon& balloon) const;
  // Whether maxPods, or maxCPUs, of its type allows the member. Containers of the type do not share
  // these limits with guests, which count only beside another guest.
  bool PodFits(const Balloon& balloon, const BalloonMember& member) const;
  bool SizeFits(const Balloon& balloon, const BalloonMember& member) const;
  // Idle CPUs that a new balloon of a type may take.
  CpuSet FreeForNew(int type, int index) const;
  int NextIndex(int type) const;

  // Idle CPUs that containers of the balloon may use, too.
  CpuSet SharedIdle(const Balloon& balloon) const;
  // Whether containers of the balloon could use any of these CPUs if they were idle.
  bool Shares(const Balloon& balloon, const CpuSet& cpus) const;

 private:
  Status Resize(Balloon& balloon, int size);
  Status ResizePart(const Balloon& balloon, BalloonPart& part, int size,
                    std::vector<std::string>& dropped);
  int Target(const Balloon& balloon) const;
  // The number of CPUs of all components together if the balloon is to have `size`.
  int SizeAt(const BalloonPart& part, int size) const;
  void Shrink(size_t place, ContainerKey gone = {});
  Status GrowAsNeeded(size_t place);
  void GrowAtHome();
  void GrowAsFarAsPossible(size_t place);
  void GrowParts(size_t place);
  // Gives the components what they lack of their shares of `size`, as far as CPUs are idle.
  void FillPart(const Balloon& balloon, BalloonPart& part, int size);
  CpuSet FreeFor(const Balloon& balloon) const;
  StatusOr<CpuSet> ChooseMore(const Balloon& balloon, const CpuChoiceRules& rules,
                              const CpuSet& own, int count,
                              std::vector<std::string>& dropped) const;
  void RecountLent();
  const CpuChoiceRules& RulesFor(const Balloon& balloon, const BalloonPart& part,
                                 CpuChoiceRules& changed) const;
  static std::vector<BalloonHint> HintsOfMembers(const Balloon& balloon);
  CpuSet LoadedFor(const Balloon& its, const BalloonPart& part) const;
  BalloonPart MakePart(int type) const;
  size_t Add(Balloon balloon);
  void SplitAdopted(BalloonPart& part, const CpuSet& cpus,
                    std::span<const std::string>& chosen) const;
  int ChosenComponent(const BalloonType& type, const CpuSet& cpus,
                      std::span<const std::string>& chosen) const;
  CpuSet WantedBy(int type) const;
  int Instances(int type) const;  // number of its balloons, components of composites included
  Status KeepRoom(Balloon& balloon) const;

  std::shared_ptr<const BalloonSetup> setup_;
  SharedList<Balloon> balloons_;
  CpuSet idle_;
  CpuSet lent_;  // all CPUs that balloons borrow
  uint64_t last_serial_ = 0;
};

}  // namespace resmgr
