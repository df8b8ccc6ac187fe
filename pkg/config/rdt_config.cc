// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/rdt_config.h"

#include <charconv>
#include <set>
#include <system_error>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::string_view kAllIds = "all";
constexpr uint32_t kWhole = 100;
constexpr int kMostBits = 64;
constexpr int kHexadecimal = 16;
// A directory's name, less the prefix.
constexpr size_t kLongestClass = 200;
constexpr size_t kLongestPrefix = 50;

template <typename Number>
StatusOr<Number> RdtNumber(std::string_view text, int base = 10) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return number;
  return InvalidArgument("invalid integer \"{}\"", Printable(text, 64));
}

StatusOr<uint32_t> PercentOf(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const uint32_t percent, RdtNumber<uint32_t>(text));
  if (percent > kWhole) return InvalidArgument("{}% is more than 100%", percent);
  return percent;
}

StatusOr<CachePart> ParsePercent(std::string_view text) {
  text.remove_suffix(1);
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    RESMGR_ASSIGN_OR_RETURN(const uint32_t percent, PercentOf(text));
    return CachePercent{percent};
  }
  RESMGR_ASSIGN_OR_RETURN(const uint32_t first, PercentOf(text.substr(0, dash)));
  RESMGR_ASSIGN_OR_RETURN(const uint32_t last, PercentOf(text.substr(dash + 1)));
  if (first > last) return InvalidArgument("the range {}-{}% is empty", first, last);
  return CacheRange{first, last};
}

struct NumberRange {
  uint32_t first = 0;
  uint32_t last = 0;
};

// "4" or "4-7".
StatusOr<NumberRange> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  NumberRange range;
  RESMGR_ASSIGN_OR_RETURN(range.first, RdtNumber<uint32_t>(text.substr(0, dash)));
  range.last = range.first;
  if (dash == std::string_view::npos) return range;
  RESMGR_ASSIGN_OR_RETURN(range.last, RdtNumber<uint32_t>(text.substr(dash + 1)));
  return range;
}

StatusOr<CachePart> ParseBits(std::string_view text) {
  CacheBits bits;
  for (const std::string_view range : Split(text, ',')) {
    RESMGR_ASSIGN_OR_RETURN(const NumberRange numbers, ParseRange(range));
    const auto [first, last] = numbers;
    if (first > last || last >= kMostBits)
      return InvalidArgument("\"{}\" is no range of bits", Printable(range, 64));
    for (uint32_t bit = first; bit <= last; ++bit)
      bits.mask |= uint64_t{1} << bit;
  }
  return bits;
}

StatusOr<CachePart> ReadPart(std::string_view text) {
  if (text.ends_with('%')) return ParsePercent(text);
  if (!text.starts_with("0x") && !text.starts_with("0X")) return ParseBits(text);
  RESMGR_ASSIGN_OR_RETURN(const uint64_t mask, RdtNumber<uint64_t>(text.substr(2), kHexadecimal));
  return CacheBits{mask};
}

// InvalidArgument: the text is not a part of a cache.
StatusOr<CachePart> ParseCachePart(std::string_view text) {
  StatusOr<CachePart> part = ReadPart(text);
  if (part.ok()) return part;
  return InvalidArgument("\"{}\": {}; a part is 60%, 10-40%, 0-7 or 0xff", Printable(text, 64),
                         Message(part.status()));
}

// One block of ones, unless the machine can do more (rdt_masks.h).
std::string BitsText(uint64_t mask) {
  return fmt::format("{:#x}", mask);
}

std::string PartText(const CachePart& part) {
  if (const auto* const percent = std::get_if<CachePercent>(&part))
    return fmt::format("{}%", percent->percent);
  if (const auto* const range = std::get_if<CacheRange>(&part))
    return fmt::format("{}-{}%", range->first, range->last);
  return BitsText(std::get<CacheBits>(part).mask);
}

