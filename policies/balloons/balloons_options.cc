// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloons_options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/config/map_reader.h"
#include "pkg/config/problems.h"

namespace resmgr {
namespace {

constexpr int64_t kMost = CpuSet::kBits;
constexpr std::array<std::string_view, 4> kPriorities = {"high", "normal", "low", "none"};
// What a composite balloon's components decide.
constexpr std::array<std::string_view, 6> kNotOfComposites = {"cpuClass",
                                                              "preferSpreadOnPhysicalCores",
                                                              "allocatorTopologyBalancing",
                                                              "preferCloseToDevices",
                                                              "preferIsolCpus",
                                                              "preferCoreType"};
// Keys of a BalloonsPolicy object that have no effect here.
constexpr std::array<std::string_view, 5> kWithoutEffect = {"agent", "instrumentation", "log",
                                                            "control", "showContainersInNrt"};

using NodeReader = std::function<Status(const ConfigNode& item, size_t index)>;

// Lists of maps, which MapReader does not know.
void ReadItems(MapReader& reader, std::string_view key, const NodeReader& read,
               Problems& problems) {
  const ConfigNode* const list = reader.Node(key);
  if (list == nullptr || list->kind == ConfigNode::Kind::kNull) return;
  if (list->kind != ConfigNode::Kind::kList) {
    reader.Fail(*list, key, fmt::format("must be a list, not {}", ToString(list->kind)));
    return;
  }
  for (size_t i = 0; i < list->items.size(); ++i)
    problems.Add(read(list->items[i], i));
}

void ReadExpressions(MapReader& reader, std::string_view key, std::vector<Expression>& target,
                     Problems& problems) {
  ReadItems(
      reader, key,
      [&target](const ConfigNode& item, size_t) -> Status {
        RESMGR_ASSIGN_OR_RETURN(Expression expression, Expression::Parse(item));
        target.push_back(std::move(expression));
        return OkStatus();
      },
      problems);
}

void ReadGlobs(MapReader& reader, std::string_view key, std::vector<std::string>& target) {
  reader.List(key, target);
  for (const std::string& glob : target) {
    if (glob.find('[') == std::string::npos) continue;
    const ConfigNode* const node = reader.Node(key);
    reader.Fail(*node, key, fmt::format("\"{}\": globs have * and ? only", Printable(glob, 64)));
  }
}

void ReadClass(MapReader& reader, std::string_view key, std::vector<std::string>& classes) {
  std::string name;
  reader.Text(key, name);
  if (!name.empty()) classes.push_back(fmt::format("{} {}", key, name));
}

void ReadLevel(MapReader& reader, std::string_view key, BalloonLevel& target) {
  std::string text(ToString(target));
  reader.Choice(
      key, {"", "system", "package", "die", "numa", "l3cache", "l2cache", "core", "thread"}, text);
  target = ParseBalloonLevel(text).value_or(target);
}

void ReadCpuSet(MapReader& reader, std::string_view key, CpuSet& target, bool& given) {
  reader.List(key, [&](const std::vector<std::string>& texts, const std::string&) -> Status {
    std::string list = fmt::format("{}", fmt::join(texts, ","));
    if (list.starts_with("cpuset:")) list.erase(0, 7);
    RESMGR_ASSIGN_OR_RETURN(target, CpuSet::Parse(list));
    given = true;
    return target.empty() ? InvalidArgument("has no CPU") : OkStatus();
  });
}

// "4", "1 per numa", "50 %", "8 CPUs".
StatusOr<BalloonInstances> ParseInstances(std::string_view text) {
  BalloonInstances instances;
  text = Trim(text);
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<int64_t> number = ParseInt(text.substr(0, digits));
  const std::string unit = ToLower(Trim(text.substr(digits)));
  instances.number = number.value_or(0);
  const bool fits = number && *number > 0 && *number <= kMost;
  if (unit.starts_with("per ")) {
    const auto level = ParseBalloonLevel(Trim(std::string_view(unit).substr(4)));
    if (fits && level && *level != BalloonLevel::kNone) {
      instances.per = *level;
      return instances;
    }
  } else if (unit.empty() || unit == "%" || unit == "cpus") {
    if (unit == "%") instances.unit = BalloonInstances::Unit::kPercent;
    if (unit == "cpus") instances.unit = BalloonInstances::Unit::kCpus;
    if (fits && (unit != "%" || *number <= 100)) return instances;
  }
  return InvalidArgument(
      "\"{}\" is none of the forms 4, 1 per numa (package, die, l3), 50 %, 8 CPUs",
      Printable(text, 64));
}

// The keys that nri-plugins does not have.
void ReadOwnTypeKeys(MapReader& reader, BalloonType& type) {
  std::string size_by = "request";
  reader.Choice("sizeBy", {"request", "limit", "between"}, size_by);
  if (size_by != "request") {
    type.size_by = size_by == "limit" ? BalloonSizeBy::kLimit : BalloonSizeBy::kBetween;
  }
  reader.Int("maxOvercommit", 100, 10'000, type.overcommit_percent);
  ReadCpuSet(reader, "cpus", type.cpus, type.own_cpus);
  reader.Parse("instances", [&](std::string_view text, const std::string&) -> Status {
    RESMGR_ASSIGN_OR_RETURN(type.instances, ParseInstances(text));
    return OkStatus();
  });
  ReadLevel(reader, "growWithin", type.grow_within);
  reader.Int("maxPods", 0, 100'000, type.max_pods);
  std::string order = "balanced";
  reader.Choice("fillOrder", {"balanced", "packed", "firstFree"}, order);
  if (order == "packed") type.fill_order = BalloonFillOrder::kPacked;
  if (order == "firstFree") type.fill_order = BalloonFillOrder::kFirstFree;
  reader.Bool("spreadBestEffort", type.spread_best_effort);
  for (const std::string_view key : {"rdtClass", "blockioClass", "memoryClass"})
    ReadClass(reader, key, type.classes);
}

void ReadComponents(MapReader& reader, std::vector<std::string>& names, Problems& problems,
                    std::string_view path) {
  ReadItems(
      reader, "components",
      [&](const ConfigNode& item, size_t index) {
        MapReader component(item, fmt::format("{}.components[{}]", path, index));
        component.Text("balloonType", names.emplace_back());
        return component.Finish();
      },
      problems);
}

void ReadPlacementKeys(MapReader& reader, BalloonType& type) {
  reader.Bool("allocatorTopologyBalancing", type.balance);
  reader.Bool("preferSpreadOnPhysicalCores", type.spread_cores);
  reader.Bool("preferNewBalloons", type.prefer_new);
  reader.Bool("preferSpreadingPods", type.spread_pods);
  reader.Bool("preferPerNamespaceBalloon", type.per_namespace);
  ReadLevel(reader, "shareIdleCPUsInSame", type.share_idle);
  reader.Bool("hideHyperthreads", type.hide_hyperthreads);
  reader.List("preferCloseToDevices", type.close_to);
  reader.Bool("preferIsolCpus", type.prefer_isolated);
  reader.Choice("preferCoreType", {"", "performance", "efficient"}, type.core_type);
  reader.List("loads", type.loads);
  reader.Bool("pinMemory", type.pin_memory);
  std::vector<std::string> memory_types;
  reader.List("memoryTypes", memory_types);
  const std::optional<unsigned> bits = ParseBalloonMemoryTypes(memory_types);
  if (!bits) {
    reader.Fail(*reader.Node("memoryTypes"), "memoryTypes", "has other words than DRAM, HBM, PMEM");
  }
  type.memory_types = bits.value_or(0);
}

// Limits that contradict each other.
void CheckLimits(MapReader& reader, const ConfigNode& node, const BalloonType& type) {
  const auto fail = [&](std::string_view key, std::string_view message) {
    const ConfigNode* const value = reader.Node(key);
    reader.Fail(value == nullptr ? node : *value, key, message);
  };
  if (type.max_cpus > 0 && type.min_cpus > type.max_cpus) {
    fail("minCPUs", fmt::format("is {}, more than maxCPUs {}", type.min_cpus, type.max_cpus));
  }
  if (type.max_balloons > 0 && type.min_balloons > type.max_balloons) {
    fail("minBalloons",
         fmt::format("is {}, more than maxBalloons {}", type.min_balloons, type.max_balloons));
  }
  if (type.grow_within != BalloonLevel::kNone && type.max_cpus <= 0) {
    fail("growWithin", "needs maxCPUs, the room that is kept");
  }
  using Unit = BalloonInstances::Unit;
  if (type.instances.unit != Unit::kBalloons && type.min_cpus <= 0) {
    fail("instances", "needs minCPUs, the size of one, to tell how many there are");
  }
  if (type.instances.number > 0 && (type.min_balloons > 0 || type.max_balloons > 0)) {
    fail("instances", "stands instead of minBalloons and maxBalloons; remove these");
  }
  if (!type.composite()) return;
  for (const std::string_view key : kNotOfComposites) {
    if (reader.Node(key) != nullptr)
      fail(key, "has no meaning beside components; their types have it");
  }
  if (type.own_cpus) fail("cpus", "has no meaning beside components; their types have it");
}

// Adds what MapReader does not tell to `complete`: lists of maps and values with a syntax of their
// own.
void AddUntold(const ConfigNode& node, ConfigNode& complete) {
  for (const ConfigNode::Entry& entry : node.entries) {
    const auto told = std::ranges::find_if(complete.entries, [&](const ConfigNode::Entry& other) {
      return EqualsIgnoreCase(other.key, entry.key);
    });
    if (told == complete.entries.end()) {
      complete.entries.push_back(entry);
    } else if (told->value.kind == ConfigNode::Kind::kMap) {
      AddUntold(entry.value, told->value);
    }
  }
}

void TellType(const ConfigNode& node, bool composite, ConfigNode& complete) {
  if (composite) {
    std::erase_if(complete.entries, [](const ConfigNode::Entry& entry) {
      return std::ranges::find(kNotOfComposites, entry.key) != kNotOfComposites.end();
    });
  }
  AddUntold(node, complete);
}

struct ReadType {
  BalloonType type;
  std::vector<std::string> components;
};

StatusOr<ReadType> ReadBalloonType(const ConfigNode& node, size_t index,
                                   const BalloonsOptions& options, ConfigNode* complete) {
  ReadType read;
  BalloonType& type = read.type;
  type.balance = options.balance;
  type.spread_cores = options.spread_cores;
  type.pin_memory = options.pin_memory;
  const std::string path = fmt::format("policy.balloons.balloonTypes[{}]", index);
  MapReader reader(node, path, complete);
  Problems problems;
  reader.Text("name", type.name);
  if (type.name.empty()) reader.Fail(node, "name", "is missing");
  if (type.name.find_first_of("[]") != std::string::npos) {
    reader.Fail(node, "name", "must not have brackets, which the names of balloons have");
  }
  ReadGlobs(reader, "namespaces", type.namespaces);
  ReadExpressions(reader, "matchExpressions", type.expressions, problems);
  reader.Text("groupBy", type.group_by);
  reader.Int("minCPUs", -1, kMost, type.min_cpus);
  type.min_cpus = std::max<int64_t>(type.min_cpus, 0);
  reader.Int("maxCPUs", -1, kMost, type.max_cpus);
  reader.Int("minBalloons", 0, kMost, type.min_balloons);
  reader.Int("maxBalloons", 0, kMost, type.max_balloons);
  std::string priority = "high";
  reader.Choice("allocatorPriority", {"high", "normal", "low", "none", ""}, priority);
  const auto found = std::ranges::find(kPriorities, priority);
  type.priority = static_cast<int>(std::min<ptrdiff_t>(found - kPriorities.begin(), 3));
  ReadPlacementKeys(reader, type);
  ReadComponents(reader, read.components, problems, path);
  std::string creation;
  reader.Choice("componentCreation", {"", "all", "balance-balloons"}, creation);
  type.balance_components = creation == "balance-balloons";
  if (!creation.empty() && read.components.empty()) {
    reader.Fail(node, "componentCreation", "needs components");
  }
  for (const std::string_view key : {"cpuClass", "schedulingClass", "irqClaim", "irqMode"})
    ReadClass(reader, key, type.classes);
  if (reader.Node("showContainersInNrt") != nullptr)
    type.classes.emplace_back("showContainersInNrt");
  ReadOwnTypeKeys(reader, type);
  // The indices follow when all types are known.
  type.components.assign(read.components.size(), -1);
  CheckLimits(reader, node, type);
  problems.Add(reader.Finish());
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  if (complete != nullptr) TellType(node, type.composite(), *complete);
  return read;
}

Status ReadLoadClass(const ConfigNode& node, size_t index, BalloonsOptions& options) {
  BalloonLoadClass& load = options.load_classes.emplace_back();
  MapReader reader(node, fmt::format("policy.balloons.loadClasses[{}]", index));
  reader.Text("name", load.name);
  std::string level;
  reader.Choice("level", {"core", "l2cache", "l3cache"}, level);
  load.level = ParseBalloonLevel(level).value_or(BalloonLevel::kCore);
  reader.Bool("overloadsLevelInBalloon", load.overloads);
  reader.List("avoids", load.avoids);
  if (load.name.empty()) reader.Fail(node, "name", "is missing");
  if (level.empty()) reader.Fail(node, "level", "is missing: core, l2cache or l3cache");
  return reader.Finish();
}

void ReadCpuDomain(MapReader& reader, std::string_view key, std::optional<CpuConstraint>& target,
                   bool quantity) {
  reader.Map(key, [&](MapReader& domain) {
    domain.Parse("cpu", [&](std::string_view text, const std::string& origin) -> Status {
      RESMGR_ASSIGN_OR_RETURN(target, ParseCpuConstraint(text, origin));
      using Kind = CpuConstraint::Kind;
      if (target->kind == Kind::kCgroup || (!quantity && target->kind == Kind::kQuantity)) {
        return InvalidArgument("must be cpuset:LIST or exclude-cpuset:LIST{}",
                               quantity ? " or a quantity" : "");
      }
      return OkStatus();
    });
  });
}

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

// Whether the type is a component of itself.
bool HasCycle(const BalloonsOptions& options, int type, std::set<int>& above) {
  if (!above.insert(type).second) return true;
  const BalloonType& own = options.types[static_cast<size_t>(type)];
  const bool cycle = std::ranges::any_of(
      own.components, [&](int component) { return HasCycle(options, component, above); });
  above.erase(type);
  return cycle;
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

// Types by name, once all are known.
Status LinkTypes(const ConfigNode& section, const std::vector<ReadType>& read,
                 BalloonsOptions& options) {
  Problems problems;
  std::vector<std::string_view> known;
  for (const BalloonType& type : options.types)
    known.emplace_back(type.name);
  for (const ReadType& own : read) {
    const std::string_view name = own.type.name;
    if (std::ranges::count(known, name) > 1) {
      problems.Add(ErrorAt(section, "policy.balloons.balloonTypes",
                           fmt::format("type \"{}\" is there twice", Printable(name, 64))));
      continue;
    }
    BalloonType& type = options.types[static_cast<size_t>(options.FindType(name))];
    for (size_t i = 0; i < own.components.size(); ++i) {
      type.components[i] = options.FindType(own.components[i]);
      if (type.components[i] >= 0) continue;
      problems.Add(ErrorAt(
          section, "policy.balloons.balloonTypes",
          fmt::format("{}: there is no component type \"{}\"{}", name,
                      Printable(own.components[i], 64), DidYouMean(own.components[i], known))));
    }
  }
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  for (int type = 0; type < static_cast<int>(options.types.size()); ++type) {
    std::set<int> above;
    if (!HasCycle(options, type, above)) continue;
    return ErrorAt(
        section, "policy.balloons.balloonTypes",
        fmt::format("{} is a component of itself", options.types[static_cast<size_t>(type)].name));
  }
  return CheckLoads(options, section);
}

void ReadPolicyKeys(MapReader& reader, BalloonsOptions& options, Problems& problems) {
  ReadCpuDomain(reader, "availableResources", options.available, false);
  ReadCpuDomain(reader, "reservedResources", options.reserved, true);
  reader.Bool("pinCPU", options.pin_cpu);
  reader.Bool("pinMemory", options.pin_memory);
  ReadClass(reader, "idleCPUClass", options.classes);
  ReadGlobs(reader, "reservedPoolNamespaces", options.reserved_namespaces);
  options.privileged.Read(reader);
  reader.Bool("allocatorTopologyBalancing", options.balance);
  reader.Bool("preferSpreadOnPhysicalCores", options.spread_cores);
  reader.Map("preserve", [&](MapReader& preserve) {
    ReadExpressions(preserve, "matchExpressions", options.preserve, problems);
  });
  ReadItems(
      reader, "loadClasses",
      [&](const ConfigNode& item, size_t index) { return ReadLoadClass(item, index, options); },
      problems);
  for (const std::string_view key :
       {"schedulingClasses", "cpuClasses", "turboDomain", "controllableInterrupts"}) {
    if (reader.Node(key) != nullptr) options.classes.emplace_back(key);
  }
  for (const std::string_view key : kWithoutEffect)
    reader.Node(key);
  std::string when_short = "overcommit";
  reader.Choice("whenShort", {"overcommit", "refuse"}, when_short);
  options.overcommit_when_short = when_short == "overcommit";
  reader.Int("moveBudget", 0, 1000, options.move_budget);
}

}  // namespace

std::optional<unsigned> ParseBalloonMemoryTypes(const std::vector<std::string>& words) {
  unsigned bits = 0;
  for (const std::string& word : words) {
    bool known = false;
    for (const MemoryType type : {MemoryType::kDram, MemoryType::kPmem, MemoryType::kHbm}) {
      if (!EqualsIgnoreCase(Trim(word), ToString(type))) continue;
      bits |= 1U << static_cast<unsigned>(type);
      known = true;
    }
    if (!known) return std::nullopt;
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

StatusOr<BalloonsOptions> ReadBalloonsOptions(const ConfigNode* section, ConfigNode* complete) {
  BalloonsOptions options;
  const ConfigNode nothing;
  const ConfigNode& node = section == nullptr ? nothing : *section;
  MapReader reader(node, "policy.balloons", complete);
  Problems problems;
  ReadPolicyKeys(reader, options, problems);
  std::vector<ReadType> read;
  ConfigNode types;
  types.kind = ConfigNode::Kind::kList;
  ReadItems(
      reader, "balloonTypes",
      [&](const ConfigNode& item, size_t index) -> Status {
        ConfigNode whole;
        RESMGR_ASSIGN_OR_RETURN(
            ReadType type,
            ReadBalloonType(item, index, options, complete == nullptr ? nullptr : &whole));
        types.items.push_back(std::move(whole));
        options.types.push_back(type.type);
        read.push_back(std::move(type));
        return OkStatus();
      },
      problems);
  if (complete != nullptr) {
    complete->entries.push_back({"balloonTypes", 1, std::move(types)});
    AddUntold(node, *complete);
  }
  problems.Add(reader.Finish());
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  AddBuiltInTypes(options);
  RESMGR_RETURN_IF_ERROR(LinkTypes(node, read, options));
  return options;
}

}  // namespace resmgr
