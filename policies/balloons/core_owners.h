// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Special owners, besides SeenBalloon indices:
inline constexpr int kIdleCpu = -1;  // the CPU is idle
inline constexpr int kEmptyBalloon = -2;
inline constexpr int kKnownBalloon = -3;  // a balloon of the book

// The owner of each thread of a core, in the order of their numbers: a balloon's place or, if it
// borrows the thread, its place plus the number of balloons.
using CoreOwners = std::vector<int>;

struct OwnedCore {
  CpuSet cpus;
  std::vector<int> threads;
  std::vector<CoreOwners> choices;
  std::vector<uint16_t> left;  // choices that are not excluded by the types of balloons

  const CoreOwners& choice(size_t number) const { return choices[left[number]]; }
};

struct ExplainedSize {
  int least = 0;
  int most = 0;
  int best = 0;
};

// The size and the parts that a balloon should have by its type.
struct OwnerWishes {
  ExplainedSize size;
  std::vector<CpuSet> parts;  // disjoint parts in each of which it must have a CPU
};

// Counts the work of a search in steps of about ten nanoseconds. The count does not depend on the
// machine, so a search that ends for lack of steps always has the same result.
class SearchWork {
 public:
  explicit SearchWork(int64_t left) : left_(left) {}
  void Do(size_t steps) { left_ -= static_cast<int64_t>(steps); }
  bool over() const { return left_ <= 0; }
  int64_t left() const { return left_; }

 private:
  int64_t left_;
};

// Chooses the owners of each core among its remaining choices, core by core, until no change of one
// core is an improvement. Pure.
class OwnerChoice {
 public:
  // `empty`: the number of CPUs that balloons without containers have. The references must outlive
  // this.
  OwnerChoice(const std::vector<OwnedCore>& cores, std::vector<OwnerWishes> wanted, int empty,
              SearchWork& work);

  // Returns whether all balloons have possible sizes; false also if the work is used up.
  bool Find();
  const CoreOwners& OwnersOf(size_t core) const { return cores_[core].choice(chosen_[core]); }

 private:
  struct Owned {
    int cpus = 0;
    int borrowed = 0;
    int missing = 0;                 // number of parts in which it has no CPU
    std::vector<int16_t> part_of{};  // by CPU: index of its part; -1: it is in none
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
