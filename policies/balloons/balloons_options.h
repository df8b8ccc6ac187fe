// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_key.h"
#include "pkg/config/config_node.h"
#include "pkg/config/cpu_constraint.h"
#include "pkg/config/policy_classes.h"
#include "pkg/policy/expression.h"
#include "pkg/policy/privileged_namespaces.h"
#include "pkg/topology/memory_types.h"
#include "policies/balloons/cpu_chooser.h"

namespace resmgr {

class ConfigSection;

using RawValues = std::map<std::string, ConfigNode, std::less<>>;

// Whether requests, limits or a value between them count for the size of a balloon.
enum class BalloonSizeBy { kRequest, kLimit, kBetween };
// The order in which the balloons of a type are tried for a container.
enum class BalloonFillOrder { kBalanced, kPacked, kFirstFree };

// The number of balloons of a type, at the start and at most: a number, a number in each part of a
// level, or a share of the CPUs.
struct BalloonInstances {
  int64_t number = 0;  // 0: the key is not set
  enum class Unit { kBalloons, kPercent, kCpus } unit = Unit::kBalloons;
  BalloonLevel per = BalloonLevel::kNone;
};

// One entry of `balloonTypes`; the fields are its keys, which README.md beside this file explains.
struct BalloonType {
  std::string name;
  std::vector<std::string> namespaces{};
  std::vector<Expression> expressions{};
  std::string group_by{};
  int64_t min_cpus = 0;
  int64_t max_cpus = 0;  // 0: no limit; -1: no container is accepted
  int64_t min_balloons = 0;
  int64_t max_balloons = 0;
  int priority = 0;  // order in which balloons are created at the start: 0 (high) to 3 (none)
  bool balance = false;
  bool spread_cores = false;
  bool prefer_new = false;
  bool spread_pods = false;
  bool per_namespace = false;
  BalloonLevel share_idle = BalloonLevel::kNone;
  bool hide_hyperthreads = false;
  std::vector<std::string> close_to{};
  bool prefer_isolated = false;
  std::string core_type{};  // "performance", "efficient" or ""
  std::vector<std::string> loads{};
  std::vector<std::string> component_names{};
  std::vector<int> components{};  // indices of the components' types
  bool balance_components = false;
  MemoryTypes memory_types = 0;  // 0: any, on the nodes of the CPUs
  bool pin_memory = true;
  PoolClassNames classes{};               // of its containers and of its balloons' CPUs
  std::vector<std::string> irq_claims{};  // globs of interrupts that run on its balloons' CPUs
  std::string irq_mode{};                 // "isolate", "sink", or ""

  // Keys that nri-plugins does not have:
  BalloonSizeBy size_by = BalloonSizeBy::kRequest;
  int64_t overcommit_percent = 100;  // requests of a balloon's containers, in percent of its CPUs
  CpuSet cpus{};                     // CPUs of its balloon, or of all its balloons together
  bool own_cpus = false;             // `cpus` is set
  BalloonInstances instances{};
  BalloonLevel grow_within = BalloonLevel::kNone;
  BalloonLevel make_room_within = BalloonLevel::kNone;
  int64_t max_pods = 0;
  BalloonFillOrder fill_order = BalloonFillOrder::kBalanced;
  bool spread_best_effort = true;
  // Balloons borrow idle CPUs if their containers use more than grow_above percent of their CPUs,
  // and give them back below shrink_below percent. grow_above 0: they never borrow.
  int64_t grow_above = 0;
  int64_t shrink_below = 50;
  std::chrono::milliseconds use_pause = std::chrono::seconds(30);  // between such changes

  // True only for the type of claims, which is not in the configuration: each container has a
  // balloon of its own, which keeps its size and gets no other container.
  bool alone = false;

  RawValues raw{};  // keys that are printed unchanged

  bool composite() const { return !component_names.empty(); }
  // Whether its containers are kept apart from each other, by groups or namespaces or altogether.
  bool keeps_apart() const { return prefer_new || per_namespace || !group_by.empty(); }
  bool follows_use() const { return grow_above > 0; }
};

struct BalloonLoadClass {
  std::string name;
  BalloonLevel level = BalloonLevel::kCore;
  bool overloads = false;
  std::vector<std::string> avoids{};  // names of other load classes
};

// The section policy.balloons.
struct BalloonsOptions {
  std::optional<CpuConstraint> available{};
  std::optional<CpuConstraint> reserved{};
  bool pin_cpu = true;
  bool pin_memory = true;
  bool balance = false;
  bool spread_cores = false;
  std::vector<std::string> reserved_namespaces{};
  PrivilegedNamespaces privileged{};
  std::vector<Expression> preserve{};
  bool pod_resource_api = true;  // whether the kubelet is asked for devices that types name
  std::vector<BalloonLoadClass> load_classes{};
  std::vector<BalloonType> types{};  // with `reserved` and `default`, in order of precedence
  std::string idle_cpu_class{};      // class of CPUs that are in no balloon
  std::vector<std::string> controllable_interrupts = {"*"};
  std::vector<std::string> without_effect{};  // other accepted keys, which have no effect
  RawValues raw{};                            // keys that are printed unchanged
  bool overcommit_when_short = true;          // false: without CPUs left, containers are refused
  int64_t move_budget = 4;

  int FindType(std::string_view name) const;  // -1 if there is none
  const BalloonLoadClass* FindLoad(std::string_view name) const;
};

inline constexpr std::string_view kReservedType = "reserved";
inline constexpr std::string_view kDefaultType = "default";

// Reads the section. Both arguments may be nullptr; `keys` gets the description of every option
// with its value. Checks everything that does not depend on the machine. InvalidArgument
// "FILE:LINE: path: ...".
StatusOr<BalloonsOptions> ReadBalloonsOptions(const ConfigNode* section,
                                              std::vector<ConfigKey>* keys = nullptr);

// Describes the keys of policy.balloons. `problems` gets errors that have a line of their own.
void DescribeBalloons(ConfigSection& section, BalloonsOptions& options, Problems& problems);

// The bits for a list of the words dram, hbm, pmem; nullopt for other words.
std::optional<MemoryTypes> ParseBalloonMemoryTypes(const std::vector<std::string>& words);

// Sentences about keys without effect in a section policy.balloons: one names keys that are
// accepted so that files of nri-plugins can be used, one the kubelet's devices. Empty if the
// section is invalid. Each sentence names only the first of them, so the text stays short with many
// types.
std::vector<std::string> BalloonsWithoutEffect(const ConfigNode& section);

// The classes that the section names, of balloon types and of idle CPUs.
std::vector<NamedClass> BalloonsNamedClasses(const ConfigNode& section);

}  // namespace resmgr
