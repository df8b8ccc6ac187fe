// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Owners of a CPU that are none of the balloons that were seen.
inline constexpr int kIdleCpu = -1;  // the CPU is idle
inline constexpr int kEmptyBalloon = -2;
inline constexpr int kKnownBalloon = -3;  // of the book

// The owner of each thread of a core, in the order of their numbers: a balloon's place or, if it
// borrows the thread, its place plus the number of balloons.
using CoreOwners = std::vector<int>;

struct OwnedCore {
  CpuSet cpus;
  std::vector<int> threads;
  std::vector<CoreOwners> choices;
  std::vector<uint16_t> left;  // the choices that no type of a balloon excludes

  const CoreOwners& choice(size_t number) const { return choices[left[number]]; }
};

struct ExplainedSize {
  int least = 0;
  int most = 0;
  int best = 0;
};

// The wishes of the type of a balloon for its owners.
struct OwnerWishes {
  ExplainedSize size;
  std::vector<CpuSet> parts;  // it has a CPU in each of these, which have nothing in common
};

// Work of a search, in steps of about ten nanoseconds: the same on every machine, so that a search
// that ends for want of steps always has the same result.
class SearchWork {
 public:
  explicit SearchWork(int64_t left) : left_(left) {}
  void Do(size_t steps) { left_ -= static_cast<int64_t>(steps); }
  bool over() const { return left_ <= 0; }
  int64_t left() const { return left_; }

 private:
  int64_t left_;
};

// Chooses among the owners that are left of each core, core by core, until no other choice of one
// core is better. Pure.
class OwnerChoice {
 public:
  // `empty`: how many CPUs balloons without containers have. References stay with the caller.
  OwnerChoice(const std::vector<OwnedCore>& cores, std::vector<OwnerWishes> wanted, int empty,
              SearchWork& work);

  // Whether all balloons have sizes that they may have; false also at the end of the work.
  bool Find();
  const CoreOwners& OwnersOf(size_t core) const { return cores_[core].choice(chosen_[core]); }

 private:
  struct Owned {
    int cpus = 0;
    int borrowed = 0;
    int missing = 0;                 // parts without a CPU
    std::vector<int16_t> part_of{};  // by CPU; -1: in none
    std::vector<int> in_part{};
  };

  int64_t CostOf(size_t place) const;
  int64_t CostOfEmpty() const;
  void Count(int owner, int cpu, int change);
  void Choose(size_t core, size_t choice);
  bool ImproveCore(size_t core);

  const std::vector<OwnedCore>& cores_;
  const std::vector<OwnerWishes> wanted_;
  const int wanted_empty_;
  SearchWork& work_;
  std::vector<Owned> owned_;
  std::vector<size_t> chosen_;
  int empty_ = 0;
  int64_t cost_ = 0;
};

}  // namespace resmgr
