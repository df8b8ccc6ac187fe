// SPDX-License-Identifier: Apache-2.0
#include "policies/topology-aware/options.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/config/config_section.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/annotations.h"
#include "pkg/kube/names.h"
#include "pkg/kube/quantity.h"

namespace resmgr {
namespace {

struct NotHere {
  std::string_view key;
  std::string_view why;
};

constexpr std::string_view kNoScheduling =
    "is not supported: name classes of scheduling in PoolClasses, or in annotations of pods";

// Keys of the peers (cri-resource-manager, nri-plugins) that this section does not have; the
// message says why.
constexpr std::array<NotHere, 5> kNotHere = {{
    {"NamespaceSchedulingClasses", kNoScheduling},
    {"PodQoSSchedulingClasses", kNoScheduling},
    {"Control", "belongs into the module `classes`: `config convert` writes it there"},
    {"AvailableResources", "belongs one level up: policy.AvailableResources"},
    {"ReservedResources", "belongs one level up: policy.ReservedResources"},
}};

const std::initializer_list<ConfigWord<CpuPriority>> kPriorities = {
    {"high", CpuPriority::kHigh},
    {"normal", CpuPriority::kNormal},
    {"low", CpuPriority::kLow},
    {"none", CpuPriority::kNone},
};

const std::initializer_list<ConfigWord<PoolLevel>> kLevels = {
    {"system", PoolLevel::kSystem}, {"package", PoolLevel::kPackage}, {"die", PoolLevel::kDie},
    {"numa", PoolLevel::kNuma},     {"l3cache", PoolLevel::kL3},
};

template <typename T>
std::optional<T> Find(std::initializer_list<ConfigWord<T>> words, std::string_view text) {
  for (const auto& word : words) {
    if (EqualsIgnoreCase(text, word.text)) return word.value;
  }
  return std::nullopt;
}

std::optional<CpuPriority> ParseCpuPriority(std::string_view text) {
  return Find(kPriorities, text);
}

std::optional<PoolLevel> ParsePoolLevel(std::string_view text) {
  return Find(kLevels, text);
}

// A list of dram, pmem, hbm and mixed (dram and pmem).
std::optional<MemoryTypes> ParseMemoryTypes(std::string_view text) {
  MemoryTypes types = 0;
  for (const std::string_view part : Split(text, ',')) {
    const std::optional<MemoryType> type = ParseMemoryType(part);
    if (!type && !EqualsIgnoreCase(Trim(part), "mixed")) return std::nullopt;
    types |= type ? BitOf(*type) : kDramBit | kPmemBit;
  }
  return types;
}

void DescribeClassesOfPools(ConfigSection& section, TopologyAwareOptions& options) {
  section.Map(
      "PoolClasses",
      [&options](ConfigSection& pools) {
        pools.Map("exclusive", [&options](ConfigSection& classes) {
          DescribePoolClasses(classes, options.exclusive_classes);
        });
        pools.Map("shared", [&options](ConfigSection& classes) {
          DescribePoolClasses(classes, options.shared_classes);
        });
        pools.Map("reserved", [&options](ConfigSection& classes) {
          DescribePoolClasses(classes, options.reserved_classes);
        });
      },
      "the classes of containers with CPUs of their own, of those that share, and of those on "
      "reserved CPUs");
  const auto cpu_class = [&section](std::string_view key, PoolClassNames& classes) {
    std::string name;
    section.Text(key, name, "the same as `cpuClass` there").Default("none");
    if (!name.empty()) classes["cpu"] = name;
  };
  cpu_class("DefaultExclusiveCPUClass", options.exclusive_classes);
  cpu_class("SharedPoolCPUClass", options.shared_classes);
  cpu_class("ReservedPoolCPUClass", options.reserved_classes);
  DescribePolicyClasses(section, options.raw);
  section.List("controllableInterrupts", options.controllable_interrupts,
               "globs of the interrupts that may be moved, in place of `classes.irq.Controllable`");
  for (const std::string& glob : options.controllable_interrupts) {
    if (!IsGlob(glob))
      section.Fail("controllableInterrupts",
                   fmt::format("\"{}\" has [ without ]", Printable(glob, 64)));
  }
}

void Describe(ConfigSection& section, TopologyAwareOptions& options) {
  section.Bool("PinCPU", options.pin_cpu, "`false`: cpusets are not changed, nothing is exclusive");
  section.Bool("PinMemory", options.pin_memory, "`false`: `cpuset.mems` is not changed");
  section.Bool("PreferIsolatedCPUs", options.prefer_isolated,
               "isolated CPUs for single exclusive CPUs");
  section.Bool("PreferSharedCPUs", options.prefer_shared,
               "Guaranteed containers of 1.x CPUs share");
  section.Bool("ColocatePods", options.colocate_pods,
               "an affinity of weight 10 to containers of the same pod, for containers without "
               "affinities of their own");
  section.Bool("ColocateNamespaces", options.colocate_namespaces,
               "the same to containers of the same namespace");
  section.List("ReservedPoolNamespaces", options.reserved_namespaces,
               "globs (`*`, `?`) of the namespaces beside `kube-system` whose pods run on reserved "
               "CPUs");
  options.privileged.Describe(
      section,
      "the annotations `cpu.preserve`, `memory.preserve` and `prefer-reserved-cpus: \"true\"`");
  section.Choice("DefaultCPUPriority", kPriorities, options.default_priority,
                 "which CPUs are granted exclusively first");
  section.Choice("UnlimitedBurstable", kLevels, options.unlimited_burstable,
                 "the level for Burstable containers without CPU limit");
  DescribeAlignment(section, options.alignment);
  DescribeUndisturbed(section, options.undisturbed);
  DescribeClassesOfPools(section, options);
  section.Choice(
      "Packing",
      {{"auto", Packing::kAuto}, {"spread", Packing::kSpread}, {"tight", Packing::kTight}},
      options.packing,
      "`auto`: spread while at least half of the CPU time is free, then packed; `spread`, `tight`: "
      "always");
  section.Choice<bool>("CPUQuota", {{"lift", true}, {"keep", false}}, options.lift_quota,
                       "`lift`: exclusive containers of less than 256 CPUs run without CFS quota; "
                       "`keep`: as requested");
  section.Map("Agent", [&](ConfigSection& agent) {
    agent.Bool("PodResourceAPI", options.pod_resource_api,
               "the kubelet is asked where the devices of containers are: further hints");
  });
  for (const NotHere& option : kNotHere)
    section.Refuse(option.key, option.why);
}

constexpr std::string_view kOldDomain = "cri-resource-manager.intel.com";
constexpr std::string_view kNewDomain = "resource-policy.nri.io";
// The prefix of resource names in the sources of hints.
constexpr std::string_view kPodResources = "podresourceapi:";
constexpr std::chrono::milliseconds kMaxColdStart = std::chrono::hours(1);

// Reads the annotations for one container, one key after the other.
class Reader {
 public:
  Reader(const Pod& pod, std::string_view container, bool asks_kubelet,
         std::vector<std::string>& notes)
      : pod_(pod), container_(container), asks_kubelet_(asks_kubelet), notes_(notes) {}

