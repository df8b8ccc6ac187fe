// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/model/plan.h"
#include "pkg/topology/machine.h"
#include "policies/topology-aware/cpu_ledger.h"
#include "policies/topology-aware/memory_ledger.h"
#include "policies/topology-aware/need.h"
#include "policies/topology-aware/pool_score.h"
#include "policies/topology-aware/pool_tree.h"

namespace resmgr {

// The name of the pool of containers on reserved CPUs.
inline constexpr std::string_view kReservedPool = "reserved";

// The grant of one container.
struct Grant {
  Need need{};
  int pool = 0;        // for reserved CPUs the smallest pool that has them all
  CpuSet exclusive{};  // with hidden hyperthreads
  std::optional<MemoryZone> zone{};
  MemoryTypes types = kAllMemoryTypes;  // where the zone may grow
  // False where there were too few huge pages: the grant then has all memory nodes of its types.
  bool counts_huge = true;
  // So far it has only the PMEM of its zone. It counts in the whole zone from the start, so that no
  // container has to move when the rest is added.
  bool cold = false;
  std::string reason{};
  std::vector<PoolScore> candidates{};  // the best ones, for explain

  // Whether the container is in its pool; a preserved container may be anywhere.
  bool IsPooled() const { return need.cpu_class != CpuClass::kPreserved; }
  // The huge pages that are counted in its zone.
  const HugeMemories& Huge() const;
};

// All grants, with the ledgers that follow from them. It is rebuilt from placements alone, so
// nothing here may be needed after a restart.
class GrantBook {
 public:
  GrantBook(const Machine& machine, const CpuSet& available, const CpuSet& reserved, bool pin_cpu,
            MilliCpu unreserved = {});
  GrantBook(const GrantBook&) = delete;
  GrantBook& operator=(const GrantBook&) = delete;

  // Forgets all grants, but not which containers moved to make room.
  void Clear();
  void Give(ContainerKey key, Grant grant);
  // nullopt when it has none.
  std::optional<Grant> Take(ContainerKey key);
  const Grant* Find(ContainerKey key) const;
  const std::map<ContainerKey, Grant>& grants() const { return grants_; }

  // Why a grant, which is not given yet, cannot begin with the PMEM of its zone; empty when it can.
  std::string WhyNotCold(const Grant& grant) const;
  // False when there is nothing to end.
  bool EndColdStart(ContainerKey key);
  // The PMEM of a zone; empty when it has none or nothing else.
  NodeSet ColdNodes(const MemoryZone& zone) const;

  // If these CPUs, which were just granted exclusively, leave pools less than their sharing
  // containers request, some of these move to the pool around, as few and as small ones as suffice.
  // Their memory stays in place. Returns the containers whose grants changed.
  std::vector<ContainerKey> MakeRoom(const CpuSet& granted);
  // Containers that MakeRoom moved go back if there is room again, the last one first, so that the
  // end of the grant for which they moved restores the former state. Returns the containers whose
  // grants changed.
  std::vector<ContainerKey> MoveBack();

  // Gives grants larger zones where memory is not safe any more (memory_ledger.h); cold grants
  // whose PMEM is not safe get the rest of their memory early. Returns the containers.
  std::vector<ContainerKey> WidenMemory();
  // Counts this memory for a grant that had none counted before, unless that would make a zone
  // unsafe.
  void CountMemory(ContainerKey key, Bytes memory);
  // Lets uncounted huge pages of all grants count, under the same condition; grants with the fewest
  // nodes come first.
  void CountHuge();
  // Grants whose memory fits into a smaller zone nearer to their CPUs get that. Returns whose.
  std::vector<ContainerKey> NarrowMemory();
  // Completes a plan with all containers whose shared CPUs changed because exclusive CPUs changed
  // from `before` to the present ones, except `keys`, which are in the plan anyway. Containers that
  // need an entry of their own are added to `keys`.
  void AddSharersOf(const CpuSet& before, std::set<ContainerKey>& keys,
                    std::vector<SharedChange>& shared) const;

  // The part of a grant that may change because of others.
  struct Place {
    int pool = 0;
    std::optional<MemoryZone> zone{};
    bool cold = false;

    friend bool operator==(const Place&, const Place&) = default;
  };
  Place PlaceOf(ContainerKey key) const;
  // The state before a trial: Restore takes the trial's effects on remaining grants back. A grant
  // that was replaced has to be given back before.
  struct Saved;
  Saved Save() const;
  void Restore(const Saved& saved);

  Placement PlacementOf(const Grant& grant) const;

  const Machine& machine() const { return machine_; }
  const PoolTree& tree() const { return tree_; }
  const CpuLedger& cpus() const { return cpus_; }
  const MemoryLedger& memory() const { return memory_; }
  // The memory needs of containers that are not estimates.
  Bytes CertainMemory() const { return certain_memory_; }
  const CpuSet& reserved() const { return reserved_; }
  bool pins_cpus() const { return pin_cpu_; }
  int reserved_pool() const { return reserved_pool_; }
  // Milli-CPUs that reserved containers do not ask for.
  int64_t ReservedRoom() const;
  int reserved_members() const { return reserved_members_; }
  int64_t reserved_used() const { return reserved_used_; }

 private:
  // A sharing container that made room. This is remembered only to move it back: after a restart
  // the container stays where it is until a rebalance.
  struct Move {
    ContainerKey key{};
    int from = 0;
    int to = 0;
    int64_t fraction = 0;
  };
  struct Sharer {
    ContainerKey key{};
    int64_t fraction = 0;
  };

  CpuLedger::Share ShareOf(const Grant& grant) const;
  // Adds those of all pools below this one.
  void AddSharersBelow(int pool, std::vector<Sharer>& sharers) const;
  std::vector<ContainerKey> NextToMakeRoom(int pool) const;
  void MoveTo(ContainerKey key, Grant& grant, int pool);
  void ForgetOldMoves();
  void Count(ContainerKey key, const Grant& grant, bool give);
  void CountHugeOf(Grant& grant);
  void AddSharer(ContainerKey key, int64_t fraction, int pool);
  void RemoveSharer(ContainerKey key, int pool);
  CpuSet Visible(const Grant& grant, const CpuSet& cpus) const;

  const Machine& machine_;
  const PoolTree tree_;
  const CpuSet reserved_;
  const int reserved_pool_;
  const bool pin_cpu_;
  CpuLedger cpus_;
  MemoryLedger memory_;
  Bytes certain_memory_{};
  int64_t reserved_used_ = 0;
  int reserved_members_ = 0;
  std::map<ContainerKey, Grant> grants_;
  std::vector<std::vector<Sharer>> sharers_;  // by pool; ascending by key
  std::set<ContainerKey> part_sharers_;       // those that see one thread of a core
  std::set<ContainerKey> cold_;               // containers whose grants are
  std::vector<Move> moves_;                   // in their order
};

struct GrantBook::Saved {
  std::vector<std::pair<ContainerKey, Place>> places{};
  std::vector<Move> moves{};
};

}  // namespace resmgr