// Ids as "all", "0", "0,2,4-7"; nullopt: all.
StatusOr<std::optional<std::vector<uint32_t>>> ParseIds(std::string_view text) {
  // Caches of a very large machine.
  constexpr size_t kMostIds = 4096;
  std::optional<std::vector<uint32_t>> ids;
  if (text == kAllIds) return ids;
  ids.emplace();
  for (const std::string_view range : Split(text, ',')) {
    RESMGR_ASSIGN_OR_RETURN(const NumberRange numbers, ParseRange(range));
    const auto [first, last] = numbers;
    if (first > last || last - first >= kMostIds || ids->size() + (last - first) >= kMostIds)
      return InvalidArgument("\"{}\" is no range of ids", Printable(range, 64));
    for (uint64_t id = first; id <= last; ++id)
      ids->push_back(static_cast<uint32_t>(id));
  }
  return ids;
}

StatusOr<CacheParts> ReadCacheParts(const ConfigNode& node) {
  CacheParts parts;
  if (node.kind == ConfigNode::Kind::kScalar) {
    RESMGR_ASSIGN_OR_RETURN(parts.unified, ParseCachePart(node.text));
    return parts;
  }
  if (node.kind != ConfigNode::Kind::kMap) return InvalidArgument("must be a text or a map");
  bool unified = false;
  std::set<std::string> given;
  for (const ConfigNode::Entry& entry : node.entries) {
    if (!given.insert(ToLower(entry.key)).second)
      return InvalidArgument("{} is given twice", Printable(entry.key, 64));
    if (entry.value.kind != ConfigNode::Kind::kScalar)
      return InvalidArgument("{} must be a text", Printable(entry.key, 64));
    RESMGR_ASSIGN_OR_RETURN(const CachePart part, ParseCachePart(entry.value.text));
    if (EqualsIgnoreCase(entry.key, "unified")) {
      parts.unified = part;
      unified = true;
    } else if (EqualsIgnoreCase(entry.key, "code")) {
      parts.code = part;
    } else if (EqualsIgnoreCase(entry.key, "data")) {
      parts.data = part;
    } else {
      return InvalidArgument("there is no key \"{}\"; known here: unified, code, data",
                             Printable(entry.key, 64));
    }
  }
  if (!unified) return InvalidArgument("'unified' not specified");
  if (parts.code && !parts.data) return InvalidArgument("'code' specified without 'data'");
  if (parts.data && !parts.code) return InvalidArgument("'data' specified without 'code'");
  return parts;
}

// Texts in other units are skipped: they are for other programs or versions.
StatusOr<BandwidthPart> ReadBandwidthPart(const ConfigNode& node) {
  constexpr std::string_view kMbps = "MBps";
  BandwidthPart part;
  RESMGR_ASSIGN_OR_RETURN(const std::vector<std::string> texts, TextsOf(node));
  for (std::string_view text : texts) {
    if (text.ends_with('%') && !part.percent) {
      RESMGR_ASSIGN_OR_RETURN(part.percent, PercentOf(text.substr(0, text.size() - 1)));
    } else if (text.ends_with(kMbps) && !part.mbps) {
      RESMGR_ASSIGN_OR_RETURN(part.mbps,
                              RdtNumber<uint32_t>(text.substr(0, text.size() - kMbps.size())));
    }
  }
  if (!part.percent && !part.mbps)
    return InvalidArgument("has neither a value in percent (\"50%\") nor one in \"MBps\"");
  return part;
}

template <typename Part>
Status ReadAllocation(const ConfigNode& node, StatusOr<Part> (*read)(const ConfigNode&),
                      RdtAllocation<Part>& allocation) {
  if (node.kind == ConfigNode::Kind::kNull) return OkStatus();
  if (node.kind != ConfigNode::Kind::kMap) {
    RESMGR_ASSIGN_OR_RETURN(allocation.all, read(node));
    return OkStatus();
  }
  std::set<uint32_t> given;
  for (const ConfigNode::Entry& entry : node.entries) {
    RESMGR_ASSIGN_OR_RETURN(const std::optional<std::vector<uint32_t>> ids, ParseIds(entry.key));
    const StatusOr<Part> part = read(entry.value);
    if (!part.ok()) return Annotate(part.status(), Printable(entry.key, 64));
    if (!ids) allocation.all = *part;
    if (!ids) continue;
    for (const uint32_t id : *ids) {
      if (!given.insert(id).second) return InvalidArgument("the id {} is given twice", id);
      allocation.by_id[id] = *part;
    }
  }
  return OkStatus();
}

