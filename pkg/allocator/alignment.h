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

// Whether the exclusive CPUs of a container must lie in one place. If they must and no place has
// enough free CPUs, the container is refused: the kubelet's Topology Manager calls kNuma
// single-numa-node.
enum class Alignment {
  kPrefer,  // split if no place has enough
  kPackage,
  kNuma,
  kL3,
};

// "prefer", "numa", "l3", "package".
std::string_view ToString(Alignment alignment);

// Adds the option `Alignment` to a policy's section.
void DescribeAlignment(ConfigSection& section, Alignment& alignment);
// A container's annotation `alignment`, which has precedence over the option. An invalid value has
// no effect: `ignored` has a sentence that says so.
struct AnnotatedAlignment {
  std::optional<Alignment> alignment{};
  std::string ignored{};

  // The text appended to a placement's reason: " (alignment l3 by its annotation)", or `ignored`;
  // "" without annotation.
  std::string Note() const;
};
AnnotatedAlignment ReadAlignmentAnnotation(const StringMap& annotations,
                                           std::string_view container_name);
// The change that lets a container with this alignment be split (Policy::WaysIn): a change of its
// annotation if the annotation set the alignment, else of the policy's option.
std::string WayToSplit(Alignment alignment, const StringMap& annotations,
                       std::string_view container_name, std::string_view policy);

// A part of the machine to which exclusive CPUs may be restricted.
struct AlignedPlace {
  std::string name;  // "NUMA node 0"
  CpuSet cpus;
};

// The places of a machine for each alignment; none for kPrefer. The CPUs without an L3 cache form
// one more place in each NUMA node, and the CPUs without a NUMA node one in each package, so every
// CPU has a place. Immutable.
class AlignedPlaces {
 public:
  explicit AlignedPlaces(const Machine& machine);

  const std::vector<AlignedPlace>& Of(Alignment alignment) const {
    return places_.at(static_cast<size_t>(alignment));
  }
  // Whether all of `cpus` lie in one place; always true for kPrefer.
  bool IsAligned(Alignment alignment, const CpuSet& cpus) const;

 private:
  std::array<std::vector<AlignedPlace>, 4> places_;
};

// The phrase for refusals: "in one NUMA node".
std::string_view InOnePlace(Alignment alignment);

// The free CPUs of each place, none of which has enough: "NUMA node 0: 3 of 4 CPUs free; ...". If
// there are more than eight places, those with the most free CPUs are named first, and only eight.
std::string DescribeLack(std::vector<std::pair<std::string_view, int>> free, int needed);

}  // namespace resmgr
