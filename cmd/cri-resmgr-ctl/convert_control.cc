// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/convert_control.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

using ControlEntries = std::vector<ConfigNode::Entry>;
using ControlNotes = std::vector<std::string>;

// Keys of a CPU class that also exist here.
const KeyNames& CpuKeys() {
  static const KeyNames keys = {"minFreq",         "maxFreq",      "uncoreMinFreq",
                                "uncoreMaxFreq",   "freqGovernor", "energyPerformancePreference",
                                "disabledCstates", "turboPriority"};
  return keys;
}

bool IsOn(const ConfigNode& value) {
  return ParseBool(value.text).value_or(false);
}

// "classes: {NAME: {minFreq: 1200000}}" becomes a list.
Status ConvertCpu(const ConfigNode& control, std::string_view path, ControlEntries& classes,
                  ControlNotes& notes) {
  std::vector<ConfigNode> items;
  for (const ConfigNode::Entry& entry : control.entries) {
    if (!EqualsIgnoreCase(entry.key, "classes")) {
      NoteLeftOut(path, entry.key, notes);
      continue;
    }
    RESMGR_RETURN_IF_ERROR(
        CheckKind(entry.value, fmt::format("{}.classes", path), ConfigNode::Kind::kMap));
    for (const ConfigNode::Entry& one : entry.value.entries) {
      const std::string place =
          fmt::format("{}.classes.{}", path, Printable(one.key, kMostKeyText));
      RESMGR_RETURN_IF_ERROR(CheckKind(one.value, place, ConfigNode::Kind::kMap));
      ControlEntries item = {{"name", 1, ScalarNode(one.key)}};
      for (const ConfigNode::Entry& field : one.value.entries) {
        if (!IsOneOf(CpuKeys(), field.key)) {
          NoteLeftOut(place, field.key, notes);
          continue;
        }
        if (EqualsIgnoreCase(field.key, "energyPerformancePreference"))
          notes.push_back(
              fmt::format("{}.{} was read and never written; here it is", place, field.key));
        item.push_back(field);
      }
      items.push_back(MapNode(std::move(item)));
    }
  }
  if (!items.empty()) classes.push_back({"cpu", 1, ItemsNode(std::move(items))});
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
      RESMGR_RETURN_IF_ERROR(
          CheckKind(entry.value, fmt::format("{}.options", path), ConfigNode::Kind::kMap));
      ControlEntries options;
      for (const ConfigNode::Entry& option : entry.value.entries) {
        if (IsOneOf({"l2", "l3", "mb"}, option.key)) {
          options.push_back(option);
        } else {
          NoteLeftOut(fmt::format("{}.options", path), option.key, notes);
        }
      }
      if (!options.empty()) rdt.push_back({"options", 1, MapNode(std::move(options))});
    } else {
      NoteLeftOut(path, entry.key, notes);
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
      NoteLeftOut(path, entry.key, notes);
    }
  }
  if (!blockio.empty()) classes.push_back({"blockio", 1, MapNode(std::move(blockio))});
  return OkStatus();
}

}  // namespace

bool IsOneOf(const KeyNames& keys, std::string_view key) {
  return std::ranges::any_of(
      keys, [key](std::string_view known) { return EqualsIgnoreCase(known, key); });
}

Status CheckKind(const ConfigNode& node, std::string_view path, ConfigNode::Kind kind) {
  if (node.kind == kind || node.kind == ConfigNode::Kind::kNull) return OkStatus();
  return ErrorAt(node, path,
                 fmt::format("must be {}, not {}", ToString(kind), ToString(node.kind)));
}

ConfigNode ItemsNode(std::vector<ConfigNode> items) {
  ConfigNode list = ListNode({});
  list.items = std::move(items);
  return list;
}

void NoteLeftOut(std::string_view path, std::string_view key, std::vector<std::string>& notes) {
  notes.push_back(fmt::format("{}{}{} is left out", path, path.empty() ? "" : ".",
                              Printable(key, kMostKeyText)));
}

bool IsControlKey(std::string_view key) {
  return IsOneOf({"cpu", "rdt", "blockio"}, key);
}

Status ConvertControl(std::string_view key, const ConfigNode& value, std::string_view path,
                      std::vector<ConfigNode::Entry>& classes, std::vector<std::string>& notes) {
  RESMGR_RETURN_IF_ERROR(CheckKind(value, path, ConfigNode::Kind::kMap));
  if (EqualsIgnoreCase(key, "cpu")) return ConvertCpu(value, path, classes, notes);
  if (EqualsIgnoreCase(key, "rdt")) return ConvertRdt(value, path, classes, notes);
  return ConvertBlockio(value, path, classes, notes);
}

}  // namespace resmgr