ConfigNode ShownPart(const CacheParts& parts) {
  if (!parts.code) return ScalarNode(PartText(parts.unified));
  return MapNode({{"unified", 1, ScalarNode(PartText(parts.unified))},
                  {"code", 1, ScalarNode(PartText(*parts.code))},
                  {"data", 1, ScalarNode(PartText(*parts.data))}});
}

ConfigNode ShownPart(const BandwidthPart& part) {
  std::vector<std::string> texts;
  if (part.percent) texts.push_back(fmt::format("{}%", *part.percent));
  if (part.mbps) texts.push_back(fmt::format("{}MBps", *part.mbps));
  return ListNode(texts);
}

template <typename Part>
void DescribeAllocation(ConfigSection& section, std::string_view key,
                        StatusOr<Part> (*read)(const ConfigNode&), RdtAllocation<Part>& allocation,
                        std::string_view help) {
  std::map<std::string, ConfigNode, std::less<>> raw;
  if (allocation.given()) {
    std::vector<ConfigNode::Entry> entries;
    if (allocation.all) entries.push_back({std::string(kAllIds), 1, ShownPart(*allocation.all)});
    for (const auto& [id, part] : allocation.by_id)
      entries.push_back({fmt::format("{}", id), 1, ShownPart(part)});
    raw.emplace(key, MapNode(std::move(entries)));
  }
  section.Raw(key, raw, help).Default("none");
  const ConfigNode* const node = section.Node(key);
  if (node == nullptr) return;
  const Status status = ReadAllocation(*node, read, allocation);
  if (!status.ok()) section.Fail(*node, key, Message(status));
}

void DescribeAllocations(ConfigSection& section, RdtAllocations& allocations) {
  DescribeAllocation(section, "l2Allocation", ReadCacheParts, allocations.l2,
                     "the part of each L2 cache: `60%`, `10-40%`, bits (`0-7`, `0xff`), or a map "
                     "of cache ids (`all`, `0,2-3`) to these or to `{unified, code, data}`");
  DescribeAllocation(section, "l3Allocation", ReadCacheParts, allocations.l3,
                     "the same of each L3 cache");
  DescribeAllocation(section, "mbAllocation", ReadBandwidthPart, allocations.mb,
                     "the memory bandwidth: a list of `50%` and `1000MBps`, or a map of cache ids "
                     "to such lists");
}

Status CheckRdtClassName(std::string_view name) {
  if (IsRdtRoot(name)) return OkStatus();
  const bool plain = IsPlainAscii(name) && name.find('/') == std::string_view::npos;
  if (plain && name != "." && name != ".." && name.size() <= kLongestClass) return OkStatus();
  return InvalidArgument(
      "unqualified class name \"{}\": printable ASCII without a slash, {} characters at most",
      Printable(name, 64), kLongestClass);
}

void DescribeRdtClass(ConfigSection& section, RdtClassConfig& one) {
  DescribeAllocations(section, one.allocations);
  section.Map("kubernetes", [&one](ConfigSection& kubernetes) {
    kubernetes.Bool("denyPodAnnotation", one.denies_pod_annotation,
                    "annotations for whole pods may not choose it");
    kubernetes.Bool("denyContainerAnnotation", one.denies_container_annotation,
                    "annotations for single containers may not choose it");
  });
}

// Refuses shares that add up to more than a whole cache on any machine. Shares of single caches are
// checked when the machine's caches are known.
void CheckShares(ConfigSection& rdt, const RdtConfig& config, std::string_view key,
                 RdtAllocation<CacheParts> RdtAllocations::*level) {
  uint64_t percents = 0;
  for (const auto& [name, partition] : config.partitions) {
    const RdtAllocation<CacheParts>& allocation = partition.allocations.*level;
    if (!allocation.by_id.empty()) return;
    if (!allocation.all) continue;
    if (const auto* const percent = std::get_if<CachePercent>(&allocation.all->unified))
      percents += percent->percent;
  }
  if (percents > kWhole && rdt.Node("partitions") != nullptr)
    rdt.Fail("partitions",
             fmt::format("the partitions' {} are {}% together, more than 100%", key, percents));
}

