// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/claims/held_claims.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/annotations.h"
#include "pkg/kube/names.h"
#include "pkg/policy/expression.h"
#include "pkg/policy/privileged_namespaces.h"

namespace resmgr {
namespace {

// Larger requests are cut to this value, so that sums do not overflow; no machine has so many CPUs.
constexpr int64_t kMostMilliCpus = 1'000'000'000;
constexpr std::string_view kBalloon = "balloon.balloons";
constexpr std::string_view kCpuPreserve = "cpu.preserve";
constexpr std::string_view kMemoryPreserve = "memory.preserve";

// The type that an annotation names; empty if there is none.
std::string Named(const Pod& pod, std::string_view key, std::string_view container) {
  const StatusOr<ConfigNode> node = ReadAnnotation(pod.annotations, key, container);
  if (!node.ok() || node->kind != ConfigNode::Kind::kScalar) return {};
  return node->text;
}

// Puts the memory types of the container's annotation into `member`, or a note that it has no
// effect.
void ReadMemoryTypes(const Pod& pod, const Container& container, BalloonMember& member) {
  const StatusOr<ConfigNode> node = ReadAnnotation(pod.annotations, "memory-type", container.name);
  if (node.ok() && node->kind == ConfigNode::Kind::kNull) return;
  std::vector<std::string> words;
  if (node.ok() && node->kind == ConfigNode::Kind::kScalar) {
    for (const std::string_view word : Split(node->text, ','))
      words.emplace_back(word);
  }
  const std::optional<MemoryTypes> types =
      words.empty() ? std::nullopt : ParseBalloonMemoryTypes(words);
  if (types) {
    member.memory_types = *types;
  } else {
    member.text += "; annotation memory-type ignored: no list of dram, pmem, hbm";
  }
}

bool Matches(const BalloonType& type, const Pod& pod, const Container& container,
             std::string& why) {
  for (const Expression& expression : type.expressions) {
    if (!expression.Holds(pod, container)) continue;
    why = fmt::format("type {} by {}", type.name, expression.key());
    return true;
  }
  for (const std::string& glob : type.namespaces) {
    if (!MatchesGlob(glob, pod.namespace_name)) continue;
    why = fmt::format("type {} by namespace {}", type.name, pod.namespace_name);
    return true;
  }
  return false;
}

struct GroupPart {
  std::string_view text{};
  bool key = false;
  bool closed = true;
};

// Removes the first part of a text and returns it; nullopt at the end.
std::optional<GroupPart> NextGroupPart(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const size_t dollar = std::min(text.find('$'), text.size());
  if (dollar > 0) {
    const std::string_view plain = text.substr(0, dollar);
    text.remove_prefix(dollar);
    return GroupPart{.text = plain};
  }
  text.remove_prefix(1);
  if (text.empty() || text.front() == '$') {
    const GroupPart part{.text = text.substr(0, 1)};
    text.remove_prefix(part.text.size());
    return part;
  }
  const bool braces = text.front() == '{';
  if (braces) text.remove_prefix(1);
  const size_t found = text.find(braces ? '}' : '$');
  const size_t end = std::min(found, text.size());
  const GroupPart part{.text = text.substr(0, end), .key = true, .closed = !braces || end == found};
  text.remove_prefix(std::min(end + (braces ? 1 : 0), text.size()));
  return part;
}

// The text of groupBy for one container. Empty if a key has no value.
std::string ExpandGroup(std::string_view text, const Pod& pod, const Container& container) {
  std::string group;
  while (const std::optional<GroupPart> part = NextGroupPart(text)) {
    std::string scratch;
    const auto value =
        part->key ? ResolveKey(part->text, pod, container, scratch) : std::optional(part->text);
    if (!value) return {};
    group += *value;
  }
  return group;
}

}  // namespace

std::string BalloonRules::WhyInNone(const Pod& pod, const Container& container) const {
  if (HeldClaims::IsPart(container.key)) return {};
  if (const std::string_view why = pinning_.WhyUnbound(pod); !why.empty()) return std::string(why);
  for (const Expression& expression : setup_.options().preserve) {
    if (!expression.Holds(pod, container)) continue;
    return fmt::format("in no balloon: matches the preserve rule for {}", expression.key());
  }
  const bool asks = ReadBoolAnnotation(pod.annotations, "cpu.preserve", container.name) == true;
  if (!asks || !setup_.options().privileged.Include(pod)) return {};
  return "in no balloon: its annotation keeps its CPUs as they are, those of balloons among them";
}

int BalloonRules::FindType(std::string_view name) const {
  const int type = setup_.options().FindType(name);
  return type == setup_.claim_type() ? -1 : type;
}

std::string BalloonRules::KnownTypes() const {
  constexpr int kMostNamedTypes = 10;
  std::string names;
  const int types = setup_.types() - 1;  // without the type of claims, which is the last one
  for (int type = 0; type < std::min(types, kMostNamedTypes); ++type)
    names.append(names.empty() ? "" : ", ").append(Printable(setup_.type(type).name, 64));
  if (types > kMostNamedTypes) names += fmt::format(" and {} more", types - kMostNamedTypes);
  return names;
}

StatusOr<int> BalloonRules::TypeOf(const Pod& pod, const Container& container,
                                   std::string& why) const {
  if (HeldClaims::IsPart(container.key)) {
    why = "a balloon for the claim alone";
    return setup_.claim_type();
  }
  if (const std::string name = Named(pod, kBalloon, container.name); !name.empty()) {
    const int type = FindType(name);
    if (type < 0) {
      return InvalidArgument(
          "no balloon for annotation \"{}\": there is no such type; there are: {}",
          Printable(name, 64), KnownTypes());
    }
    why = fmt::format("type {} by annotation", name);
    // The reserved type needs a privileged namespace: any user who may create pods may write
    // annotations.
    const bool privileged = setup_.options().privileged.Include(pod);
    if (name != kReservedType || privileged) return type;
  }
  // The annotations of cri-resource-manager's pools: an unknown pool has no effect, and the rules
  // below apply.
  for (const std::string_view key : {"pool.podpools", "dynamic-pool.dynamic-pools"}) {
    const int type = FindType(Named(pod, key, container.name));
    if (type < 0 || setup_.type(type).name == kReservedType) continue;
    why = fmt::format("type {} by annotation", setup_.type(type).name);
    return type;
  }
  for (int type = 0; type < setup_.types(); ++type) {
    if (Matches(setup_.type(type), pod, container, why)) return type;
  }
  why = fmt::format("type {}, since no other matches", kDefaultType);
  return setup_.options().FindType(kDefaultType);
}

int64_t BalloonRules::DemandOf(const Requirements& requirements, const BalloonType& type) const {
  const int64_t request = std::clamp<int64_t>(requirements.cpu_request.value, 0, kMostMilliCpus);
  const int64_t limit = std::clamp<int64_t>(requirements.cpu_limit.value, request, kMostMilliCpus);
  switch (type.size_by) {
    case BalloonSizeBy::kRequest:
      return request;
    case BalloonSizeBy::kLimit:
      return limit;
    case BalloonSizeBy::kBetween:
      return request + (limit - request) / 2;
  }
  return request;
}

StatusOr<BalloonMember> BalloonRules::MemberFor(const Pod& pod, const Container& container) const {
  std::string why;
  RESMGR_ASSIGN_OR_RETURN(const int type, TypeOf(pod, container, why));
  if (setup_.MaxCpus(type, 0) == 0) {
    return InvalidArgument("balloon type {} takes no containers (maxCPUs -1)",
                           setup_.type(type).name);
  }
  return MemberOfType(pod, container, type, std::move(why));
}

// As under the other policies, the check applies only to whole CPUs of Guaranteed pods.
Status BalloonRules::CheckAsked(const Pod& pod, const Container& container) const {
  const MilliCpu request = container.requirements.cpu_request;
  if (pod.qos != QosClass::kGuaranteed || !request.IsWhole() ||
      !WantsSharedCpus(pod.annotations, container.name))
    return OkStatus();
  return InvalidArgument(
      "annotation {}: the policy balloons gives a container no CPUs of its own beside shared ones: "
      "leave the annotation out and choose a balloon type with shareIdleCPUsInSame, or use the "
      "policy static, static-plus or topology-aware",
      kCpuSharedAnnotation);
}

BalloonMember BalloonRules::RunningMember(const Pod& pod, const Container& container) const {
  StatusOr<BalloonMember> member = MemberFor(pod, container);
  if (member.ok()) return *std::move(member);
  const int type = setup_.options().FindType(kDefaultType);
  return MemberOfType(pod, container, type,
                      fmt::format("type {} ({})", kDefaultType, Message(member.status())));
}

BalloonMember BalloonRules::MemberOfType(const Pod& pod, const Container& container, int index,
                                         std::string why) const {
  BalloonMember member{.key = container.key,
                       .pod = pod.id,
                       .pod_bit = PodBit(pod.id),
                       .namespace_name = pod.namespace_name,
                       .group = {},
                       .type = index,
                       .text = std::move(why)};
  const BalloonType& type = setup_.type(index);
  if (!type.group_by.empty()) member.group = ExpandGroup(type.group_by, pod, container);
  const Requirements& requirements = container.requirements;
  member.request = std::clamp<int64_t>(requirements.cpu_request.value, 0, kMostMilliCpus);
  member.demand = DemandOf(requirements, type);
  member.hide_hyperthreads =
      ReadBoolAnnotation(pod.annotations, "hide-hyperthreads", container.name)
          .value_or(type.hide_hyperthreads);
  const bool keeps = ReadBoolAnnotation(pod.annotations, kMemoryPreserve, container.name) == true;
  member.keeps_memory = keeps && setup_.options().privileged.Include(pod);
  member.memory_types = type.memory_types;
  ReadMemoryTypes(pod, container, member);
  for (const LocalityHint& hint : container.hints) {
    const std::string_view path = std::string_view(hint.source).substr(hint.source.find(' ') + 1);
    const bool wanted =
        type.alone || std::ranges::any_of(type.close_to, [path](const std::string& glob) {
          return MatchesGlob(glob, path);
        });
    CpuSet cpus = hint.cpus;
    for (const int node : hint.nodes) {
      const NumaNode* const found = setup_.machine().FindNode(node);
      if (hint.cpus.empty() && found != nullptr) cpus |= CpusNearNode(*found);
    }
    if (wanted && !cpus.empty()) member.hints.push_back({fmt::format("close to {}", path), cpus});
  }
  member.text += container.needs_note;
  for (const std::string& ignored : Unheeded(pod, container))
    member.text += fmt::format("; {}", ignored);
  return member;
}

std::vector<std::string> BalloonRules::Unheeded(const Pod& pod, const Container& container) const {
  std::vector<std::string> ignored;
  if (setup_.options().privileged.Include(pod)) return ignored;
  for (const std::string_view key : {kCpuPreserve, kMemoryPreserve}) {
    if (ReadBoolAnnotation(pod.annotations, key, container.name) == true) {
      ignored.push_back(PrivilegedNamespaces::WhyIgnored(key, pod, "balloons"));
    }
  }
  if (Named(pod, kBalloon, container.name) == kReservedType) {
    ignored.push_back(PrivilegedNamespaces::WhyIgnored(kBalloon, pod, "balloons"));
  }
  return ignored;
}

Status CheckGroup(std::string_view text) {
  while (const std::optional<GroupPart> part = NextGroupPart(text)) {
    if (!part->closed)
      return InvalidArgument("\"{}\" has ${{ without }}", Printable(part->text, 64));
    if (!part->key) continue;
    const ConfigNode expression = MapNode({{.key = "key", .value = ScalarNode(part->text)},
                                           {.key = "operator", .value = ScalarNode("Exists")}});
    if (Expression::Parse(expression).ok()) continue;
    return InvalidArgument("there is no key \"{}\"; the keys are those of matchExpressions",
                           Printable(part->text, 64));
  }
  return OkStatus();
}

}  // namespace resmgr
