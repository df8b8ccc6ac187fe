// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "policies/balloons/cpu_chooser.h"

namespace resmgr {

// The room that a balloon had for a container when it was placed.
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
  uint64_t pod_bit = 0;  // bits of Balloon::pod_bits
  std::string namespace_name{};
  std::string group{};  // the text of groupBy for it; "": no group
  int type = 0;         // the container's type; a guest's type is not the balloon's
  int64_t request = 0;  // milli-CPUs
  int64_t demand = 0;   // milli-CPUs that count for the size, by sizeBy
  bool hide_hyperthreads = false;
  bool keeps_memory = false;  // its memory nodes are left as they are
  unsigned memory_types = 0;
  std::vector<BalloonHint> hints{};  // places of its devices, if the type wants to be close to them
  std::string text{};                // the rules that placed it, as the reason begins
  std::vector<ConsideredBalloon> considered{};  // of its type, the first ones
};
using BalloonMemberPtr = std::shared_ptr<const BalloonMember>;

// One of 64 bits, by the pod's id.
uint64_t PodBit(const PodSandboxId& pod);

// The CPUs of a balloon, or of one component of it, which has CPUs of its own or components.
struct BalloonPart {
  int type = 0;
  CpuSet cpus;
  std::vector<BalloonPart> parts{};

  CpuSet All() const;
};

// A value. Whoever changes members or parts calls Recount then.
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
  // Idle CPUs that it borrows because of its containers' use, as long as no request needs them, and
  // the time of the measurement that changed them last.
  CpuSet borrowed{};
  std::optional<std::chrono::system_clock::time_point> borrowed_at{};

  // These follow from members and parts, and are kept since every decision looks at all balloons.
  int size = 0;         // CPUs
  int64_t request = 0;  // of all members, as the next one
  int64_t demand = 0;
  CpuSet all{};           // the CPUs of all components
  uint64_t key_bits = 0;  // a bit for each member's key and pod: without the bit, no such member
  uint64_t pod_bits = 0;

  void Recount();

  const CpuSet& cpus() const { return part.parts.empty() ? part.cpus : all; }
  BalloonMemberPtr MemberOf(ContainerKey key) const;  // nullptr if it is not here
  int Pods(const PodSandboxId& with) const;           // different ones, `with` included
  bool HoldsPodOf(const BalloonMember& other) const;
  // Whether the pods of both balloons, each counted once, are at most `most`; 0 is no limit.
  bool PodsFit(const Balloon& other, int64_t most) const;
};

}  // namespace resmgr
