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
#include "pkg/topology/core_sets.h"
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
  int pool = 0;        // on reserved CPUs: the smallest pool that has all of these
  CpuSet exclusive{};  // including hidden hyperthreads
  std::optional<MemoryZone> zone{};
  MemoryTypes types = kAllMemoryTypes;  // types of memory that the zone may have
  // Whether its huge pages are counted. Not if there were too few of them: the grant then has all
  // memory nodes of its types.
  bool counts_huge = true;
  // Cold start: so far the container has only the PMEM of its zone. The grant counts in the whole
  // zone from the start, so that no container has to move when the rest is added.
  bool cold = false;
  std::string reason{};
  std::vector<PoolScore> candidates{};  // the best ones, for explain

  // Whether the container is in its pool; a preserved container may run anywhere.
  bool IsPooled() const { return need.cpu_class != CpuClass::kPreserved; }
  // The huge pages that are counted in its zone.
  const HugeMemories& Huge() const;
};

// All grants, and the ledgers computed from them. It is rebuilt from placements alone, so nothing
// else in it may be needed after a restart.
class GrantBook {
 public:
  // `offline`: CPUs that went offline since the machine was read.
  GrantBook(const Machine& machine, const CpuSet& available, const CpuSet& reserved, bool pin_cpu,
            MilliCpu unreserved = {}, const CpuSet& offline = {});
  GrantBook(const GrantBook&) = delete;
  GrantBook& operator=(const GrantBook&) = delete;

  // Forgets all grants, but not which containers MakeRoom moved.
  void Clear();
  // Takes over the grants of a book of the same machine, and which containers MakeRoom moved there.
  // This book must be empty.
  void CopyFrom(const GrantBook& other);
  void Give(ContainerKey key, Grant grant);
  // Removes and returns the container's grant; nullopt if it has none.
  std::optional<Grant> Take(ContainerKey key);
  const Grant* Find(ContainerKey key) const;
  const std::map<ContainerKey, Grant>& grants() const { return grants_; }

  // Why a grant that is not in the book yet cannot begin with only the PMEM of its zone; empty if
  // it can.
  std::string WhyNotCold(const Grant& grant) const;
  // False if the container has no cold start.
  bool EndColdStart(ContainerKey key);
  // The PMEM nodes of a zone; empty if it has none, or nothing else.
  NodeSet ColdNodes(const MemoryZone& zone) const;

  // If these CPUs, which were just granted exclusively, leave pools less than their sharing
  // containers request, some of these move to the pool around, as few and as small ones as suffice.
  // Their memory stays in place. Returns the containers whose grants changed.
  std::vector<ContainerKey> MakeRoom(const CpuSet& granted);
  // Moves containers back that MakeRoom moved, as far as there is room again, the last one first:
  // so the end of a grant restores the state before it. Returns the containers whose grants
  // changed.
  std::vector<ContainerKey> MoveBack();

  // Gives grants larger zones if their memory is not safe any more (memory_ledger.h); cold grants
  // whose PMEM is not safe get the rest of their memory early. Returns these containers.
  std::vector<ContainerKey> WidenMemory();
  // Counts this memory for a grant without counted memory, unless a zone would become unsafe.
  void CountMemory(ContainerKey key, Bytes memory);
  // Counts huge pages of grants that were not counted, unless a zone would become unsafe; grants
  // with the fewest nodes come first.
  void CountHuge();
  // Gives grants a smaller zone nearer to their CPUs if their memory fits there. Returns their
  // containers.
  std::vector<ContainerKey> NarrowMemory();
  // Completes a plan with all containers whose shared CPUs differ because the exclusive CPUs
  // changed since `before`, except `keys`, which are in the plan anyway. Containers that need an
  // entry of their own are added to `keys`.
  void AddSharersOf(const CpuSet& before, std::set<ContainerKey>& keys,
                    std::vector<SharedChange>& shared) const;

  // The part of a grant that decisions about other containers may change.
  struct Place {
    int pool = 0;
    std::optional<MemoryZone> zone{};
    bool cold = false;

    friend bool operator==(const Place&, const Place&) = default;
  };
  Place PlaceOf(ContainerKey key) const;
  // The state before a trial. Restore takes back the trial's effects on the other grants; the grant
  // that the trial replaced must be given back before.
  struct Saved;
  Saved Save() const;
  void Restore(const Saved& saved);

  Placement PlacementOf(const Grant& grant) const;

  const Machine& machine() const { return machine_; }
  const CpuSet& offline() const { return offline_; }
  const OnlineCores& cores() const { return cores_; }
  const PoolTree& tree() const { return tree_; }
  const CpuLedger& cpus() const { return cpus_; }
  const MemoryLedger& memory() const { return memory_; }
  // The memory that containers need for certain, without estimates.
  Bytes CertainMemory() const { return certain_memory_; }
  const CpuSet& reserved() const { return reserved_; }
  bool pins_cpus() const { return pin_cpu_; }
  int reserved_pool() const { return reserved_pool_; }
  // The milli-CPUs of the reserved CPUs that no reserved container requests.
  int64_t ReservedRoom() const;
  int reserved_members() const { return reserved_members_; }
  int64_t reserved_used() const { return reserved_used_; }

 private:
  // A move of a sharing container that made room, remembered only to move the container back. After
  // a restart it stays where it is until a rebalance.
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
  // Adds the sharing containers of all pools below this one.
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
  const CpuSet offline_;
  const OnlineCores cores_;
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
  std::set<ContainerKey> part_sharers_;       // sharers that see only one thread of each core
  std::set<ContainerKey> cold_;               // containers in a cold start
  std::vector<Move> moves_;                   // in the order in which they were made
};

struct GrantBook::Saved {
  std::vector<std::pair<ContainerKey, Place>> places{};
  std::vector<Move> moves{};
};

}  // namespace resmgr
