// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pkg/policy/container_use.h"
#include "policies/balloons/balloon_book.h"

namespace resmgr {

// Balloons whose containers share CPUs anyway, and which give some up for a container that would
// find none: they have at least two containers, and their types neither keep containers apart nor
// ask for certain CPUs. They keep two thirds of what their containers need.
class BalloonDonors {
 public:
  // Finds the donors that have CPUs in `part`. The book must outlive this, and no balloon may be
  // removed meanwhile.
  BalloonDonors(BalloonBook& book, const CpuSet& part);

  // The number of CPUs in the part that the donors can give; each keeps its minimum size, and at
  // least one CPU.
  int most() const;
  // Makes so many CPUs of the part idle: first those of balloons that have most of their CPUs
  // elsewhere, then those of balloons that would be least short.
  void Give(int count);
  // Lets the donors grow again with idle CPUs. False: one of them still lacks more CPUs than it
  // may.
  bool GrowAgain(bool may_lack);

 private:
  struct Donor {
    size_t place = 0;
    bool at_home = false;  // most of its CPUs are in the part
    int can = 0;
    int gives = 0;
  };
  // The containers' demand per CPU if the balloon had `size` CPUs.
  int64_t LoadOf(const Donor& donor, int size) const;
  bool IsDonor(const Balloon& balloon) const;

  BalloonBook& book_;
  const CpuSet part_;
  std::vector<Donor> donors_;
};

// Lets balloons of types that follow use borrow idle CPUs and give them back. Nothing changes while
// the use is between the two bounds of the type (the dead band), or before the type's pause since
// the last change is over. A change aims at the middle of the band, and is at most half of the
// balloon's CPUs. If too few CPUs are idle, each goes to the balloon with the highest use per CPU
// at that point. A balloon with a container that was not measured does not shrink. Pure.
void FollowMeasuredUse(BalloonBook& book, const policy::MeasuredUse& use);

}  // namespace resmgr
