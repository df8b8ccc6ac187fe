// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/convert_control.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

using ControlEntries = std::vector<ConfigNode::Entry>;
using ControlNotes = std::vector<std::string>;

constexpr std::array<std::string_view, 3> kControls = {"cpu", "rdt", "blockio"};
// Keys of a CPU class that also exist here.
constexpr std::array<std::string_view, 8> kCpuKeys = {"minFreq",
                                                      "maxFreq",
                                                      "uncoreMinFreq",
                                                      "uncoreMaxFreq",
                                                      "energyPerformancePreference",
                                                      "freqGovernor",
                                                      "disabledCstates",
                                                      "turboPriority"};
constexpr size_t kLongestShownKey = 64;

Status CheckIsMap(const ConfigNode& node, std::string_view path) {
  if (node.kind == ConfigNode::Kind::kMap || node.kind == ConfigNode::Kind::kNull)
    return OkStatus();
  return ErrorAt(
      node, path,
      fmt::format("must be {}, not {}", ToString(ConfigNode::Kind::kMap), ToString(node.kind)));
}

void LeaveOut(std::string_view path, std::string_view key, ControlNotes& notes) {
  notes.push_back(fmt::format("{}.{} is left out", path, Printable(key, kLongestShownKey)));
}

bool IsOn(const ConfigNode& value) {
  return ParseBool(value.text).value_or(false);
}

// "classes: {NAME: {minFreq: 1200000}}" becomes a list.
Status ConvertCpu(const ConfigNode& control, std::string_view path, ControlEntries& classes,
                  ControlNotes& notes) {
  ConfigNode list;
  list.kind = ConfigNode::Kind::kList;
  for (const ConfigNode::Entry& entry : control.entries) {
    if (!EqualsIgnoreCase(entry.key, "classes")) {
      LeaveOut(path, entry.key, notes);
      continue;
    }
    RESMGR_RETURN_IF_ERROR(CheckIsMap(entry.value, fmt::format("{}.classes", path)));
    for (const ConfigNode::Entry& one : entry.value.entries) {
      const std::string place =
          fmt::format("{}.classes.{}", path, Printable(one.key, kLongestShownKey));
      RESMGR_RETURN_IF_ERROR(CheckIsMap(one.value, place));
      ControlEntries item = {{"name", 1, ScalarNode(one.key)}};
      for (const ConfigNode::Entry& field : one.value.entries) {
        const bool known = std::ranges::any_of(
            kCpuKeys, [&field](std::string_view key) { return EqualsIgnoreCase(key, field.key); });
        if (!known) {
          LeaveOut(place, field.key, notes);
          continue;
        }
        if (EqualsIgnoreCase(field.key, "energyPerformancePreference"))
          notes.push_back(
              fmt::format("{}.{} was read and never written; here it is", place, field.key));
        item.push_back(field);
      }
      list.items.push_back(MapNode(std::move(item)));
    }
  }
  if (!list.items.empty()) classes.push_back({"cpu", 1, std::move(list)});
  return OkStatus();
}

// The schema of goresctrl stays; only the keys around it change.
Status ConvertRdt(const ConfigNode& control, std::string_view path, ControlEntries& classes,
                  ControlNotes& notes) {
  ControlEntries rdt;
  bool groups = false;
  for (const ConfigNode::Entry& entry : control.entries) {
    const auto is = [&entry](std::string_view key) { return EqualsIgnoreCase(entry.key, key); };
    if (is("partitions")) {
      groups = true;
      rdt.push_back({"partitions", 1, entry.value});
    } else if (is("usePodQoSAsDefaultClass")) {
      rdt.push_back({"DefaultByQoS", 1, entry.value});
    } else if (is("force")) {
      rdt.push_back({"Force", 1, entry.value});
    } else if (is("enable")) {
      if (!IsOn(entry.value)) {
        notes.push_back(fmt::format("{}.enable is false: its classes are left out", path));
        return OkStatus();
      }
    } else if (is("options")) {
      RESMGR_RETURN_IF_ERROR(CheckIsMap(entry.value, fmt::format("{}.options", path)));
      ControlEntries options;
      for (const ConfigNode::Entry& option : entry.value.entries) {
        const bool known = EqualsIgnoreCase(option.key, "l2") ||
                           EqualsIgnoreCase(option.key, "l3") || EqualsIgnoreCase(option.key, "mb");
        if (known) {
          options.push_back(option);
        } else {
          LeaveOut(fmt::format("{}.options", path), option.key, notes);
        }
      }
      if (!options.empty()) rdt.push_back({"options", 1, MapNode(std::move(options))});
    } else {
      LeaveOut(path, entry.key, notes);
    }
  }
  if (groups) {
    notes.push_back(
        fmt::format("{}: the groups in /sys/fs/resctrl have the prefix cri-resmgr. here, and those "
                    "of others are never removed",
                    path));
  } else if (!control.entries.empty()) {
    notes.push_back(fmt::format(
        "{}: groups that others make are not used; define partitions and classes", path));
  }
  if (!rdt.empty()) classes.push_back({"rdt", 1, MapNode(std::move(rdt))});
  return OkStatus();
}

Status ConvertBlockio(const ConfigNode& control, std::string_view path, ControlEntries& classes,
                      ControlNotes& notes) {
  ControlEntries blockio;
  for (const ConfigNode::Entry& entry : control.entries) {
    const auto is = [&entry](std::string_view key) { return EqualsIgnoreCase(entry.key, key); };
    if (is("classes")) {
      blockio.push_back({"Classes", 1, entry.value});
    } else if (is("enable")) {
      if (!IsOn(entry.value)) {
        notes.push_back(fmt::format("{}.enable is false: its classes are left out", path));
        return OkStatus();
      }
    } else if (is("usePodQoSAsDefaultClass")) {
      if (IsOn(entry.value))
        notes.push_back(fmt::format(
            "{}.usePodQoSAsDefaultClass is left out: name blockioClass in balloon types or pools",
            path));
    } else {
      LeaveOut(path, entry.key, notes);
    }
  }
  if (!blockio.empty()) classes.push_back({"blockio", 1, MapNode(std::move(blockio))});
  return OkStatus();
}

}  // namespace

bool IsControlKey(std::string_view key) {
  return std::ranges::any_of(
      kControls, [key](std::string_view known) { return EqualsIgnoreCase(known, key); });
}

Status ConvertControl(std::string_view key, const ConfigNode& value, std::string_view path,
                      std::vector<ConfigNode::Entry>& classes, std::vector<std::string>& notes) {
  RESMGR_RETURN_IF_ERROR(CheckIsMap(value, path));
  if (EqualsIgnoreCase(key, "cpu")) return ConvertCpu(value, path, classes, notes);
  if (EqualsIgnoreCase(key, "rdt")) return ConvertRdt(value, path, classes, notes);
  return ConvertBlockio(value, path, classes, notes);
}

}  // namespace resmgr
