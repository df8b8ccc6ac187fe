// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/string_map.h"
#include "pkg/config/map_reader.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Whether the exclusive CPUs of a container have to lie in one place, or it is refused: what the
// kubelet's Topology Manager calls single-numa-node, for L3 caches and packages too.
enum class Alignment {
  kPrefer,  // split where no place has enough
  kPackage,
  kNuma,
  kL3,
};

// "prefer", "numa", "l3", "package", in any case.
std::optional<Alignment> ParseAlignment(std::string_view text);
std::string_view ToString(Alignment alignment);

// The option `Alignment` of a policy's section.
void ReadAlignment(MapReader& reader, Alignment& alignment);
// The annotation `alignment` of a container, which comes before the option. A value that cannot be
// read has no effect; `note` then says so, as the end of a reason.
struct AnnotatedAlignment {
  std::optional<Alignment> alignment{};
  std::string note{};
};
AnnotatedAlignment ReadAlignmentAnnotation(const StringMap& annotations,
                                           std::string_view container_name);

// A part of the machine that exclusive CPUs may have to lie in.
struct AlignedPlace {
  std::string name;  // "NUMA node 0"
  CpuSet cpus;
};

// The places of a machine by alignment; none for kPrefer. CPUs without an L3 cache form a place in
// each NUMA node, and CPUs without a NUMA node form one in each package, so every CPU has a place.
// Immutable.
class AlignedPlaces {
 public:
  explicit AlignedPlaces(const Machine& machine);

  const std::vector<AlignedPlace>& Of(Alignment alignment) const {
    return places_.at(static_cast<size_t>(alignment));
  }
  // True for kPrefer.
  bool IsAligned(Alignment alignment, const CpuSet& cpus) const;

 private:
  std::array<std::vector<AlignedPlace>, 4> places_;
};

// "in one NUMA node"; what a container needs, in a refusal.
std::string_view InOnePlace(Alignment alignment);

// What each place lacks: "NUMA node 0: 3 of 4 CPUs free; NUMA node 1: ...". The first places alone
// where there are many.
std::string DescribeLack(const std::vector<std::pair<std::string_view, int>>& free, int needed);

}  // namespace resmgr
