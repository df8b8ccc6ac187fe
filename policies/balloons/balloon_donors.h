// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "policies/balloons/balloon_book.h"

namespace resmgr {

// Balloons whose containers share their CPUs anyway, and which give some up where a container would
// find none: those with two containers at least, of types that neither keep containers apart nor
// name the CPUs that they want. They keep two thirds of what their containers need.
class BalloonDonors {
 public:
  // Those that have CPUs of `part`. The book must outlive it, and no balloon is removed meanwhile.
  BalloonDonors(BalloonBook& book, const CpuSet& part);

  // The number of CPUs of the part that they have, without the last one of each balloon.
  int most() const;
  // So many of them become idle: first those of balloons that have most of
  // theirs elsewhere, then of those that lack the least.
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

}  // namespace resmgr
