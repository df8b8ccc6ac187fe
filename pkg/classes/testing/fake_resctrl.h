// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/parse.h"
#include "pkg/classes/rdt_masks.h"
#include "pkg/classes/testing/fake_host_files.h"

namespace resmgr::test {

// Adds /sys/fs/resctrl of a machine to a fake host, which then behaves as the kernel's: groups get
// their files when they are made, schemata keep what a write does not name, percents are rounded
// up, a CPU or a task is in one group.
class FakeResctrl {
 public:
  explicit FakeResctrl(FakeHostFiles& files) : files_(files) {
    files_.on_make = [this](const std::string& group) { AddGroup(group); };
    files_.keeps = [this](std::string_view path, std::string_view text) {
      return Kept(std::string(path), text);
    };
    files_.tree["sys/fs/resctrl/info/last_cmd_status"] = "ok\n";
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

 private:
  void AddInfo(const std::string& resource, const std::string& file, const std::string& text) {
    files_.tree[fmt::format("sys/fs/resctrl/info/{}/{}", resource, file)] = text;
  }
  std::string Kept(const std::string& path, std::string_view text) {
    if (path.starts_with("sys/fs/resctrl/") && path.ends_with("/schemata")) {
      RdtSchemata now = ParseSchemata(files_.tree[path]);
      for (const auto& [resource, values] : ParseSchemata(text)) {
        for (const auto& [id, value] : values) {
          const bool percent = resource == "MB" && value <= 100;
          now[resource][id] = percent ? (value + step - 1) / step * step : value;
        }
      }
      return SchemataText(now);
    }
    if (path.starts_with("sys/fs/resctrl/") && path.ends_with("/tasks")) {
      const std::string line = fmt::format("{}\n", Trim(text));
      for (auto& [other, tasks] : files_.tree) {
        if (!other.starts_with("sys/fs/resctrl/") || !other.ends_with("/tasks")) continue;
        // A monitoring group is within its control group.
        if (path.starts_with(other.substr(0, other.size() - 5) + "mon_groups/")) continue;
        if (const size_t at = tasks.find("\n" + line); at != std::string::npos)
          tasks.erase(at + 1, line.size());
      }
      return files_.tree[path] + line;
    }
    return std::string(text);
  }

  FakeHostFiles& files_;
  std::string all_;
};

}  // namespace resmgr::test