  bool asks_kubelet() const { return asks_kubelet_; }

  void Bool(std::string_view key, std::optional<bool>& target) {
    const std::optional<ScopedAnnotation> found = FindAnnotation(pod_.annotations, key, container_);
    if (!found) return;
    if (const auto plain = BoolOfAnnotation(found->value)) target = plain;
    // MistypedAnnotations tells of other values, but not of those in a map.
    if (MayBeMap(*found)) Word(key, target, ParseBool, "not true or false");
  }
  void Bool(std::string_view key, bool& target) {
    std::optional<bool> value;
    Bool(key, value);
    target = value.value_or(target);
  }
  template <typename T, typename Parse>
  void Word(std::string_view key, std::optional<T>& target, const Parse& parse,
            std::string_view why_ignored = "unknown value") {
    const ConfigNode value = Find(key);
    if (value.kind == ConfigNode::Kind::kNull) return;
    const std::optional<T> parsed =
        value.kind == ConfigNode::Kind::kScalar ? parse(value.text) : std::nullopt;
    if (parsed) {
      target = parsed;
    } else {
      Ignore(key, why_ignored);
    }
  }

  // The value for this container; kNull if there is none.
  ConfigNode Find(std::string_view key) {
    StatusOr<ConfigNode> value = ReadAnnotation(pod_.annotations, key, container_);
    if (value.ok()) return *std::move(value);
    Ignore(key, fmt::format("not readable: {}", Printable(Message(value.status()))));
    return {};
  }

