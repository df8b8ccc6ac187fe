// SPDX-License-Identifier: Apache-2.0
#include "pkg/allocator/alignment.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/annotations.h"

namespace resmgr {
namespace {

constexpr std::string_view kAnnotation = "alignment";
constexpr std::initializer_list<Alignment> kAlignments = {Alignment::kPrefer, Alignment::kNuma,
                                                          Alignment::kL3, Alignment::kPackage};
constexpr size_t kNamedPlaces = 8;   // limit of places named in a refusal
constexpr size_t kMostOfValue = 64;  // bytes of a wrong value shown in a message

// Accepts the words of ToString in upper or lower case.
std::optional<Alignment> ParseAlignment(std::string_view text) {
  for (const Alignment alignment : kAlignments) {
    if (EqualsIgnoreCase(text, ToString(alignment))) return alignment;
  }
  return std::nullopt;
}

// Returns `groups`, and in each part of `around` one more place for the CPUs that are in no group.
std::vector<AlignedPlace> PlacesIn(std::vector<AlignedPlace> groups, const CpuSet& online,
                                   const std::vector<AlignedPlace>& around,
                                   std::string_view without) {
  CpuSet left = online;
  for (const AlignedPlace& group : groups)
    left -= group.cpus;
  for (const AlignedPlace& part : around) {
    const CpuSet rest = left & part.cpus;
    if (!rest.empty()) groups.push_back({fmt::format("{} {}", part.name, without), rest});
  }
  return groups;
}

std::vector<AlignedPlace> Named(std::string_view kind, const std::vector<CpuSet>& groups) {
  std::vector<AlignedPlace> places;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].empty()) places.push_back({fmt::format("{} {}", kind, i), groups[i]});
  }
  return places;
}

std::vector<AlignedPlace> NodePlaces(const Machine& machine) {
  std::vector<AlignedPlace> places;
  for (const NumaNode& node : machine.nodes()) {
    if (!node.cpus.empty()) places.push_back({fmt::format("NUMA node {}", node.id), node.cpus});
  }
  return places;
}

}  // namespace

std::string_view ToString(Alignment alignment) {
  switch (alignment) {
    case Alignment::kPrefer:
      return "prefer";
    case Alignment::kPackage:
      return "package";
    case Alignment::kNuma:
      return "numa";
    case Alignment::kL3:
      return "l3";
  }
  return "";
}

void DescribeAlignment(ConfigSection& section, Alignment& alignment) {
  section.Choice("Alignment", kAlignments, alignment,
                 "`numa`, `l3`, `package`: a container whose exclusive CPUs do not fit into one "
                 "NUMA node, L3 cache or package is refused");
}

AnnotatedAlignment ReadAlignmentAnnotation(const StringMap& annotations,
                                           std::string_view container_name) {
  const StatusOr<ConfigNode> value = ReadAnnotation(annotations, kAnnotation, container_name);
  AnnotatedAlignment annotated;
  if (value.ok() && value->kind == ConfigNode::Kind::kNull) return annotated;
  if (value.ok() && value->kind == ConfigNode::Kind::kScalar) {
    annotated.alignment = ParseAlignment(value->text);
  }
  if (annotated.alignment) return annotated;
  const bool scalar = value.ok() && value->kind == ConfigNode::Kind::kScalar;
  annotated.ignored =
      fmt::format("annotation {} ignored: unknown value{}: use {}, {}, {} or {}", kAnnotation,
                  scalar ? fmt::format(" \"{}\"", Printable(value->text, kMostOfValue)) : "",
                  ToString(Alignment::kPrefer), ToString(Alignment::kNuma),
                  ToString(Alignment::kL3), ToString(Alignment::kPackage));
  return annotated;
}

std::string AnnotatedAlignment::Note() const {
  if (alignment) {
    return fmt::format(" ({} {} by its annotation)", kAnnotation, ToString(*alignment));
  }
  return ignored.empty() ? "" : fmt::format(" ({})", ignored);
}

std::string WayToSplit(Alignment alignment, const StringMap& annotations,
                       std::string_view container_name, std::string_view policy) {
  const auto annotation = FindAnnotation(annotations, kAnnotation, container_name);
  if (annotation && ReadAlignmentAnnotation(annotations, container_name).alignment) {
    return fmt::format("the annotation {}: {} (now {})", Printable(annotation->key),
                       ToString(Alignment::kPrefer), ToString(alignment));
  }
  return fmt::format("policy.{}.Alignment: {}", policy, ToString(Alignment::kPrefer));
}

AlignedPlaces::AlignedPlaces(const Machine& machine) {
  auto& packages = places_[static_cast<size_t>(Alignment::kPackage)];
  auto& nodes = places_[static_cast<size_t>(Alignment::kNuma)];
  auto& caches = places_[static_cast<size_t>(Alignment::kL3)];
  packages = Named("package", machine.packages());
  nodes = PlacesIn(NodePlaces(machine), machine.online(), packages, "without NUMA node");
  caches =
      PlacesIn(Named("L3 cache", machine.l3_groups()), machine.online(), nodes, "without L3 cache");
}

bool AlignedPlaces::IsAligned(Alignment alignment, const CpuSet& cpus) const {
  if (alignment == Alignment::kPrefer) return true;
  return std::ranges::any_of(
      Of(alignment), [&](const AlignedPlace& place) { return cpus.IsSubsetOf(place.cpus); });
}

std::string_view InOnePlace(Alignment alignment) {
  switch (alignment) {
    case Alignment::kPrefer:
      return "";
    case Alignment::kPackage:
      return "in one package";
    case Alignment::kNuma:
      return "in one NUMA node";
    case Alignment::kL3:
      return "in one L3 cache";
  }
  return "";
}

std::string DescribeLack(std::vector<std::pair<std::string_view, int>> free, int needed) {
  if (free.size() > kNamedPlaces) {
    std::ranges::stable_sort(free, std::ranges::greater(),
                             [](const auto& place) { return place.second; });
  }
  std::string text;
  for (size_t i = 0; i < std::min(free.size(), kNamedPlaces); ++i) {
    text += fmt::format("{}{}: {} of {} free", text.empty() ? "" : "; ", free[i].first,
                        free[i].second, CountText(needed, "CPU"));
  }
  if (free.size() > kNamedPlaces) {
    text += fmt::format("; {} more have no more than {}", free.size() - kNamedPlaces,
                        free[kNamedPlaces - 1].second);
  }
  return text;
}

}  // namespace resmgr
