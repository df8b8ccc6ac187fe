// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/config/config_section.h"
#include "pkg/kube/names.h"
#include "policies/balloons/balloons_options.h"

namespace resmgr {
namespace {

constexpr int64_t kMost = CpuSet::kBits;
// Limits of the configuration, since the cost of a decision grows with each entry.
constexpr size_t kMostTypes = 256;
constexpr size_t kMostItems = 64;  // of any other list
// Limited, since names of types appear in names of pools, in metrics and in logs.
constexpr size_t kLongestName = 200;
constexpr std::string_view kThePolicys = "the policy's";

const std::initializer_list<BalloonLevel> kLevelWords = {
    BalloonLevel::kNone, BalloonLevel::kSystem, BalloonLevel::kPackage,
    BalloonLevel::kDie,  BalloonLevel::kNuma,   BalloonLevel::kL3,
    BalloonLevel::kL2,   BalloonLevel::kCore,   BalloonLevel::kThread};

std::string TooMany(size_t count, size_t most) {
  return fmt::format("has {} items; at most {} are read", count, most);
}

void CheckCount(ConfigSection& section, std::string_view key, size_t count,
                size_t most = kMostItems) {
  if (count > most) section.Fail(key, TooMany(count, most));
}

// The path of a value, which its origin has behind the place in the file.
std::string_view PathIn(std::string_view origin, const ConfigNode& value) {
  const std::string place = Where(value) + ": ";
  if (origin.starts_with(place)) origin.remove_prefix(place.size());
  return origin;
}

void DescribeExpressions(ConfigSection& section, RawValues& raw, std::vector<Expression>& target,
                         Problems& problems, std::string_view help) {
  constexpr std::string_view kKey = "matchExpressions";
  const auto read = [&](const ConfigNode& value, std::string_view origin) -> Status {
    if (value.kind == ConfigNode::Kind::kNull) return OkStatus();
    if (value.kind != ConfigNode::Kind::kList) {
      return InvalidArgument("must be a list, not {}", ToString(value.kind));
    }
    if (value.items.size() > kMostItems) {
      return InvalidArgument("{}", TooMany(value.items.size(), kMostItems));
    }
    raw.insert_or_assign(std::string(kKey), value);
    for (size_t i = 0; i < value.items.size(); ++i) {
      StatusOr<Expression> expression =
          Expression::Parse(value.items[i], fmt::format("{}[{}]", PathIn(origin, value), i));
      problems.Add(expression.status());
      if (expression.ok()) target.push_back(*std::move(expression));
    }
    return OkStatus();
  };
  const auto shown = raw.find(kKey);
  section.Value(kKey, shown == raw.end() ? ListNode({}) : shown->second, read, help)
      .Default("none");
}

void DescribeGlobs(ConfigSection& section, std::string_view key, std::vector<std::string>& target,
                   std::string_view help) {
  section.List(key, target, help);
  CheckCount(section, key, target.size());
  for (const std::string& glob : target) {
    if (IsGlob(glob)) continue;
    section.Fail(key, fmt::format("\"{}\" has [ without ]", Printable(glob, 64)));
  }
}

void DescribeLevel(ConfigSection& section, std::string_view key, BalloonLevel& target,
                   std::string_view help) {
  section.Choice(key, kLevelWords, target, help).Default("none");
}

void DescribeCpuSet(ConfigSection& section, BalloonType& type) {
  const auto read = [&type](const ConfigNode& value, const std::string&) -> Status {
    if (value.kind == ConfigNode::Kind::kNull) return OkStatus();
    RESMGR_ASSIGN_OR_RETURN(const std::vector<std::string> texts, TextsOf(value));
    std::string list = fmt::format("{}", fmt::join(texts, ","));
    if (list.starts_with("cpuset:")) list.erase(0, 7);
    RESMGR_ASSIGN_OR_RETURN(type.cpus, CpuSet::Parse(list));
    type.own_cpus = true;
    return type.cpus.empty() ? InvalidArgument("has no CPU") : OkStatus();
  };
  section
      .Value("cpus", type.own_cpus ? std::optional(ScalarNode(type.cpus.ToString())) : std::nullopt,
             read,
             "a list: exactly these CPUs belong to the type's balloon, always. With `maxCPUs` it "
             "may grow beyond")
      .Default("none");
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

std::optional<std::string> TextOf(const BalloonInstances& instances) {
  if (instances.number == 0) return std::nullopt;
  std::string unit;
  if (instances.per != BalloonLevel::kNone) unit = fmt::format(" per {}", ToString(instances.per));
  if (instances.unit == BalloonInstances::Unit::kPercent) unit = " %";
  if (instances.unit == BalloonInstances::Unit::kCpus) unit = " CPUs";
  return fmt::format("{}{}", instances.number, unit);
}

// Keys of balloon types that nri-plugins does not have.
void DescribeOwnTypeKeys(ConfigSection& section, BalloonType& type) {
  section.Choice("sizeBy",
                 {{"request", BalloonSizeBy::kRequest},
                  {"limit", BalloonSizeBy::kLimit},
                  {"between", BalloonSizeBy::kBetween}},
                 type.size_by,
                 "what the size follows: `request`, `limit`, or the middle `between` both");
  section.Int("maxOvercommit", 100, 10'000, type.overcommit_percent,
              "percent: so much may be asked for of a balloon's CPUs");
  const auto read = [&type](std::string_view text) -> Status {
    RESMGR_ASSIGN_OR_RETURN(type.instances, ParseInstances(text));
    return OkStatus();
  };
  section
      .Parse("instances", TextOf(type.instances), read,
             "instead of `minBalloons` and `maxBalloons`: `4`, `1 per numa` (`package`, `die`, "
             "`l3`; each stays inside its part), `50 %` or `8 CPUs` (of the CPUs that are not "
             "reserved, divided by `minCPUs`)")
      .Default("none");
  DescribeLevel(section, "growWithin", type.grow_within,
                "a level: room for `maxCPUs` within one such part is kept for each balloon");
  DescribeLevel(section, "makeRoomWithin", type.make_room_within,
                "a level: a new balloon that would be split, though it fits into one such part, "
                "gets CPUs there of balloons whose containers share theirs; these take others");
  section.Int("maxPods", 0, 100'000, type.max_pods, "how many pods a balloon takes; 0 is no limit");
  section.Choice("fillOrder",
                 {{"balanced", BalloonFillOrder::kBalanced},
                  {"packed", BalloonFillOrder::kPacked},
                  {"firstFree", BalloonFillOrder::kFirstFree}},
                 type.fill_order,
                 "among balloons with room: the emptiest (`balanced`), the fullest (`packed`), the "
                 "first (`firstFree`)");
  section.Bool("spreadBestEffort", type.spread_best_effort,
               "containers without a request go where the least is used of each CPU, not all to "
               "one balloon");
  DescribePoolClass(section, "rdt", type.classes, "the containers' class of caches and bandwidth");
  DescribePoolClass(section, "blockio", type.classes, "their class of block I/O");
  DescribePoolClass(section, "memory", type.classes, "their class of memory");
}

void DescribeUse(ConfigSection& section, BalloonType& type) {
  section.Map("followUse", [&type](ConfigSection& use) {
    use.Int(
        "growAbove", 0, 100, type.grow_above,
        "percent: a balloon whose containers use more of its CPUs borrows idle ones near it. 0: "
        "its size follows requests alone");
    use.Int("shrinkBelow", 0, 99, type.shrink_below,
            "percent: a balloon whose containers use less gives borrowed CPUs back");
    use.Duration("pause", std::chrono::seconds(1), std::chrono::hours(1), type.use_pause,
                 "the least time between two such changes of one balloon");
    if (type.follows_use() && type.shrink_below >= type.grow_above) {
      use.Fail("shrinkBelow", fmt::format("is {}, not less than growAbove {}", type.shrink_below,
                                          type.grow_above));
    }
  });
}

// Describes keys that a composite type must not have, since the types of its components have them.
void DescribeKeysOfParts(ConfigSection& section, BalloonType& type) {
  if (type.composite()) {
    for (const std::string_view key :
         {"cpuClass", "preferSpreadOnPhysicalCores", "allocatorTopologyBalancing",
          "preferCloseToDevices", "preferIsolCpus", "preferCoreType", "cpus", "followUse"}) {
      section.Refuse(key, "has no meaning beside components; their types have it");
    }
    return;
  }
  section
      .Bool("allocatorTopologyBalancing", type.balance,
            "`true` spreads the type's balloons over packages, dies and NUMA nodes, `false` packs "
            "them")
      .Default(kThePolicys);
  section.Bool("preferSpreadOnPhysicalCores", type.spread_cores, "one thread of each core first")
      .Default(kThePolicys);
  section.List("preferCloseToDevices", type.close_to,
               "paths: of NUMA nodes, CPUs and caches below `/sys/devices/system`; other paths and "
               "globs count if the container has such a device or volume; "
               "`podresourceapi:RESOURCE` (a glob), if the kubelet tells where such devices of the "
               "container are. Types that do not name the path of a device avoid it");
  CheckCount(section, "preferCloseToDevices", type.close_to.size());
  section.Bool("preferIsolCpus", type.prefer_isolated, "prefer the kernel's isolated CPUs");
  section
      .Choice<std::string>("preferCoreType",
                           {{"", ""}, {"performance", "performance"}, {"efficient", "efficient"}},
                           type.core_type, "prefer `performance` or `efficient` cores")
      .Default("none");
  DescribePoolClass(section, "cpu", type.classes,
                    "the class of the balloons' CPUs: their clock and idle states");
  DescribeCpuSet(section, type);
  DescribeUse(section, type);
}

void DescribeMemoryTypes(ConfigSection& section, BalloonType& type) {
  std::vector<std::string> words;
  for (const MemoryType memory : kMemoryTypes)
    if ((type.memory_types & BitOf(memory)) != 0) words.emplace_back(ToString(memory));
  section.List("memoryTypes", words, "`DRAM`, `HBM`, `PMEM`").Default("those of the CPUs' nodes");
  const std::optional<MemoryTypes> bits = ParseBalloonMemoryTypes(words);
  if (!bits) section.Fail("memoryTypes", "has other words than DRAM, HBM, PMEM");
  type.memory_types = bits.value_or(0);
}

void DescribePlacementKeys(ConfigSection& section, BalloonType& type) {
  section.Bool("preferNewBalloons", type.prefer_new, "a new balloon comes before others with room");
  section.Bool("preferSpreadingPods", type.spread_pods,
               "the balloon of the pod's other containers is not preferred");
  section.Bool("preferPerNamespaceBalloon", type.per_namespace, "one balloon for each namespace");
  DescribeLevel(section, "shareIdleCPUsInSame", type.share_idle,
                "containers may run on idle CPUs in the same `system`, `package`, `die`, `numa`, "
                "`l3cache`, `l2cache`, `core` or `thread`, too");
  section.Bool("hideHyperthreads", type.hide_hyperthreads,
               "containers run on one thread of each core");
  section.List(
      "loads", type.loads,
      "names of load classes: balloons with the same class (or one that `avoids` names) do "
      "not share cores or caches if possible");
  CheckCount(section, "loads", type.loads.size());
  section.Bool("pinMemory", type.pin_memory, "set the memory nodes").Default(kThePolicys);
  DescribeMemoryTypes(section, type);
}

void DescribeComponents(ConfigSection& section, BalloonType& type) {
  section.Items<std::string>(
      "components", type.component_names, "",
      [](ConfigSection& component, std::string& name) {
        component.Text("balloonType", name, "the name of a type").Default("none");
      },
      "the balloon consists of one balloon of each of these types");
  CheckCount(section, "components", type.component_names.size());
  section
      .Choice<bool>("componentCreation", {{"all", false}, {"", false}, {"balance-balloons", true}},
                    type.balance_components,
                    "`all`: of each component, `balance-balloons`: only of the one with the fewest "
                    "instances")
      .Default("all");
  const ConfigNode* const creation = section.Node("componentCreation");
  if (creation != nullptr && !creation->text.empty() && !type.composite()) {
    section.Fail("componentCreation", "needs components");
  }
}

// Reports limits that contradict each other.
void CheckLimits(ConfigSection& section, const BalloonType& type) {
  if (type.max_cpus > 0 && type.min_cpus > type.max_cpus) {
    section.Fail("minCPUs",
                 fmt::format("is {}, more than maxCPUs {}", type.min_cpus, type.max_cpus));
  }
  const bool splits = type.instances.per != BalloonLevel::kNone;
  if (type.own_cpus && !splits && type.max_cpus == 0 && type.min_cpus > type.cpus.size()) {
    section.Fail("minCPUs", fmt::format("is {}, more than cpus has ({}); with maxCPUs it may grow "
                                        "beyond these",
                                        type.min_cpus, type.cpus.ToString()));
  }
  if (type.max_balloons > 0 && type.min_balloons > type.max_balloons) {
    section.Fail("minBalloons", fmt::format("is {}, more than maxBalloons {}", type.min_balloons,
                                            type.max_balloons));
  }
  if (type.grow_within != BalloonLevel::kNone && type.max_cpus <= 0) {
    section.Fail("growWithin", "needs maxCPUs, the room that is kept");
  }
  if (type.instances.unit != BalloonInstances::Unit::kBalloons && type.min_cpus <= 0) {
    section.Fail("instances", "needs minCPUs, the size of one, to tell how many there are");
  }
  if (type.instances.number > 0 && (type.min_balloons > 0 || type.max_balloons > 0)) {
    section.Fail("instances", "stands instead of minBalloons and maxBalloons; remove these");
  }
}

void DescribeMatching(ConfigSection& section, BalloonType& type, Problems& problems) {
  section.Text("name", type.name, "the type's name, which must be given").Default("none");
  if (type.name.empty()) section.Fail("name", "is missing");
  if (type.name.find_first_of("[]") != std::string::npos) {
    section.Fail("name", "must not have brackets, which the names of balloons have");
  }
  if (Printable(type.name, kLongestName) != type.name) {
    section.Fail("name", fmt::format("\"{}\": must be printable, and {} bytes at most",
                                     Printable(type.name, 64), kLongestName));
  }
  DescribeGlobs(
      section, "namespaces", type.namespaces,
      "globs (`*`, `?`, `[a-z]`, `[^a-z]`) of the namespaces whose containers match; one match "
      "is enough");
  DescribeExpressions(
      section, type.raw, type.expressions, problems,
      "a list of `key`, `operator`, `values`; one match is enough. Keys: `name`, `namespace`, "
      "`qosclass`, `id`, `uid`, `labels/K`, and `pod/` followed by one of these. Operators: "
      "`Equals`, `NotEqual`, `In`, `NotIn`, `Exists`, `NotExists`, `Matches`, `MatchesNot`, "
      "`MatchesAny`, `MatchesNone` (globs), `AlwaysTrue`");
  section
      .Text("groupBy", type.group_by,
            "text with `${KEY}` or `$KEY`: containers with the same text go to the same balloon")
      .Default("none");
}

void DescribeType(ConfigSection& section, BalloonType& type, Problems& problems) {
  DescribeMatching(section, type, problems);
  section.Int("minCPUs", -1, kMost, type.min_cpus, "the least size of a balloon");
  type.min_cpus = std::max<int64_t>(type.min_cpus, 0);
  section.Int("maxCPUs", -1, kMost, type.max_cpus,
              "the greatest size. 0 is no limit, and -1 refuses all containers of the type");
  section.Int("minBalloons", 0, kMost, type.min_balloons, "how many exist always");
  section.Int("maxBalloons", 0, kMost, type.max_balloons, "how many exist at most; 0 is no limit");
  section.Choice<int>("allocatorPriority",
                      {{"high", 0}, {"normal", 1}, {"low", 2}, {"", 3}, {"none", 3}}, type.priority,
                      "the order of creation at the start: `high`, `normal`, `low`, `none`");
  DescribeComponents(section, type);
  DescribePlacementKeys(section, type);
  DescribeKeysOfParts(section, type);
  DescribePoolClass(section, "scheduling", type.classes, "the containers' class of scheduling");
  DescribeGlobs(
      section, "irqClaim", type.irq_claims,
      "interrupts that run on the balloons' CPUs alone: a number, or a glob over the end of "
      "their line in `/proc/interrupts`");
  section
      .Choice<std::string>("irqMode", {{"", ""}, {"sink", "sink"}, {"isolate", "isolate"}},
                           type.irq_mode,
                           "`isolate`: interrupts that nobody claims stay away from the balloons' "
                           "CPUs; `sink`: all of them go there")
      .Default("none");
  section.Raw("showContainersInNrt", type.raw, "read without effect");
  DescribeOwnTypeKeys(section, type);
  CheckLimits(section, type);
}

void DescribeLoadClass(ConfigSection& section, BalloonLoadClass& load) {
  section.Text("name", load.name, "the class's name, which must be given").Default("none");
  section
      .Choice("level", {BalloonLevel::kCore, BalloonLevel::kL2, BalloonLevel::kL3}, load.level,
              "what is not shared: `core`, `l2cache` or `l3cache`; it must be given")
      .Default("none");
  section.Bool("overloadsLevelInBalloon", load.overloads,
               "containers of one balloon do not share it either, if possible");
  section.List("avoids", load.avoids, "names of other classes that are avoided, too");
  CheckCount(section, "avoids", load.avoids.size());
  if (load.name.empty()) section.Fail("name", "is missing");
  const ConfigNode* const level = section.Node("level");
  if (level == nullptr || level->kind == ConfigNode::Kind::kNull) {
    section.Fail("level", "is missing: core, l2cache or l3cache");
  }
}

void DescribeCpuDomain(ConfigSection& section, std::string_view key,
                       std::optional<CpuConstraint>& target, bool quantity, std::string_view help,
                       std::string_view default_text) {
  const auto read = [&](const ConfigNode& value, const std::string& origin) -> Status {
    if (value.kind == ConfigNode::Kind::kNull) return OkStatus();
    if (value.kind != ConfigNode::Kind::kScalar) {
      return InvalidArgument("must be {}, not {}", ToString(ConfigNode::Kind::kScalar),
                             ToString(value.kind));
    }
    RESMGR_ASSIGN_OR_RETURN(target, ParseCpuConstraint(value.text, origin));
    using Kind = CpuConstraint::Kind;
    if (target->kind == Kind::kCgroup || (!quantity && target->kind == Kind::kQuantity)) {
      return InvalidArgument("must be cpuset:LIST or exclude-cpuset:LIST{}",
                             quantity ? " or a quantity" : "");
    }
    return OkStatus();
  };
  section.Map(key, [&](ConfigSection& domain) {
    const auto shown = target ? std::optional(ScalarNode(ToString(*target))) : std::nullopt;
    domain.Value("cpu", shown, read, help).Default(default_text);
  });
}

void DescribePolicyKeys(ConfigSection& section, BalloonsOptions& options, Problems& problems) {
  DescribeCpuDomain(section, "availableResources", options.available, false,
                    "`cpuset:LIST` or `exclude-cpuset:LIST`; within `policy.AvailableResources`",
                    "all that pods may use");
  DescribeCpuDomain(section, "reservedResources", options.reserved, true,
                    "`cpuset:LIST`, `exclude-cpuset:LIST`, or a quantity: what the balloon "
                    "`reserved[0]` has from the start. It may grow beyond",
                    "policy.ReservedResources");
  section.Bool("pinCPU", options.pin_cpu, "set the cpuset");
  section.Bool("pinMemory", options.pin_memory, "set the memory nodes; also per type");
  DescribeGlobs(section, "reservedPoolNamespaces", options.reserved_namespaces,
                "globs: namespaces of the type `reserved`, beside `kube-system`");
  options.privileged.Describe(section,
                              "the annotations `cpu.preserve` and `memory.preserve`, and may name "
                              "the type `reserved`");
  section.Map("preserve", [&](ConfigSection& preserve) {
    DescribeExpressions(preserve, options.raw, options.preserve, problems,
                        "the containers that match any of these are in no balloon");
  });
  section.Bool("allocatorTopologyBalancing", options.balance,
               "`false` packs balloons, `true` spreads them over packages, dies and NUMA nodes; "
               "also per type");
  section.Bool("preferSpreadOnPhysicalCores", options.spread_cores,
               "one thread of each core first; also per type");
  section.Choice<bool>("whenShort", {{"overcommit", true}, {"refuse", false}},
                       options.overcommit_when_short,
                       "what happens to a container that the scheduler was right to send and for "
                       "which no CPUs are left; `refuse` refuses it");
  section.Int("moveBudget", 0, 1000, options.move_budget,
              "how many containers may move to make room for one");
  section
      .Text("idleCPUClass", options.idle_cpu_class,
            "the class of CPUs in no balloon; without it, and if there is one, the class `default`")
      .Default("none");
  DescribePolicyClasses(section, options.raw);
  DescribeGlobs(
      section, "controllableInterrupts", options.controllable_interrupts,
      "globs of the interrupts that may be moved, in place of `classes.irq.Controllable`");
  // Keys that only a BalloonsPolicy object of nri-plugins has.
  section.Map("agent", [&](ConfigSection& agent) {
    agent.Bool("podResourceAPI", options.pod_resource_api,
               "the kubelet is asked where devices are, if a type has `podresourceapi:` in "
               "`preferCloseToDevices`");
    agent.Raw("nodeResourceTopology", options.raw, "read without effect");
    if (agent.Node("nodeResourceTopology") != nullptr)
      options.without_effect.emplace_back("agent.nodeResourceTopology");
  });
  for (const std::string_view key : {"instrumentation", "log", "control", "showContainersInNrt"}) {
    section.Raw(key, options.raw, "read without effect");
    if (section.Node(key) != nullptr) options.without_effect.emplace_back(key);
  }
}

}  // namespace

void DescribeBalloons(ConfigSection& section, BalloonsOptions& options, Problems& problems) {
  DescribePolicyKeys(section, options, problems);
  section.Items<BalloonLoadClass>("loadClasses", options.load_classes, {}, DescribeLoadClass,
                                  "classes of load that the types name in `loads`");
  CheckCount(section, "loadClasses", options.load_classes.size());
  BalloonType initial;
  initial.balance = options.balance;
  initial.spread_cores = options.spread_cores;
  initial.pin_memory = options.pin_memory;
  section.Items<BalloonType>(
      "balloonTypes", options.types, initial,
      [&problems](ConfigSection& item, BalloonType& type) { DescribeType(item, type, problems); },
      "the types; their order counts for matching and for the creation at the start");
  CheckCount(section, "balloonTypes", options.types.size(), kMostTypes);
}

}  // namespace resmgr
