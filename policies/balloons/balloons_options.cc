// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloons_options.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/config/config_node.h"
#include "pkg/config/config_section.h"
#include "pkg/kube/names.h"
#include "policies/balloons/balloon_rules.h"

namespace resmgr {
namespace {

// Limits of the configuration, since the cost of a decision grows with each entry.
constexpr size_t kMostDevices = 256;  // different devices of all types
constexpr int kMostLevels = 8;        // depth of components in components
constexpr int64_t kMostLeaves = 256;  // innermost components of a type

// The types that exist without being configured.
void AddBuiltInTypes(BalloonsOptions& options) {
  const bool reserved = options.FindType(kReservedType) >= 0;
  const bool fallback = options.FindType(kDefaultType) >= 0;
  BalloonType type;
  type.balance = options.balance;
  type.spread_cores = options.spread_cores;
  type.pin_memory = options.pin_memory;
  type.priority = 2;
  type.min_balloons = 1;
  if (!reserved) {
    type.name = kReservedType;
    options.types.insert(options.types.begin(), type);
  }
  if (!fallback) {
    type.name = kDefaultType;
    type.max_balloons = 1;
    options.types.push_back(type);
  }
  BalloonType& own = options.types[static_cast<size_t>(options.FindType(kReservedType))];
  if (own.instances.number == 0) {
    own.min_balloons = std::max<int64_t>(own.min_balloons, 1);
    own.max_balloons = std::max(own.max_balloons, own.min_balloons);
  }
  own.namespaces.emplace_back("kube-system");
  own.namespaces.insert(own.namespaces.end(), options.reserved_namespaces.begin(),
                        options.reserved_namespaces.end());
}

// A type whose components, and their components, are being counted.
struct Expansion {
  enum class State { kUnknown, kOpen, kDone } state = State::kUnknown;
  int levels = 0;
  int64_t leaves = 1;
};

// Counts the innermost components of each type once. InvalidArgument if a type is a component of
// itself, or is too large.
Status Expand(const BalloonsOptions& options, int type, std::vector<Expansion>& known) {
  const BalloonType& own = options.types[static_cast<size_t>(type)];
  Expansion& here = known[static_cast<size_t>(type)];
  if (here.state == Expansion::State::kDone) return OkStatus();
  if (here.state == Expansion::State::kOpen) {
    return InvalidArgument("{} is a component of itself", own.name);
  }
  here.state = Expansion::State::kOpen;
  if (own.composite()) here.leaves = 0;
  for (const int component : own.components) {
    RESMGR_RETURN_IF_ERROR(Expand(options, component, known));
    const Expansion& below = known[static_cast<size_t>(component)];
    here.levels = std::max(here.levels, below.levels + 1);
    here.leaves =
        own.balance_components ? std::max(here.leaves, below.leaves) : here.leaves + below.leaves;
  }
  if (here.levels > kMostLevels || here.leaves > kMostLeaves) {
    return InvalidArgument("{} has {} levels of components and {} parts; at most {} and {} may be",
                           own.name, here.levels, here.leaves, kMostLevels, kMostLeaves);
  }
  here.state = Expansion::State::kDone;
  return OkStatus();
}

Status CheckDevices(const BalloonsOptions& options) {
  std::set<std::string_view> devices;
  for (const BalloonType& type : options.types)
    devices.insert(type.close_to.begin(), type.close_to.end());
  if (devices.size() <= kMostDevices) return OkStatus();
  return InvalidArgument("preferCloseToDevices of all types has {} devices; at most {} are read",
                         devices.size(), kMostDevices);
}

Status CheckLoads(const BalloonsOptions& options, const ConfigNode& section) {
  Problems problems;
  std::vector<std::string_view> known;
  for (const BalloonLoadClass& load : options.load_classes)
    known.emplace_back(load.name);
  const auto check = [&](std::string_view owner, std::string_view name) {
    if (std::ranges::find(known, name) != known.end()) return;
    problems.Add(ErrorAt(section, "policy.balloons",
                         fmt::format("{}: there is no load class \"{}\"{}", owner,
                                     Printable(name, 64), DidYouMean(name, known))));
  };
  for (const BalloonType& type : options.types) {
    for (const std::string& name : type.loads)
      check(type.name, name);
  }
  for (const BalloonLoadClass& load : options.load_classes) {
    for (const std::string& name : load.avoids)
      check(load.name, name);
  }
  return problems.ToStatus();
}

// Refuses keys that no container has, which would group nothing without notice.
Status CheckGroups(const BalloonsOptions& options, const ConfigNode& section) {
  for (const BalloonType& type : options.types) {
    const Status status = CheckGroup(type.group_by);
    if (status.ok()) continue;
    return ErrorAt(section, "policy.balloons",
                   fmt::format("{}: groupBy: {}", type.name, Message(status)));
  }
  return OkStatus();
}

// A claim that is not a glob is the name of one interrupt, which must be a controllable one.
Status CheckClaims(const BalloonsOptions& options, const ConfigNode& section) {
  const std::vector<std::string>& globs = options.controllable_interrupts;
  for (const BalloonType& type : options.types) {
    for (const std::string& claim : type.irq_claims) {
      if (claim.find_first_of("*?[") != std::string::npos) continue;
      const bool allowed = std::ranges::any_of(
          globs, [&claim](const std::string& glob) { return MatchesGlob(glob, claim); });
      if (allowed) continue;
      return ErrorAt(section, "policy.balloons.balloonTypes",
                     fmt::format("{}: irqClaim: denied interrupt \"{}\": controllableInterrupts "
                                 "does not have it",
                                 type.name, Printable(claim, 64)));
    }
  }
  return OkStatus();
}

// Replaces names of types by their indices, after all types are known.
Status LinkTypes(const ConfigNode& section, BalloonsOptions& options) {
  Problems problems;
  const auto add = [&](std::string_view what) {
    problems.Add(ErrorAt(section, "policy.balloons.balloonTypes", what));
  };
  std::vector<std::string_view> known;
  std::set<std::string_view> twice;
  for (const BalloonType& type : options.types)
    known.emplace_back(type.name);
  for (BalloonType& type : options.types) {
    const std::string_view name = type.name;
    if (std::ranges::count(known, name) > 1) {
      if (twice.insert(name).second)
        add(fmt::format("type \"{}\" is there twice", Printable(name, 64)));
      continue;
    }
    for (const std::string& component : type.component_names) {
      type.components.push_back(options.FindType(component));
      const int index = type.components.back();
      if (index < 0) {
        add(fmt::format("{}: there is no component type \"{}\"{}", name, Printable(component, 64),
                        DidYouMean(component, known)));
      } else if (options.types[static_cast<size_t>(index)].own_cpus) {
        add(fmt::format("{}: component type \"{}\" has cpus, which only its own balloon gets", name,
                        Printable(component, 64)));
      }
    }
  }
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  std::vector<Expansion> expansions(options.types.size());
  Status fits = CheckDevices(options);
  for (int type = 0; fits.ok() && type < static_cast<int>(options.types.size()); ++type)
    fits = Expand(options, type, expansions);
  if (!fits.ok()) return ErrorAt(section, "policy.balloons.balloonTypes", Message(fits));
  RESMGR_RETURN_IF_ERROR(CheckClaims(options, section));
  RESMGR_RETURN_IF_ERROR(CheckGroups(options, section));
  return CheckLoads(options, section);
}

constexpr size_t kMostNamed = 16;
constexpr size_t kMostText = 64;
constexpr std::string_view kPodResources = "podresourceapi:";

// Adds a note: the sentence and the first kMostNamed of `names`. Adds nothing if there are no
// names.
void Tell(std::string_view sentence, const std::vector<std::string>& names,
          std::vector<std::string>& notes) {
  if (names.empty()) return;
  std::string list;
  for (size_t i = 0; i < names.size() && i < kMostNamed; ++i)
    list += fmt::format("{}{}", i == 0 ? "" : ", ", Printable(names[i], kMostText));
  if (names.size() > kMostNamed) list += fmt::format(" and {} more", names.size() - kMostNamed);
  notes.push_back(fmt::format("policy.balloons: {}: {}", sentence, list));
}

}  // namespace

std::optional<MemoryTypes> ParseBalloonMemoryTypes(const std::vector<std::string>& words) {
  MemoryTypes bits = 0;
  for (const std::string& word : words) {
    const std::optional<MemoryType> type = ParseMemoryType(word);
    if (!type) return std::nullopt;
    bits |= BitOf(*type);
  }
  return bits;
}

int BalloonsOptions::FindType(std::string_view name) const {
  const auto found = std::ranges::find(types, name, &BalloonType::name);
  return found == types.end() ? -1 : static_cast<int>(found - types.begin());
}

const BalloonLoadClass* BalloonsOptions::FindLoad(std::string_view name) const {
  const auto found = std::ranges::find(load_classes, name, &BalloonLoadClass::name);
  return found == load_classes.end() ? nullptr : &*found;
}

StatusOr<BalloonsOptions> ReadBalloonsOptions(const ConfigNode* section,
                                              std::vector<ConfigKey>* keys) {
  BalloonsOptions options;
  const ConfigNode nothing;
  const ConfigNode& node = section == nullptr ? nothing : *section;
  Problems problems;
  ConfigSection reader(node, "policy.balloons");
  DescribeBalloons(reader, options, problems);
  problems.Add(reader.Finish());
  problems.Add(CheckPolicyClasses(node, "policy.balloons"));
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  if (keys != nullptr) {
    ConfigSection writer(*keys);
    DescribeBalloons(writer, options, problems);
  }
  AddBuiltInTypes(options);
  RESMGR_RETURN_IF_ERROR(LinkTypes(node, options));
  return options;
}

std::vector<std::string> BalloonsWithoutEffect(const ConfigNode& section) {
  const StatusOr<BalloonsOptions> options = ReadBalloonsOptions(&section);
  if (!options.ok()) return {};
  std::vector<std::string> devices;
  for (const BalloonType& type : options->types) {
    for (const std::string& device : type.close_to) {
      if (options->pod_resource_api || !device.starts_with(kPodResources)) continue;
      devices.push_back(fmt::format("{} of type {}", device, type.name));
    }
  }
  std::vector<std::string> notes;
  Tell("keys that are read without effect", options->without_effect, notes);
  Tell("devices that only the kubelet knows, which `agent.podResourceAPI: false` does not ask",
       devices, notes);
  return notes;
}

std::vector<NamedClass> BalloonsNamedClasses(const ConfigNode& section) {
  std::vector<NamedClass> named;
  const StatusOr<BalloonsOptions> options = ReadBalloonsOptions(&section);
  if (!options.ok()) return named;
  if (!options->idle_cpu_class.empty())
    named.push_back({"cpu", options->idle_cpu_class, "idleCPUClass"});
  for (const BalloonType& type : options->types) {
    const std::string where = fmt::format("balloonTypes {}", Printable(type.name, kMostText));
    AddNamed(type.classes, where, named);
    if (!type.irq_mode.empty()) named.push_back({"irq", type.irq_mode, where + ": irqMode"});
    for (const std::string& claim : type.irq_claims)
      named.push_back({"irq", claim, where + ": irqClaim"});
  }
  return named;
}

}  // namespace resmgr
