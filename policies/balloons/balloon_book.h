// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "policies/balloons/balloon_setup.h"

namespace resmgr {

// What a balloon had for a container when it was placed.
struct ConsideredBalloon {
  int type = 0;
  int index = 0;
  int64_t request = 0;
  int size = 0;
  int needed = 0;
  int most = 0;
  bool pods_fit = true;
};

// A container in a balloon.
struct BalloonMember {
  ContainerKey key{};
  PodSandboxId pod{};
  std::string namespace_name{};
  std::string group{};  // what groupBy says; "": no group
  int type = 0;         // the container's; a guest's is not that of the balloon
  int64_t request = 0;  // milli-CPUs
  int64_t demand = 0;   // what counts for the size, by sizeBy
  bool hide_hyperthreads = false;
  unsigned memory_types = 0;
  std::vector<BalloonHint> hints{};  // where its devices are, if the type is to be close to them
  std::string text{};                // the rules that placed it, as the reason begins
  std::vector<ConsideredBalloon> considered{};  // of its type, the first ones
};
using BalloonMemberPtr = std::shared_ptr<const BalloonMember>;

// The CPUs of a balloon, or of one component of it, which has CPUs of its own or components.
struct BalloonPart {
  int type = 0;
  CpuSet cpus;
  std::vector<BalloonPart> parts{};

  CpuSet All() const;
};

struct Balloon {
  int type = 0;
  int index = 0;
  uint64_t serial = 0;  // in the order of creation
  BalloonPart part;
  CpuSet room{};  // of growWithin: kept for this balloon, its own CPUs included; else empty
  std::vector<BalloonMemberPtr> members{};
  std::vector<std::string> dropped{};  // hints that its last growth could not follow
  // The CPUs that came with one container, until the next change of the size: they go with it, so
  // that a creation that is taken back leaves no trace.
  CpuSet grown{};
  ContainerKey grown_by{};

  CpuSet cpus() const { return part.All(); }
  int64_t Request() const;
  int64_t Demand() const;
  int Pods(const PodSandboxId& with) const;  // different ones, `with` included
  bool Holds(const PodSandboxId& pod) const;
  // Whether the pods of both balloons, each counted once, are at most so many; 0 is no limit.
  bool PodsFit(const Balloon& other, int64_t most) const;
};

// All balloons of a node: which CPUs and containers each has. A call that fails changes nothing.
// Every CPU is in at most one balloon. A copy is independent. Balloons are named by their place in
// the list; a place is valid until a balloon is removed.
class BalloonBook {
 public:
  explicit BalloonBook(std::shared_ptr<const BalloonSetup> setup);

  const BalloonSetup& setup() const { return *setup_; }
  const std::vector<Balloon>& balloons() const { return balloons_; }
  const CpuSet& idle() const { return idle_; }
  std::string NameOf(const Balloon& balloon) const;  // "TYPE[N]"
  std::string NameOf(int type, int index) const;
  std::optional<size_t> Find(ContainerKey key) const;
  BalloonMemberPtr MemberOf(ContainerKey key) const;  // nullptr if there is none
  int Count(int type) const;

  // A further balloon of the type, of its least size; near `hints`, too. ResourceExhausted when
  // there is no room, or as many as there may be.
  StatusOr<size_t> Create(int type, const std::vector<BalloonHint>& hints = {});
  // All balloons that always exist and are not there yet.
  Status CreateAlways(const std::vector<BalloonHint>& hints = {});
  // The place of a balloon that is to have these CPUs, as far as they are idle, and with that
  // number; nullopt if none are.
  std::optional<size_t> Adopt(int type, int index, const CpuSet& cpus);

  // Adopted balloons get their room; one without enough of it grows like others. Only after all
  // were adopted: a room may not have the CPUs of another balloon.
  void KeepRooms();

  // The container joins, and the balloon grows to what it then needs.
  Status Join(size_t place, const BalloonMemberPtr& member);
  // The same, where the balloon grows only as far as it can.
  void Squeeze(size_t place, const BalloonMemberPtr& member);
  // Only adds the member.
  void Put(size_t place, const BalloonMemberPtr& member);
  // Puts a member in the place of one that the balloon has, or of itself with other needs; the size
  // follows. It fails only where more is needed than before.
  Status Replace(size_t place, ContainerKey former, const BalloonMemberPtr& member);
  // The container is gone: the balloon shrinks or goes, and others that are short of CPUs grow.
  void Leave(ContainerKey key);
  // Balloons with fewer CPUs than their containers need grow as far as possible.
  void GrowShort();
  // Balloons with more give these back.
  void ShrinkLarge();

  // What the balloon would need with `more` milli-CPUs, and what it can have now.
  int Needed(const Balloon& balloon, int64_t more) const;
  int MostNow(const Balloon& balloon) const;
  // Whether maxPods of its type allows a container of this pod.
  bool PodFits(const Balloon& balloon, const PodSandboxId& pod) const;
  // Idle CPUs that a new balloon of a type may take.
  CpuSet FreeForNew(int type, int index) const;
  int NextIndex(int type) const;

  // Idle CPUs on which containers of the balloon may run, too.
  CpuSet SharedIdle(const Balloon& balloon) const;

 private:
  Status Resize(Balloon& balloon, int size);
  Status ResizePart(const Balloon& balloon, BalloonPart& part, int size,
                    std::vector<std::string>& dropped);
  int Target(const Balloon& balloon) const;
  void Shrink(size_t place, ContainerKey gone = {});
  CpuSet FreeFor(const Balloon& balloon) const;
  const CpuChoiceRules& RulesFor(const Balloon& balloon, const BalloonPart& part,
                                 CpuChoiceRules& changed) const;
  CpuSet LoadedFor(const BalloonPart& part) const;
  BalloonPart MakePart(int type) const;
  void SplitAdopted(BalloonPart& part, const CpuSet& cpus) const;
  CpuSet WantedBy(int type) const;
  int Instances(int type) const;  // components of composites included
  Status KeepRoom(Balloon& balloon) const;

  std::shared_ptr<const BalloonSetup> setup_;
  std::vector<Balloon> balloons_;
  CpuSet idle_;
  uint64_t last_serial_ = 0;
};

}  // namespace resmgr
