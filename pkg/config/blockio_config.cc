// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/blockio_config.h"

#include <algorithm>
#include <string_view>

#include "pkg/base/parse.h"
#include "pkg/config/known_words.h"
#include "pkg/kube/names.h"
#include "pkg/kube/quantity.h"

namespace resmgr {
namespace {

constexpr const char* kBlockioClasses = "Classes";

StatusOr<uint64_t> ParseThrottle(std::string_view text) {
  const StatusOr<Bytes> amount = ParseConfiguredBytes(text);
  if (amount.ok()) return static_cast<uint64_t>(amount->value);
  return InvalidArgument("syntax error: \"{}\" is no amount such as 50M or 1Gi",
                         Printable(text, 64));
}

void DescribeThrottle(ConfigSection& section, std::string_view key,
                      std::optional<uint64_t>& target) {
  section.Parse(key, ShownValue(target), target, ParseThrottle, "");
}

StatusOr<int64_t> ParseWeight(std::string_view text) {
  constexpr int64_t kLeast = BlockioItem::kLeastWeight;
  constexpr int64_t kMost = BlockioItem::kMostWeight;
  const StatusOr<Bytes> weight = ParseConfiguredBytes(text);
  if (!weight.ok()) {
    return InvalidArgument("syntax error: \"{}\" is no weight from {} to {}", Printable(text, 64),
                           kLeast, kMost);
  }
  const int64_t value = weight->value;
  if (value < kLeast) return InvalidArgument("{} is smaller than minimum {}", value, kLeast);
  if (value > kMost) return InvalidArgument("{} is bigger than maximum {}", value, kMost);
  return value;
}

void DescribeBlockioItem(ConfigSection& section, BlockioItem& item) {
  section.List("Devices", item.devices, "");
  for (const std::string& glob : item.devices) {
    const bool below =
        glob.starts_with("/") && glob.find("/../") == std::string::npos && !glob.ends_with("/..");
    if (!below || !IsGlob(glob))
      section.Fail("Devices", fmt::format("\"{}\" is no glob of paths from the root, such as "
                                          "/dev/sd*",
                                          Printable(glob, 64)));
  }
  DescribeThrottle(section, "ThrottleReadBps", item.read_bps);
  DescribeThrottle(section, "ThrottleWriteBps", item.write_bps);
  DescribeThrottle(section, "ThrottleReadIOPS", item.read_iops);
  DescribeThrottle(section, "ThrottleWriteIOPS", item.write_iops);
  section.Parse("Weight", ShownValue(item.weight), item.weight, ParseWeight, "");
  if (item.devices.empty() && item.throttles())
    section.Fail("Devices", "is missing: without it only Weight is possible");
}

void DescribeBlockioClasses(ConfigSection& section, const ConfigNode& node,
                            BlockioConfig::Classes& classes) {
  classes.clear();
  for (const ConfigNode::Entry& entry : node.entries) {
    if (const Status name = CheckClassName(entry.key); !name.ok()) {
      (void)section.Node(entry.key);
      section.Fail(entry.value, Printable(entry.key, 64), Message(name));
      continue;
    }
    section.Items<BlockioItem>(entry.key, classes[entry.key], BlockioItem(), DescribeBlockioItem,
                               "");
  }
}

ConfigNode ShownBlockioClasses(const BlockioConfig::Classes& classes) {
  ConfigNode all = MapNode({});
  for (const auto& [name, items] : classes) {
    ConfigNode list = ListNode({});
    for (const BlockioItem& item : items) {
      BlockioItem shown = item;
      std::vector<ConfigKey> keys;
      ConfigSection section(keys);
      DescribeBlockioItem(section, shown);
      std::erase_if(keys, [](const ConfigKey& key) {
        return !key.value || (key.kind == ConfigKey::Kind::kList && key.value->items.empty());
      });
      list.items.push_back(ValuesOf(keys));
    }
    all.entries.push_back({name, 1, std::move(list)});
  }
  return all;
}

}  // namespace

void DescribeBlockio(ConfigSection& classes, BlockioConfig& config) {
  classes.Map("blockio", [&config](ConfigSection& blockio) {
    using Assign = BlockioConfig::Assign;
    blockio.Choice("Assign", {{"auto", Assign::kAuto}, {"runtime", Assign::kRuntime}},
                   config.assign,
                   "`auto`: classes are limits of the containers' cgroups; `runtime`: the runtime "
                   "gets the name, and has a file with its classes");
    std::map<std::string, ConfigNode, std::less<>> raw;
    if (!config.classes.empty()) raw.emplace(kBlockioClasses, ShownBlockioClasses(config.classes));
    blockio.Raw(kBlockioClasses, raw, "names of classes to lists of limits for devices");
    const ConfigNode* const node = blockio.Node(kBlockioClasses);
    if (node == nullptr) return;
    blockio.Map(kBlockioClasses, [&](ConfigSection& section) {
      DescribeBlockioClasses(section, *node, config.classes);
    });
  });
}

}  // namespace resmgr
