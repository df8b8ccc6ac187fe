// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/memory_classes_config.h"

#include <charconv>
#include <set>
#include <string_view>
#include <system_error>

#include "pkg/base/parse.h"
#include "pkg/config/class_name.h"
#include "pkg/kube/quantity.h"

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

// "64Mi", "max", to the text of the kernel's file.
StatusOr<std::string> BytesFileText(std::string_view text) {
  if (EqualsIgnoreCase(text, kMax)) return std::string(kMax);
  const StatusOr<Bytes> bytes = ParseBytes(text);
  if (bytes.ok()) return fmt::format("{}", bytes->value);
  return InvalidArgument("\"{}\" is not a number of bytes, and not \"{}\"", Printable(text, 64),
                         kMax);
}

void DescribeFile(ConfigSection& section, std::string_view key, std::string& target,
                  std::string_view help) {
  section
      .Parse(
          key, target.empty() ? std::nullopt : std::optional(target),
          [&target](std::string_view text) -> Status {
            RESMGR_ASSIGN_OR_RETURN(target, BytesFileText(text));
            return OkStatus();
          },
          help)
      .Default("none");
}

void DescribeMemoryClass(ConfigSection& section, MemoryClassConfig& item) {
  section.Text("name", item.name, "what annotations name", CheckClassName).Default("none");
  section
      .Parse(
          "swaplimitratio",
          item.swap_limit_ratio ? std::optional(fmt::format("{}", *item.swap_limit_ratio))
                                : std::nullopt,
          [&item](std::string_view text) -> Status {
            RESMGR_ASSIGN_OR_RETURN(item.swap_limit_ratio, RatioOf(text));
            return OkStatus();
          },
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
  MemoryPolicyConfig policy = item.policy.value_or(MemoryPolicyConfig());
  section.Map("policy", [&policy](ConfigSection& keys) { DescribeMemoryPolicy(keys, policy); });
  if (section.Node("policy") != nullptr) item.policy = policy;
}

}  // namespace

void DescribeMemoryClasses(ConfigSection& classes, std::vector<MemoryClassConfig>& memory) {
  classes.Items<MemoryClassConfig>("memory", memory, MemoryClassConfig(), DescribeMemoryClass,
                                   "the classes of memory");
  const ConfigNode* const node = classes.Node("memory");
  if (node == nullptr) return;
  std::set<std::string> names;
  for (const MemoryClassConfig& one : memory) {
    if (one.name.empty()) classes.Fail(*node, "memory", "a class has no name");
    if (!one.name.empty() && !names.insert(one.name).second)
      classes.Fail(*node, "memory", fmt::format("\"{}\" is there twice", one.name));
  }
}

}  // namespace resmgr