  void Note(std::string_view key, std::string_view what) {
    notes_.push_back(fmt::format("annotation {}: {}", key, what));
  }

  void Ignore(std::string_view key, std::string_view why) {
    notes_.push_back(fmt::format("annotation {} ignored: {}", key, why));
  }

 private:
  const Pod& pod_;
  const std::string_view container_;
  const bool asks_kubelet_;
  std::vector<std::string>& notes_;
};

std::vector<std::string> Texts(const ConfigNode& node) {
  std::vector<std::string> texts;
  if (node.kind == ConfigNode::Kind::kScalar) texts.push_back(node.text);
  for (const ConfigNode& item : node.items)
    texts.push_back(item.text);
  return texts;
}

std::optional<HintFilter::Paths> ReadPaths(Reader& reader, std::string_view key) {
  const ConfigNode value = reader.Find(key);
  if (value.kind == ConfigNode::Kind::kNull) return std::nullopt;
  const ConfigNode* const paths = FindMember(value, "paths");
  const bool given = paths != nullptr && paths->kind != ConfigNode::Kind::kNull;
  StatusOr<std::vector<std::string>> read = given ? TextsOf(*paths) : NotFound("no paths");
  if (!read.ok()) {
    // The text of any other item is empty, and all paths begin with that.
    reader.Ignore(key, "it needs a list of paths");
    return std::nullopt;
  }
  std::vector<std::string> texts = *std::move(read);
  constexpr std::string_view kShort = "podresapi:";
  bool kubelets = false;
  for (std::string& text : texts) {
    if (text.starts_with(kShort)) text.replace(0, kShort.size(), kPodResources);
    kubelets |= text.starts_with(kPodResources);
  }
  if (kubelets && !reader.asks_kubelet()) {
    reader.Note(key, "there are no hints from podresapi: paths");
  }
  const ConfigNode* const type = FindMember(value, "type");
  const bool glob = type != nullptr && EqualsIgnoreCase(type->text, "glob");
  if (type != nullptr && !glob && !EqualsIgnoreCase(type->text, "prefix")) {
    reader.Ignore(key, "its type is neither prefix nor glob");
    return std::nullopt;
  }
  for (const std::string& text : texts) {
    if (!glob || IsGlob(text)) continue;
    reader.Ignore(key, fmt::format("\"{}\" has [ without ]", Printable(text, 64)));
    return std::nullopt;
  }
  return HintFilter::Paths{glob, std::move(texts)};
}

void ReadHintSources(Reader& reader, HintFilter& filter) {
  constexpr std::string_view kKey = "topologyhints";
  const ConfigNode value = reader.Find(kKey);
  if (value.kind == ConfigNode::Kind::kNull) return;
  std::vector<std::string> words;
  for (const std::string& text : Texts(value)) {
    for (const std::string_view word : Split(text, ','))
      words.emplace_back(Trim(word));
  }
  bool mounts = false;
  bool devices = false;
  bool pod_resources = false;
  for (const std::string& word : words) {
    const bool all = word == "all" || ParseBool(word).value_or(false);
    mounts |= all || word == "mounts";
    devices |= all || word == "devices";
    pod_resources |= all || word == "pod-resources";
    if (word == "pod-resources") {
      if (reader.asks_kubelet()) continue;
      reader.Note(kKey, "the kubelet's pod-resources are not asked, there are no hints from them");
    } else if (!all && !ParseBool(word) && word != "mounts" && word != "devices" &&
               word != "none") {
      reader.Ignore(kKey, "unknown value");
      return;
    }
  }
  filter.mounts = mounts;
  filter.devices = devices;
  filter.pod_resources = pod_resources;
}

void ReadColdStart(Reader& reader, Preferences& preferences) {
  constexpr std::string_view kKey = "cold-start";
  const ConfigNode value = reader.Find(kKey);
  if (value.kind == ConfigNode::Kind::kNull) return;
  const ConfigNode* const text = FindMember(value, "duration");
  const auto duration = text == nullptr ? std::nullopt : ParseDuration(text->text, kMaxColdStart);
  if (!duration || duration->count() == 0) {
    reader.Ignore(kKey, "it needs a duration of more than 0s and at most 1h");
    return;
  }
  preferences.cold_start = *duration;
}

bool Fits(const HintFilter::Paths& paths, std::string_view path) {
  return std::any_of(paths.paths.begin(), paths.paths.end(), [&](const std::string& pattern) {
    if (!paths.glob) return path.starts_with(pattern);
    return MatchesGlob(pattern, path);
  });
}

bool AnyOfOurs(const StringMap& annotations) {
  return std::any_of(annotations.begin(), annotations.end(), [](const auto& annotation) {
    return annotation.first.find(kOldDomain) != std::string::npos ||
           annotation.first.find(kNewDomain) != std::string::npos;
  });
}

}  // namespace

StatusOr<TopologyAwareOptions> ReadTopologyAwareOptions(const ConfigNode* section,
                                                        std::vector<ConfigKey>* keys) {
  constexpr std::string_view kPath = "policy.topology-aware";
  if (section != nullptr) RESMGR_RETURN_IF_ERROR(CheckPolicyClasses(*section, kPath));
  return ReadSection<TopologyAwareOptions>(section, kPath, &Describe, keys);
}

std::vector<NamedClass> TopologyAwareNamedClasses(const ConfigNode& section) {
  std::vector<NamedClass> named;
  const StatusOr<TopologyAwareOptions> options = ReadTopologyAwareOptions(&section);
  if (!options.ok()) return named;
  AddNamed(options->exclusive_classes, "PoolClasses.exclusive", named);
  AddNamed(options->shared_classes, "PoolClasses.shared", named);
  AddNamed(options->reserved_classes, "PoolClasses.reserved", named);
  return named;
}

bool HintFilter::Accepts(std::string_view source) const {
  const size_t space = source.find(' ');
  const std::string_view kind = source.substr(0, space);
  const std::string_view path = space == std::string_view::npos ? "" : source.substr(space + 1);
  if (kind == "mount" && !mounts) return false;
  if (kind == "device" && !devices) return false;
  if (kind == "pod-resources" && !pod_resources) return false;
  if (deny && Fits(*deny, path)) return false;
  return !allow || Fits(*allow, path);
}

Preferences ReadPreferences(const Pod& pod, std::string_view container_name, bool asks_kubelet) {
  Preferences preferences;
  if (!AnyOfOurs(pod.annotations)) return preferences;
  Reader reader(pod, container_name, asks_kubelet, preferences.notes);
  reader.Bool("prefer-shared-cpus", preferences.shared);
  reader.Bool("prefer-isolated-cpus", preferences.isolated);
  reader.Bool("prefer-reserved-cpus", preferences.reserved);
  reader.Bool("require-isolated-cpus", preferences.require_isolated);
  reader.Bool("hide-hyperthreads", preferences.hide_hyperthreads);
  reader.Bool("pick-resources-by-hints", preferences.pick_by_hints);
  reader.Bool("cpu.preserve", preferences.preserve_cpus);
  reader.Bool("memory.preserve", preferences.preserve_memory);
  reader.Bool("allow-rebalance", preferences.allow_rebalance);
  reader.Bool("strict.topologyhints", preferences.hints.strict);
  AnnotatedAlignment alignment = ReadAlignmentAnnotation(pod.annotations, container_name);
  preferences.alignment = alignment.alignment;
  if (!alignment.ignored.empty()) preferences.notes.push_back(std::move(alignment.ignored));
  reader.Word("memory-type", preferences.memory_types, ParseMemoryTypes);
  reader.Word("unlimited-burstable", preferences.unlimited_burstable, ParsePoolLevel);
  // "default" selects the configuration's value, as without the annotation.
  constexpr std::string_view kPriority = "prefer-cpu-priority";
  if (reader.Find(kPriority).text != "default") {
    reader.Word(kPriority, preferences.priority, ParseCpuPriority);
  }
  ReadHintSources(reader, preferences.hints);
  preferences.hints.allow = ReadPaths(reader, "allow.topologyhints");
  preferences.hints.deny = ReadPaths(reader, "deny.topologyhints");
  ReadColdStart(reader, preferences);
  constexpr std::string_view kTopTier = "toptierlimit";
  if (reader.Find(kTopTier).kind != ConfigNode::Kind::kNull)
    reader.Ignore(kTopTier, "no such controller");
  return preferences;
}

}  // namespace resmgr
