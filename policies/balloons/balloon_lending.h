// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pkg/policy/container_use.h"
#include "policies/balloons/balloon_book.h"

namespace resmgr {

// Balloons whose containers share their CPUs anyway, and which give some up where a container would
// find none: those with two containers at least, of types that neither keep containers apart nor
// name the CPUs that they want. They keep two thirds of what their containers need.
class BalloonDonors {
 public:
  // Finds donors among the balloons that have CPUs of `part`. The book must outlive it, and no
  // balloon is removed meanwhile.
  BalloonDonors(BalloonBook& book, const CpuSet& part);

  // The number of CPUs of the part that they have, without the last one of each balloon.
  int most() const;
  // Makes so many of these CPUs idle: first those of balloons that have most of their CPUs
  // elsewhere, then those of balloons that lack the least.
  void Give(int count);
  // The donors grow again as far as CPUs are idle. False: one of them lacks more then than it may.
  bool GrowAgain(bool may_lack);

 private:
  struct Donor {
    size_t place = 0;
    bool at_home = false;  // it has most of its CPUs in the part
    int can = 0;
    int gives = 0;
  };
  // The request of the containers for each CPU, if the balloon had `size` CPUs.
  int64_t LoadOf(const Donor& donor, int size) const;
  bool IsDonor(const Balloon& balloon) const;

  BalloonBook& book_;
  const CpuSet part_;
  std::vector<Donor> donors_;
};

// Lets balloons of types that follow use borrow idle CPUs, and give them back. Nothing changes
// while the use of a balloon's CPUs is between the bounds of its type (the dead band), nor before
// the type's pause has passed since the last change. A change leads to the middle of the band, by
// half of the balloon's CPUs at most. Where too few CPUs are idle, each goes to the balloon that
// then uses most of each of its CPUs. A balloon with a container that was not measured does not
// shrink. Pure.
void FollowMeasuredUse(BalloonBook& book, const policy::MeasuredUse& use);

}  // namespace resmgr
