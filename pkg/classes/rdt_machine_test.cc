// SPDX-License-Identifier: Apache-2.0
// Trees of resctrl as machines with other caches and other mount options have them.
#include "pkg/classes/rdt_machine.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/classes/class_journal.h"
#include "pkg/classes/testing/fake_host_files.h"
#include "pkg/classes/testing/fake_resctrl.h"
#include "pkg/config/config.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

class RdtMachineTest : public testing::Test {
 protected:
  using Masks = std::vector<std::pair<std::string, std::string>>;  // of resources

  // "L2 ff, L3 fffff split, MB percent; 8 groups" is what is read of a machine with these.
  std::string Read(const Masks& caches, bool bandwidth, const std::string& mount = "") {
    files_.tree.clear();
    test::FakeResctrl resctrl(files_);
    for (const auto& [resource, mask] : caches)
      resctrl.AddCache(resource, mask, 16);
    if (bandwidth) resctrl.AddBandwidth(8, mount.empty() ? "100" : "4294967295");
    files_.tree["proc/mounts"] =
        fmt::format("resctrl /sys/fs/resctrl resctrl rw,relatime{} 0 0\n", mount);
    test::FakeHostFiles& files = files_;
    ClassJournal journal(directory_.path() + "/classes", "");
    HostKeeper keeper(files, journal);
    const StatusOr<RdtHost> read = ReadRdt(keeper);
    if (!read.ok()) return std::string(Message(read.status()));
    std::string text;
    const auto add = [&text](const std::string& more) {
      text.append(text.empty() ? "" : ", ").append(more);
    };
    const auto add_cache = [&add](const char* level, const std::optional<RdtCache>& cache) {
      if (!cache) return;
      EXPECT_EQ(cache->ids, (std::vector<uint32_t>{0, 1}));
      add(fmt::format("{} {:x}{}", level, cache->mask, cache->split ? " split" : ""));
    };
    add_cache("L2", read->machine.l2);
    add_cache("L3", read->machine.l3);
    if (read->machine.mb) {
      const bool percent = read->machine.mb->unit == RdtBandwidth::Unit::kPercent;
      add(percent ? "MB percent" : "MB MBps");
    }
    return fmt::format("{}; {} groups", text, read->most_groups);
  }

  TempDir directory_;
  test::FakeHostFiles files_;
};

TEST_F(RdtMachineTest, AllKindsOfMachinesAreRead) {
  EXPECT_EQ(Read({{"L3", "fffff"}}, true), "L3 fffff, MB percent; 8 groups");
  EXPECT_EQ(Read({{"L3", "fffff"}}, false), "L3 fffff; 16 groups");
  EXPECT_EQ(Read({{"L3CODE", "fffff"}, {"L3DATA", "fffff"}}, true),
            "L3 fffff split, MB percent; 8 groups");
  EXPECT_EQ(Read({}, true), "MB percent; 8 groups");
  EXPECT_EQ(Read({{"L3", "fffff"}}, true, ",mba_MBps"), "L3 fffff, MB MBps; 8 groups");
  EXPECT_EQ(Read({{"L2", "ff"}}, false), "L2 ff; 16 groups");
  EXPECT_EQ(Read({{"L2CODE", "ff"}, {"L2DATA", "ff"}}, false), "L2 ff split; 16 groups");
  EXPECT_EQ(Read({{"L2", "ff"}, {"L3", "7ff"}}, true), "L2 ff, L3 7ff, MB percent; 8 groups");
}

TEST_F(RdtMachineTest, AMaskThatIsNoneIsNamed) {
  EXPECT_EQ(Read({{"L3", "ff0"}}, false),
            "sys/fs/resctrl/info/L3/cbm_mask is 0xff0, which is no mask from bit 0");
  EXPECT_EQ(Read({{"L3", "x"}}, false), "; 4294967295 groups") << "the schemata has no such value";
}

}  // namespace
}  // namespace resmgr
