// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/classes_config.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
#include "pkg/kube/names.h"

namespace resmgr {
namespace {

constexpr std::string_view kNoLatency = "n/a";
constexpr int64_t kMostMicroseconds = 1'000'000;
// The kernel's own limit is 16, with the zero byte at the end.
constexpr size_t kLongestGovernor = 15;

constexpr std::string_view kUndisturbed = "Undisturbed";

// Converts "10us", "1ms" or "n/a" to the text of the kernel's file.
StatusOr<std::string> LatencyText(std::string_view text) {
  if (EqualsIgnoreCase(text, kNoLatency)) return std::string(kNoLatency);
  std::string_view number = text;
  int64_t unit = 0;
  if (number.ends_with("us")) unit = 1;
  if (number.ends_with("ms")) unit = 1000;
  if (unit != 0) number.remove_suffix(2);
  const std::optional<int64_t> value = unit == 0 ? std::nullopt : ParseInt(number);
  if (!value || *value < 1 || *value > kMostMicroseconds / unit) {
    return InvalidArgument("\"{}\" is not a time from 1us to 1000ms, and not \"{}\"",
                           Printable(text, 64), kNoLatency);
  }
  return fmt::format("{}", *value * unit);
}

std::optional<std::string> ShownLatency(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text == kNoLatency ? text : text + "us";
}

Status CheckGlobs(const std::vector<std::string>& globs) {
  const auto wrong = std::ranges::find_if_not(globs, IsGlob);
  if (wrong == globs.end()) return OkStatus();
  return InvalidArgument("\"{}\" has a [ without its ]", Printable(*wrong, 64));
}

void DescribeGlobs(ConfigSection& section, std::string_view key, std::vector<std::string>& globs,
                   std::string_view help) {
  section.List(key, globs, help);
  const Status globs_ok = CheckGlobs(globs);
  if (!globs_ok.ok() && section.Node(key) != nullptr) section.Fail(key, Message(globs_ok));
}

struct AllowedKind {
  std::string_view kind;
  std::string_view help;
};

constexpr std::array kAllowedKinds = {
    AllowedKind{"isolation",
                "globs of the namespaces whose pods may choose their isolation by annotations"},
    AllowedKind{"memory", "globs of the namespaces whose pods may choose a class of memory"},
    AllowedKind{"rdt", "the same for a class of caches and memory bandwidth"},
    AllowedKind{"blockio", "the same for a class of block I/O"},
    AllowedKind{"cpu", "the same for a class of CPUs"},
    AllowedKind{"scheduling", "the same for a class of scheduling"}};

bool IsAllowedKind(std::string_view kind) {
  return std::ranges::find(kAllowedKinds, kind, &AllowedKind::kind) != kAllowedKinds.end();
}

using Namespaces = std::map<std::string, std::vector<std::string>, std::less<>>;

// Lists of globs by "KIND/CLASS".
Status ReadSingleClasses(const ConfigNode& value, Namespaces& all) {
  if (value.kind != ConfigNode::Kind::kMap && value.kind != ConfigNode::Kind::kNull)
    return InvalidArgument("must be a map");
  for (const ConfigNode::Entry& entry : value.entries) {
    const size_t slash = entry.key.find('/');
    if (slash == std::string::npos || slash + 1 == entry.key.size() ||
        !IsAllowedKind(std::string_view(entry.key).substr(0, slash)))
      return InvalidArgument("\"{}\" is no kind and class, as in \"rdt/gold\"",
                             Printable(entry.key, 64));
    StatusOr<std::vector<std::string>> globs = TextsOf(entry.value);
    if (!globs.ok()) return globs.status();
    RESMGR_RETURN_IF_ERROR(CheckGlobs(*globs));
    all[entry.key] = *std::move(globs);
  }
  return OkStatus();
}

std::optional<ConfigNode> ShownSingleClasses(const Namespaces& all) {
  std::vector<ConfigNode::Entry> entries;
  for (const auto& [key, globs] : all)
    if (key.find('/') != std::string::npos) entries.push_back({key, 1, ListNode(globs)});
  if (entries.empty()) return std::nullopt;
  return MapNode(std::move(entries));
}

// The kinds that have a class of this name in the configuration.
std::vector<std::string_view> KindsWithClass(const std::string& name, const ClassesConfig& config) {
  std::vector<std::string_view> kinds;
  for (const AllowedKind& one : kAllowedKinds) {
    const std::vector<std::string> names = config.NamesOf(one.kind);
    if (std::ranges::find(names, name) != names.end()) kinds.push_back(one.kind);
  }
  return kinds;
}

// Reads keys that name a class without its kind. They stand for all kinds that have a class of this
// name.
void ReadClassNames(const ConfigNode& node, ConfigSection& allowed, ClassesConfig& config) {
  for (const ConfigNode::Entry& entry : node.entries) {
    const std::vector<std::string_view> kinds = KindsWithClass(entry.key, config);
    if (kinds.empty() || IsAllowedKind(ToLower(entry.key))) continue;
    allowed.Value(
        entry.key, std::nullopt,
        [&](const ConfigNode& value, const std::string&) -> Status {
          for (const std::string_view kind : kinds) {
            ConfigNode single = MapNode({{fmt::format("{}/{}", kind, entry.key), 1, value}});
            RESMGR_RETURN_IF_ERROR(ReadSingleClasses(single, config.namespaces));
          }
          return OkStatus();
        },
        "");
  }
}

void DescribeAllowed(ConfigSection& allowed, Namespaces& all) {
  for (const AllowedKind& one : kAllowedKinds) {
    const auto known = all.find(one.kind);
    std::vector<std::string> globs;
    if (known != all.end()) globs = known->second;
    DescribeGlobs(allowed, one.kind, globs, one.help);
    if (!globs.empty()) all[std::string(one.kind)] = std::move(globs);
  }
  allowed
      .Value(
          "Classes", ShownSingleClasses(all),
          [&all](const ConfigNode& value, const std::string&) {
            return ReadSingleClasses(value, all);
          },
          "globs of namespaces by the kind and the name of single classes, as in `rdt/gold`, in "
          "place of those of the kind; beside `Classes`, a name alone stands for all kinds that "
          "have such a class")
      .Default("none");
}

Status CheckBalanceFile(std::string_view path) {
  const bool below = path.find("/../") == std::string_view::npos && !path.ends_with("/..");
  if (path.empty() || (path.starts_with("/etc/") && below && IsPlainAscii(path))) return OkStatus();
  return InvalidArgument("\"{}\" is no file below /etc", Printable(path, 128));
}

}  // namespace

bool ClassesConfig::Allows(std::string_view kind, std::string_view name,
                           std::string_view namespace_name) const {
  auto globs = name.empty() ? namespaces.end() : namespaces.find(fmt::format("{}/{}", kind, name));
  if (globs == namespaces.end()) globs = namespaces.find(kind);
  return globs != namespaces.end() &&
         std::ranges::any_of(globs->second, [namespace_name](const std::string& glob) {
           return MatchesGlob(glob, namespace_name);
         });
}

std::vector<std::string> ClassesConfig::NamesOf(std::string_view kind) const {
  std::vector<std::string> names;
  const auto add = [&names](const auto& classes) {
    for (const auto& one : classes)
      names.push_back(one.name);
  };
  const auto add_keys = [&names](const auto& classes) {
    for (const auto& one : classes)
      names.push_back(one.first);
  };
  if (kind == "memory") add(memory);
  if (kind == "cpu") add(cpu.classes);
  if (kind == "scheduling") add(scheduling.classes);
  if (kind == "blockio") add_keys(blockio.classes);
  if (kind == "rdt") {
    for (const auto& [name, partition] : rdt.partitions)
      add_keys(partition.classes);
  }
  return names;
}

Status CheckGovernor(std::string_view name) {
  const bool plain = std::ranges::all_of(
      name, [](char c) { return IsLowerCase(c) || IsDigit(c) || c == '_' || c == '-'; });
  if (plain && name.size() <= kLongestGovernor) return OkStatus();
  return InvalidArgument("\"{}\" can be no governor", Printable(name, 64));
}

void DescribeIsolation(ConfigSection& section, IsolationConfig& config) {
  using Interrupts = IsolationConfig::Interrupts;
  using Workqueues = IsolationConfig::Workqueues;
  using Quota = IsolationConfig::Quota;
  using Partition = IsolationConfig::Partition;
  section.Choice("Interrupts",
                 {{"leave", Interrupts::kLeave},
                  {"isolate", Interrupts::kIsolate},
                  {"housekeeping", Interrupts::kHousekeeping}},
                 config.interrupts,
                 "`isolate`: interrupts go to other CPUs; `housekeeping`: to others and to the "
                 "first core of these");
  section.Choice("Workqueues", {{"leave", Workqueues::kLeave}, {"isolate", Workqueues::kIsolate}},
                 config.workqueues, "`isolate`: the kernel's unbound work runs on other CPUs");
  section.Choice("Quota", {{"keep", Quota::kKeep}, {"lift", Quota::kLift}}, config.quota,
                 "`lift`: the pod has no CPU quota; that of the container is the policy's to lift");
  section.Choice(
      "Partition",
      {{"none", Partition::kNone}, {"root", Partition::kRoot}, {"isolated", Partition::kIsolated}},
      config.partition,
      "`root`: the CPUs are a scheduling domain of their own, `isolated`: one in which "
      "the kernel balances no load");
  section
      .Parse(
          "MaxLatency", ShownLatency(config.max_latency), config.max_latency, LatencyText,
          "the longest time that the CPUs may take to wake up, from `1us` to `1000ms`; `n/a`: they "
          "never leave C0")
      .Default("none");
  section.Text("Governor", config.governor, "the clock governor of the CPUs", CheckGovernor)
      .Default("none");
}

void DescribeUndisturbed(ConfigSection& section, IsolationConfig& config) {
  section.Map(kUndisturbed,
              [&config](ConfigSection& isolation) { DescribeIsolation(isolation, config); });
}

void OverrideIsolation(const ConfigNode& section, std::string_view path, ClassesConfig& config) {
  for (const ConfigNode::Entry& entry : section.entries) {
    if (!EqualsIgnoreCase(entry.key, kUndisturbed) || entry.value.entries.empty()) continue;
    const std::string source = fmt::format("{}.{}", path, kUndisturbed);
    ConfigSection reader(entry.value, source);
    DescribeIsolation(reader, config.isolation);
    config.isolation_source = source;
  }
}

void DescribeClasses(ConfigSection& root, ClassesConfig& config) {
  root.Map("classes", [&config](ConfigSection& classes) {
    classes.Map("isolation", [&config](ConfigSection& isolation) {
      DescribeIsolation(isolation, config.isolation);
    });
    classes.Map("irq", [&config](ConfigSection& irq) {
      DescribeGlobs(irq, "Controllable", config.controllable,
                    "globs of the interrupts that may be moved, by their number or by the end of "
                    "their line in `/proc/interrupts`");
      irq.Choice<bool>(
          "Balance", {{"detect", true}, {"leave", false}}, config.balance,
          "`detect`: a running irqbalance is told which CPUs and interrupts to leave alone");
      irq.Text("BalanceFile", config.balance_file,
               "the environment file of irqbalance, as `/etc/default/irqbalance`: it gets these "
               "CPUs while irqbalance does not run",
               CheckBalanceFile)
          .Default("none");
    });
    DescribeMemoryClasses(classes, config.memory);
    classes.List("MemoryAnnotations", config.memory_files,
                 "files `memory.*` of their cgroup that pods may set by annotations");
    for (const std::string& file : config.memory_files) {
      const bool valid = file.starts_with("memory.") && file.find('/') == std::string::npos;
      if (!valid && classes.Node("MemoryAnnotations") != nullptr)
        classes.Fail("MemoryAnnotations",
                     fmt::format("\"{}\" is no file memory.*", Printable(file, 64)));
    }
    DescribeRdt(classes, config.rdt);
    DescribeBlockio(classes, config.blockio);
    DescribeCpuClasses(classes, config.cpu);
    DescribeScheduling(classes, config.scheduling);
    const ConfigNode* const namespaces = classes.Node("AllowedNamespaces");
    classes
        .Map("AllowedNamespaces",
             [&config, namespaces](ConfigSection& allowed) {
               DescribeAllowed(allowed, config.namespaces);
               if (namespaces != nullptr) ReadClassNames(*namespaces, allowed, config);
             })
        .FreeNames();
    using Unknown = ClassesConfig::Unknown;
    using Absent = ClassesConfig::Absent;
    classes.Choice(
        "Unknown",
        {{"refuse", Unknown::kRefuse}, {"ignore", Unknown::kIgnore}, {"note", Unknown::kIgnore}},
        config.unknown,
        "what happens to a container whose pod names a class that does not exist: it "
        "is refused, or `explain` notes it (`note`, or `ignore`)");
    classes.Choice("Absent", {{"warn", Absent::kWarn}, {"refuse", Absent::kRefuse}}, config.absent,
                   "what happens to a container whose pod chooses a class that needs what the "
                   "machine lacks: it runs without, or it is refused");
  });
}

}  // namespace resmgr
