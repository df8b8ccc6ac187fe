// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/memory_classes_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/config/known_words.h"
#include "pkg/kube/quantity.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {
namespace {

constexpr std::string_view kMax = "max";

StatusOr<double> RatioOf(std::string_view text) {
  double ratio = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ratio);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && ratio >= 0 && ratio < 1) return ratio;
  return InvalidArgument("\"{}\" is not a number from 0 to less than 1", Printable(text, 64));
}

// Converts "64Mi" or "max" to the text of the kernel's file.
StatusOr<std::string> BytesFileText(std::string_view text) {
  if (EqualsIgnoreCase(text, kMax)) return std::string(kMax);
  const StatusOr<Bytes> bytes = ParseConfiguredBytes(text);
  if (bytes.ok()) return fmt::format("{}", bytes->value);
  return InvalidArgument("\"{}\" is not a number of bytes, and not \"{}\"", Printable(text, 64),
                         kMax);
}

void DescribeFile(ConfigSection& section, std::string_view key, std::string& target,
                  std::string_view help) {
  section.Parse(key, ShownText(target), target, BytesFileText, help).Default("none");
}

void DescribeMemoryClass(ConfigSection& section, MemoryClassConfig& item) {
  section.Text("name", item.name, "what annotations name", CheckClassName).Default("none");
  section
      .Parse("swaplimitratio", ShownValue(item.swap_limit_ratio), item.swap_limit_ratio, RatioOf,
             "the part of the container's memory limit above which it is throttled and swaps: "
             "`memory.high` is the limit without it, and `memory.swap.max` is `max`")
      .Default("none");
  DescribeFile(section, "high", item.high,
               "`memory.high`: above it the container is throttled; bytes or `max`");
  DescribeFile(section, "low", item.low,
               "`memory.low`: below it its memory is reclaimed last; bytes or `max`");
  DescribeFile(section, "min", item.min,
               "`memory.min`: below it its memory is never reclaimed; bytes or `max`");
  DescribeFile(section, "swapMax", item.swap_max,
               "`memory.swap.max`: the most swap that it uses; bytes or `max`");
  section.Map("policy", item.policy, DescribeMemoryPolicy);
}

using MemoryMode = MemoryPolicySettings::Mode;
using MemoryFlag = MemoryPolicySettings::Flag;

constexpr std::array<std::pair<std::string_view, MemoryMode>, 7> kMemoryModes = {{
    {"default", MemoryMode::kDefault},
    {"preferred", MemoryMode::kPreferred},
    {"bind", MemoryMode::kBind},
    {"interleave", MemoryMode::kInterleave},
    {"local", MemoryMode::kLocal},
    {"preferred-many", MemoryMode::kPreferredMany},
    {"weighted-interleave", MemoryMode::kWeightedInterleave},
}};

constexpr std::array<std::pair<std::string_view, MemoryFlag>, 3> kMemoryFlags = {{
    {"static-nodes", MemoryFlag::kStaticNodes},
    {"relative-nodes", MemoryFlag::kRelativeNodes},
    {"numa-balancing", MemoryFlag::kNumaBalancing},
}};

// "MPOL_PREFERRED_MANY" is "preferred-many", "MPOL_F_STATIC_NODES" is "static-nodes".
std::string PlainWord(std::string_view word) {
  for (const std::string_view prefix : {"MPOL_F_", "MPOL_"}) {
    if (!word.starts_with(prefix)) continue;
    word.remove_prefix(prefix.size());
    break;
  }
  std::string plain = ToLower(word);
  std::ranges::replace(plain, '_', '-');
  return plain;
}

Status CheckNodes(std::string_view nodes) {
  constexpr std::string_view kDistance = "max-dist:";
  for (const std::string_view word : {"all", "allowed-mems", "cpu-nodes", "cpu-packages"})
    if (nodes == word) return OkStatus();
  if (nodes.starts_with(kDistance)) {
    const std::optional<uint64_t> distance = ParseUint(nodes.substr(kDistance.size()));
    if (distance && *distance < 256) return OkStatus();
  } else if (const StatusOr<NodeSet> list = NodeSet::Parse(nodes); list.ok() && !list->empty()) {
    return OkStatus();
  }
  return InvalidArgument(
      "\"{}\" is no list of nodes, and not all, allowed-mems, cpu-nodes, cpu-packages or "
      "max-dist:N",
      Printable(nodes, 64));
}

void DescribeMemoryFlags(ConfigSection& section, std::vector<MemoryFlag>& flags) {
  std::vector<std::string> names;
  for (const auto& [name, flag] : kMemoryFlags)
    if (std::ranges::find(flags, flag) != flags.end()) names.emplace_back(name);
  DescribeFlags(section, std::move(names), kMemoryFlags, PlainWord, flags,
                "`static-nodes`, `relative-nodes`, `numa-balancing`");
}

}  // namespace

void DescribeMemoryClasses(ConfigSection& classes, std::vector<MemoryClassConfig>& memory) {
  classes.Items<MemoryClassConfig>("memory", memory, MemoryClassConfig(), DescribeMemoryClass,
                                   "the classes of memory");
  CheckClassNames(classes, "memory", memory);
}

std::string_view ToString(MemoryPolicySettings::Mode mode) {
  return WordOf(mode, kMemoryModes);
}

std::string_view ToString(MemoryPolicySettings::Flag flag) {
  return WordOf(flag, kMemoryFlags);
}

void DescribeMemoryPolicy(ConfigSection& section, MemoryPolicyConfig& config) {
  bool known_mode = true;
  section
      .Parse(
          "mode",
          config == MemoryPolicyConfig() ? std::nullopt
                                         : std::optional(std::string(ToString(config.mode))),
          [&config, &known_mode](std::string_view text) -> Status {
            const std::optional<MemoryMode> mode = ValueOf(PlainWord(text), kMemoryModes);
            known_mode = mode.has_value();
            if (!known_mode) return InvalidArgument("{}", NotOneOf(text, kMemoryModes));
            config.mode = *mode;
            return OkStatus();
          },
          "the memory policy with which a container begins (`set_mempolicy(2)`): `preferred`, "
          "`bind`, `interleave`, `local`, `preferred-many`, `weighted-interleave`; NRI 0.12 alone "
          "can set it")
      .Default("none");
  section
      .Parse(
          "nodes", ShownText(config.nodes),
          [&config](std::string_view text) -> Status {
            config.nodes = text;
            return CheckNodes(text);
          },
          "its nodes: `all`, `allowed-mems`, `cpu-nodes`, `cpu-packages`, `max-dist:N` or a list")
      .Default("none");
  DescribeMemoryFlags(section, config.flags);
  if (!known_mode) return;
  const bool bare = config.mode == MemoryMode::kDefault || config.mode == MemoryMode::kLocal;
  if (bare && !config.nodes.empty())
    section.Fail("nodes", fmt::format("are not for the mode {}", ToString(config.mode)));
  if (!bare && config.nodes.empty())
    section.Fail("nodes", fmt::format("the mode {} needs nodes", ToString(config.mode)));
}

}  // namespace resmgr
