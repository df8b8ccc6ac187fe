// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "policies/balloons/balloon_book.h"
#include "policies/balloons/balloon_rules.h"

namespace resmgr {

// Takes over containers that exist, and makes a book of balloons for them. A container whose
// placement is legal does not move:
//   1. one whose placement names a balloon of its type is in that balloon, which gets the same
//      number and CPUs;
//   2. of those with CPUs only (after a loss of state), containers of one type on the same CPUs are
//      in one balloon, if it would have just that size, or else is short of CPUs that no other has;
//   3. the balloons that always exist are made from the rest;
//   4. the other containers are placed like new ones, but none can be refused.
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
    int type = 0;  // number of the balloon that the placement names
    int index = -1;
    bool placed = false;
  };
  // Containers that were in one balloon.
  struct Group {
    int type = 0;
    CpuSet visible;
    std::vector<Found*> members;
  };

  void AdoptNamed(BalloonBook& book);
  void AdoptBorrowed(BalloonBook& book) const;
  void AdoptUnnamed(BalloonBook& book, const std::vector<Group>& groups, bool fewer);
  void AdoptGroup(BalloonBook& book, int index, const Group& group, const CpuSet& own, bool exact);
  std::vector<Group> GroupUnnamed();
  CpuSet OwnOf(const BalloonBook& book, const Group& group, const CpuSet& others) const;
  CpuSet AsReported(const Found& found, const CpuSet& saved) const;
  CpuSet MissingOf(const BalloonBook& book, const Group& group, const CpuSet& own) const;
  static int IndexFor(const BalloonBook& book, const Group& group, const CpuSet& own);
  CpuSet VisibleOf(const Found& found) const;
  int TargetOf(const Group& group) const;

  const std::shared_ptr<const BalloonSetup> setup_;
  const BalloonRules rules_;
  std::vector<Found> found_;
  std::map<ContainerKey, std::string> none_;
};

}  // namespace resmgr
