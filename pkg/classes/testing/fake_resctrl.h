// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "pkg/base/parse.h"
#include "pkg/classes/rdt_masks.h"
#include "pkg/classes/testing/fake_host_files.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr::test {

// Adds /sys/fs/resctrl of a machine to a fake host, which then behaves as the kernel's: groups get
// their files when they are made, schemata keep what a write does not name and refuse domains that
// are offline, percents are rounded up, a CPU or a task is in one control group. A monitoring group
// takes only CPUs and tasks of its control group, and loses its CPUs when that group gets others.
class FakeResctrl {
 public:
  explicit FakeResctrl(FakeHostFiles& files) : files_(files) {
    files_.on_make = [this](const std::string& group) { AddGroup(group); };
    files_.rules = [this](const std::string& path, std::string_view text) {
      return ErrorOf(path, text);
    };
    files_.keeps = [this](std::string_view path, std::string_view text) {
      return Kept(std::string(path), text);
    };
    files_.tree[std::string(kRoot) + "info/last_cmd_status"] = "ok\n";
  }

  uint64_t step = 10;  // of percents of bandwidth

  void AddCache(const std::string& level, std::string_view mask, int closids, int least = 1) {
    AddInfo(level, "cbm_mask", fmt::format("{}\n", mask));
    AddInfo(level, "min_cbm_bits", fmt::format("{}\n", least));
    AddInfo(level, "num_closids", fmt::format("{}\n", closids));
    all_ += fmt::format("    {}:0={};1={}\n", level, mask, mask);
    AddGroup("sys/fs/resctrl");
  }
  void AddBandwidth(int closids, std::string_view all = "100") {
    AddInfo("MB", "min_bandwidth", "10\n");
    AddInfo("MB", "bandwidth_gran", "10\n");
    AddInfo("MB", "num_closids", fmt::format("{}\n", closids));
    all_ = fmt::format("    MB:0={};1={}\n", all, all) + all_;
    AddGroup("sys/fs/resctrl");
  }
  void AddGroup(const std::string& directory) {
    files_.tree[directory + "/schemata"] = all_;
    files_.tree[directory + "/mode"] = "shareable\n";
    for (const char* const file : {"cpus_list", "tasks"})
      files_.tree[directory + "/" + file] = "\n";
  }
  // The last CPU of these caches goes offline.
  void EndDomain(uint32_t id) {
    const auto without = [id](std::string_view text) {
      RdtSchemata schemata = ParseSchemata(text);
      for (auto& [resource, values] : schemata)
        values.erase(id);
      return SchemataText(schemata);
    };
    all_ = without(all_);
    for (auto& [path, text] : files_.tree)
      if (IsFile(path, "/schemata")) text = without(text);
  }

 private:
  static constexpr std::string_view kRoot = "sys/fs/resctrl/";

  static bool IsFile(std::string_view path, std::string_view name) {
    return path.starts_with(kRoot) && path.ends_with(name);
  }
  // The directory of a group's file, without the file's name.
  static std::string GroupOf(std::string_view path) {
    return std::string(path.substr(0, path.rfind('/') + 1));
  }
  // The directory of the control group around a monitoring group; that of a control group itself.
  static std::string ControlOf(std::string_view path) {
    return GroupOf(path.substr(0, path.find("mon_groups/")));
  }
  static bool IsControl(std::string_view path) { return GroupOf(path) == ControlOf(path); }
  static CpuSet CpusOf(std::string_view text) { return CpuSet::Parse(Trim(text)).value(); }
  static std::string LineOf(std::string_view task) { return fmt::format("{}\n", Trim(task)); }

  void AddInfo(const std::string& resource, const std::string& file, const std::string& text) {
    files_.tree[fmt::format("{}info/{}/{}", kRoot, resource, file)] = text;
  }
  bool HasTask(const std::string& path, std::string_view task) const {
    return files_.tree.at(path).find("\n" + LineOf(task)) != std::string::npos;
  }
  int ErrorOf(const std::string& path, std::string_view text) const {
    if (IsFile(path, "/schemata")) {
      const RdtSchemata now = ParseSchemata(files_.tree.at(path));
      for (const auto& [resource, values] : ParseSchemata(text))
        for (const auto& [id, value] : values)
          if (FindSchema(now, resource, id) == nullptr) return EINVAL;
    }
    if (IsFile(path, "/cpus_list") && !IsControl(path)) {
      const CpuSet above = CpusOf(files_.tree.at(ControlOf(path) + "cpus_list"));
      return CpusOf(text).IsSubsetOf(above) ? 0 : EINVAL;
    }
    if (IsFile(path, "/tasks") && !IsControl(path)) {
      // A task is in the root group until another control group gets it.
      std::string control(kRoot);
      for (const auto& [other, tasks] : files_.tree)
        if (IsFile(other, "/tasks") && IsControl(other) && HasTask(other, text))
          control = GroupOf(other);
      return control == ControlOf(path) ? 0 : EINVAL;
    }
    return 0;
  }
  std::string Kept(const std::string& path, std::string_view text) {
    if (IsFile(path, "/schemata")) {
      RdtSchemata now = ParseSchemata(files_.tree[path]);
      for (const auto& [resource, values] : ParseSchemata(text)) {
        for (const auto& [id, value] : values) {
          const bool percent = resource == "MB" && value <= 100;
          now[resource][id] = percent ? (value + step - 1) / step * step : value;
        }
      }
      return SchemataText(now);
    }
    if (IsFile(path, "/cpus_list") && IsControl(path)) {
      for (auto& [other, cpus] : files_.tree)
        if (IsFile(other, "/cpus_list") && other != path) LoseCpus(path, CpusOf(text), other, cpus);
    }
    if (IsFile(path, "/tasks")) {
      for (auto& [other, tasks] : files_.tree) {
        if (!IsFile(other, "/tasks")) continue;
        // A monitoring group is within its control group.
        if (!IsControl(path) && IsControl(other) && ControlOf(path) == ControlOf(other)) continue;
        if (const size_t at = tasks.find("\n" + LineOf(text)); at != std::string::npos)
          tasks.erase(at + 1, LineOf(text).size());
      }
      return files_.tree[path] + LineOf(text);
    }
    return std::string(text);
  }
  // Takes the CPUs from the file `other` that it loses when the control group's file at `path` gets
  // `taken`.
  static void LoseCpus(const std::string& path, const CpuSet& taken, const std::string& other,
                       std::string& cpus) {
    const bool below = ControlOf(other) == ControlOf(path);
    const CpuSet left = below ? CpuSet() : CpusOf(cpus) - taken;
    if (left != CpusOf(cpus)) cpus = left.ToString() + "\n";
  }

  FakeHostFiles& files_;
  std::string all_;
};

}  // namespace resmgr::test