void DescribePartitions(ConfigSection& rdt, RdtConfig& config) {
  rdt.Each<RdtPartitionConfig>(
      "partitions", "NAME", config.partitions,
      [](std::string_view name) {
        return IsPlainAscii(name) ? OkStatus() : InvalidArgument("this can be no name");
      },
      [](std::string_view, ConfigSection& section, RdtPartitionConfig& partition) -> Status {
        DescribeAllocations(section, partition.allocations);
        section.Each<RdtClassConfig>(
            "classes", "CLASS", partition.classes, CheckRdtClassName,
            [](std::string_view, ConfigSection& described, RdtClassConfig& one) -> Status {
              DescribeRdtClass(described, one);
              return OkStatus();
            },
            "the classes that share the partition, by name; `\"\"` is the root group, which has "
            "all "
            "without a class");
        return OkStatus();
      },
      "parts of the caches that have nothing in common, by name, in the schema of goresctrl");
  std::set<std::string_view> names;
  for (const auto& [partition, settings] : config.partitions) {
    for (const auto& [name, one] : settings.classes) {
      const std::string_view known = IsRdtRoot(name) ? std::string_view() : name;
      if (!names.insert(known).second && rdt.Node("partitions") != nullptr)
        rdt.Fail("partitions", fmt::format("\"{}\" defined multiple times", name));
    }
  }
  CheckShares(rdt, config, "l2Allocation", &RdtAllocations::l2);
  CheckShares(rdt, config, "l3Allocation", &RdtAllocations::l3);
}

}  // namespace

bool IsRdtRoot(std::string_view class_name) {
  return class_name.empty() || class_name == "system/default";
}

void DescribeRdt(ConfigSection& classes, RdtConfig& config) {
  classes.Map("rdt", [&config](ConfigSection& rdt) {
    rdt.Bool("Enable", config.enable,
             "`false`: no container has a class of caches or memory bandwidth, and annotations "
             "that name one have no effect");
    rdt.Text(
        "Prefix", config.prefix,
        "what the names of the groups in `/sys/fs/resctrl` begin with; others are never "
        "touched",
        [](std::string_view text) {
          const bool plain = !text.empty() && text.size() <= kLongestPrefix && IsPlainAscii(text) &&
                             text.find('/') == std::string_view::npos && !text.starts_with('.');
          return plain
                     ? OkStatus()
                     : InvalidArgument("\"{}\" can be no beginning of names", Printable(text, 64));
        });
    using Assign = RdtConfig::Assign;
    rdt.Choice("Assign",
               {{"auto", Assign::kAuto},
                {"tasks", Assign::kTasks},
                {"cpus", Assign::kCpus},
                {"runtime", Assign::kRuntime}},
               config.assign,
               "how containers come into their groups: by the CPUs that they have for themselves "
               "(`cpus`), by their tasks, by the runtime, or by CPUs where they have some, and by "
               "tasks else (`auto`)");
    using Monitoring = RdtConfig::Monitoring;
    rdt.Choice(
        "Monitoring",
        {{"none", Monitoring::kNone},
         {"pod", Monitoring::kPod},
         {"container", Monitoring::kContainer}},
        config.monitoring,
        "`pod`: each pod with a class has a monitoring group, whose use of caches and memory "
        "bandwidth is in the metrics; `container`: each container with a class has one");
    rdt.Bool("DefaultByQoS", config.default_by_qos,
             "a class with the name of the pod's QoS class is the default of its containers");
    rdt.Bool("Force", config.force,
             "groups with this prefix that are not in the configuration are removed also if they "
             "have tasks");
    rdt.Map("options", [&config](ConfigSection& options) {
      const auto optional = [&options](std::string_view key, bool& target) {
        options.Map(key, [&target](ConfigSection& one) {
          one.Bool("optional", target, "machines that lack it can have the classes without");
        });
      };
      optional("l2", config.l2_optional);
      optional("l3", config.l3_optional);
      optional("mb", config.mb_optional);
    });
    DescribePartitions(rdt, config);
  });
}

}  // namespace resmgr
