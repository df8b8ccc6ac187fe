// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/topology/memory_types.h"
#include "policies/balloons/cpu_chooser.h"

namespace resmgr {

// A balloon that was considered for a container, with its room at that time.
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
  uint64_t pod_bit = 0;  // the pod's bit in Balloon::pod_bits
  std::string namespace_name{};
  std::string group{};  // the text of groupBy for this container; "": it is in no group
  int type = 0;         // the container's type; for a guest not the balloon's type
  int64_t request = 0;  // milli-CPUs
  int64_t demand = 0;   // milli-CPUs that count for the balloon's size (sizeBy)
  bool hide_hyperthreads = false;
  bool keeps_memory = false;  // its memory nodes are left as they are
  MemoryTypes memory_types = 0;
  std::vector<BalloonHint> hints{};  // near its devices, if the type wants that
  std::string text{};                // the rules that placed it: the beginning of the reason
  std::vector<ConsideredBalloon> considered{};  // the first balloons of its type
};
using BalloonMemberPtr = std::shared_ptr<const BalloonMember>;

// Maps the pod's id to one of 64 bits.
uint64_t PodBit(const PodSandboxId& pod);

// The CPUs of a balloon or of one of its components. A part has CPUs or components, but not both.
struct BalloonPart {
  int type = 0;
  CpuSet cpus;
  std::vector<BalloonPart> parts{};

  CpuSet All() const;
  // The CPUs of its innermost components, in their order; those of the part if it has none.
  std::vector<CpuSet> Leaves() const;
};

// A value type. Recount must be called after each change of members or parts.
struct Balloon {
  int type = 0;
  int index = 0;
  uint64_t serial = 0;  // in the order of creation
  BalloonPart part;
  CpuSet room{};  // for growWithin: CPUs kept for this balloon, its own included; else empty
  std::vector<BalloonMemberPtr> members{};
  std::vector<std::string> dropped{};  // hints that its last growth could not follow
  // The CPUs that the balloon gained with the container `grown_by`; empty after the next change of
  // its size. They leave with this container, so that a creation that is taken back leaves no
  // trace.
  CpuSet grown{};
  ContainerKey grown_by{};
  // Idle CPUs that the balloon borrows because of its containers' use, as long as no request needs
  // them, and the time of the measurement by which they were changed last.
  CpuSet borrowed{};
  std::optional<std::chrono::system_clock::time_point> borrowed_at{};

  // Computed from members and parts, and stored since every decision looks at all balloons.
  int size = 0;         // CPUs
  int64_t request = 0;  // sum of the members' requests
  int64_t demand = 0;
  int64_t guest_demand = 0;  // the part of it that members of other types need
  CpuSet all{};              // the CPUs of all components
  uint64_t key_bits = 0;     // a bit for each member's key and pod: without the bit, no such member
  uint64_t pod_bits = 0;

  void Recount();

  const CpuSet& cpus() const { return part.parts.empty() ? part.cpus : all; }
  BalloonMemberPtr MemberOf(ContainerKey key) const;  // nullptr if it is not here
  // The number of different pods, that of `with` included; those of guests only beside a guest.
  int Pods(const BalloonMember& with) const;
  bool HoldsPodOf(const BalloonMember& other) const;
  // Whether all members may join `other`, of the same type, by this limit of pods; 0: there is
  // none.
  bool PodsFit(const Balloon& other, int64_t most) const;
};

}  // namespace resmgr
