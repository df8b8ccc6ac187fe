// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/string_map.h"
#include "pkg/config/config_section.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Whether the exclusive CPUs of a container must be in one place, and it is refused otherwise: the
// kubelet's Topology Manager calls this single-numa-node; L3 caches and packages are possible, too.
enum class Alignment {
  kPrefer,  // split if no place has enough
  kPackage,
  kNuma,
  kL3,
};

// "prefer", "numa", "l3", "package".
std::string_view ToString(Alignment alignment);

// The option `Alignment` of a policy's section.
void DescribeAlignment(ConfigSection& section, Alignment& alignment);
// A container's annotation `alignment`, which has precedence over the option. An invalid value has
// no effect, and `ignored` has a sentence about it.
struct AnnotatedAlignment {
  std::optional<Alignment> alignment{};
  std::string ignored{};

  // The end of a reason: " (alignment l3 by its annotation)", or `ignored`; "" without annotation.
  std::string Note() const;
};
AnnotatedAlignment ReadAlignmentAnnotation(const StringMap& annotations,
                                           std::string_view container_name);
// The change that lets a container with this alignment be split (Policy::WaysIn): a change of its
// annotation if that chose the alignment, else of the policy's option.
std::string WayToSplit(Alignment alignment, const StringMap& annotations,
                       std::string_view container_name, std::string_view policy);

// A part of the machine to which exclusive CPUs may be restricted.
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

// The need of a container in a refusal: "in one NUMA node".
std::string_view InOnePlace(Alignment alignment);

// The shortage of each place: "NUMA node 0: 3 of 4 CPUs free; NUMA node 1: ...". If there are more
// than eight places, the eight with the most free CPUs, beginning with the one that has the most.
std::string DescribeLack(std::vector<std::pair<std::string_view, int>> free, int needed);

}  // namespace resmgr
