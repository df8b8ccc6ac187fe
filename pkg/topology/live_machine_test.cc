// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/topology/hwloc_loader.h"
#include "pkg/topology/machine.h"

namespace resmgr {
namespace {

using testing::ElementsAre;

// A machine as its kernel describes it in sysfs, made of files.
class LiveMachineTest : public testing::Test {
 protected:
  LiveMachineTest() { setenv("HWLOC_FSROOT", directory_.path().c_str(), 1); }
  ~LiveMachineTest() override { unsetenv("HWLOC_FSROOT"); }

  void Put(const std::string& file, const std::string& text) const {
    const std::filesystem::path path(directory_.File("sys/devices/" + file));
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  // CPUs of one thread each, four to a package; of these the ones in `online` are online.
  void PutCpus(int count, const CpuSet& online) const {
    const CpuSet all = CpuSet::Range(0, count - 1);
    Put("system/cpu/online", online.ToString());
    Put("system/cpu/possible", all.ToString());
    Put("system/cpu/present", all.ToString());
    for (const int id : all) {
      const std::string cpu = fmt::format("system/cpu/cpu{}/", id);
      Put(cpu + "online", online.Contains(id) ? "1" : "0");
      if (!online.Contains(id)) continue;
      Put(cpu + "topology/core_cpus", Mask(CpuSet{id}));
      Put(cpu + "topology/package_cpus", Mask(CpuSet::Range(id / 4 * 4, id / 4 * 4 + 3) & online));
      Put(cpu + "topology/physical_package_id", std::to_string(id / 4));
      Put(cpu + "topology/core_id", std::to_string(id));
    }
  }
  void PutNode(int id, const CpuSet& cpus, const std::string& distances) const {
    const std::string node = fmt::format("system/node/node{}/", id);
    Put(node + "cpumap", Mask(cpus));
    Put(node + "cpulist", cpus.ToString());
    Put(node + "meminfo", fmt::format("Node {} MemTotal: 1000000 kB", id));
    Put(node + "distance", distances);
    nodes_.Add(id);
    Put("system/node/online", nodes_.ToString());
    Put("system/node/possible", nodes_.ToString());
  }
  Machine Read() const {
    StatusOr<LiveMachine> live = ReadLiveMachine({.pods = "", .root = directory_.path()});
    EXPECT_TRUE(live.ok()) << Describe(live.status());
    StatusOr<Machine> machine = Machine::Create(std::move(live->parts));
    EXPECT_TRUE(machine.ok()) << Describe(machine.status());
    return *std::move(machine);
  }

  const TempDir directory_;

 private:
  static std::string Mask(const CpuSet& cpus) {
    unsigned mask = 0;
    for (const int id : cpus)
      mask |= 1U << id;
    return fmt::format("{:08x}", mask);
  }

  mutable NodeSet nodes_;
};

// hwloc gives a node without CPUs those of its nearest node.
TEST_F(LiveMachineTest, ANodeWhoseCpusAreOfflineTakesNoOthers) {
  PutCpus(12, CpuSet::Range(0, 3) | CpuSet::Range(8, 11));
  PutNode(0, CpuSet::Range(0, 3), "10 21 32");
  PutNode(1, CpuSet(), "21 10 11");
  PutNode(2, CpuSet::Range(8, 11), "32 11 10");
  const Machine machine = Read();
  EXPECT_EQ(machine.nodes()[0].cpus, CpuSet::Range(0, 3));
  EXPECT_TRUE(machine.nodes()[1].cpus.empty());
  EXPECT_EQ(machine.nodes()[2].cpus, CpuSet::Range(8, 11));
  EXPECT_EQ(machine.FindCpu(8)->numa, 2);
}

TEST_F(LiveMachineTest, NodesWithAllCpusOnlineAreAsTheKernelSays) {
  PutCpus(8, CpuSet::Range(0, 7));
  PutNode(0, CpuSet::Range(0, 3), "10 20");
  PutNode(1, CpuSet::Range(4, 7), "20 10");
  const Machine machine = Read();
  EXPECT_EQ(machine.nodes()[0].cpus, CpuSet::Range(0, 3));
  EXPECT_EQ(machine.nodes()[1].cpus, CpuSet::Range(4, 7));
  EXPECT_THAT(machine.nodes()[1].distances, ElementsAre(20, 10));
}

// Memory of a DAX device that the driver kmem has made a node without CPUs.
class MemoryTypeTest : public LiveMachineTest {
 protected:
  MemoryTypeTest() {
    PutCpus(4, CpuSet::Range(0, 3));
    PutNode(0, CpuSet::Range(0, 3), "10 13");
  }
  void PutDaxNode(int megabytes, const std::string& parent) const {
    PutNode(1, CpuSet(), "13 10");
    Put("system/node/node1/meminfo", fmt::format("Node 1 MemTotal: {} kB", megabytes * 1000));
    Put(parent + "/dax0.0/target_node", "1");
    const std::filesystem::path devices(directory_.File("sys/bus/dax/devices"));
    const std::filesystem::path driver(directory_.File("sys/bus/dax/drivers/kmem"));
    std::filesystem::create_directories(devices);
    std::filesystem::create_directories(driver);
    std::filesystem::create_symlink("../../../devices/" + parent + "/dax0.0", devices / "dax0.0");
    std::filesystem::create_symlink("../../../../devices/" + parent + "/dax0.0", driver / "dax0.0");
  }
  // As the kernel tells it from the firmware's HMAT.
  void PutBandwidth(int node, int rate) const {
    const std::string from = fmt::format("system/node/node{}/access0/initiators/", node);
    Put(from + "read_bandwidth", std::to_string(rate));
    Put(from + "write_bandwidth", std::to_string(rate));
    Put(from + "node0/uevent", "");
  }
  MemoryType TypeOfDaxNode() const { return Read().FindNode(1)->type; }

  static constexpr const char* kSpecialPurpose = "platform/hmem.0";
  static constexpr const char* kNonVolatile = "LNXSYSTM:00/ACPI0012:00/ndbus0/region0";
};

TEST_F(MemoryTypeTest, SpecialPurposeMemoryThatIsFasterIsHbm) {
  PutDaxNode(2000, kSpecialPurpose);
  PutBandwidth(0, 100'000);
  PutBandwidth(1, 400'000);
  EXPECT_EQ(TypeOfDaxNode(), MemoryType::kHbm);
}

TEST_F(MemoryTypeTest, SpecialPurposeMemoryThatIsSlowerIsNoHbm) {
  PutDaxNode(500, kSpecialPurpose);
  PutBandwidth(0, 100'000);
  PutBandwidth(1, 30'000);
  EXPECT_EQ(TypeOfDaxNode(), MemoryType::kPmem) << "CXL";
}

TEST_F(MemoryTypeTest, WithoutBandwidthsTheSmallerSpecialPurposeMemoryIsHbm) {
  PutDaxNode(500, kSpecialPurpose);
  EXPECT_EQ(TypeOfDaxNode(), MemoryType::kHbm);
}

TEST_F(MemoryTypeTest, WithoutBandwidthsTheLargerSpecialPurposeMemoryIsNoHbm) {
  PutDaxNode(2000, kSpecialPurpose);
  EXPECT_EQ(TypeOfDaxNode(), MemoryType::kPmem);
}

TEST_F(MemoryTypeTest, NonVolatileMemoryIsPmemWhateverItsSize) {
  PutDaxNode(500, kNonVolatile);
  PutBandwidth(0, 100'000);
  PutBandwidth(1, 400'000);
  EXPECT_EQ(TypeOfDaxNode(), MemoryType::kPmem);
}

// Efficient cores of newer processors reach 85 % of the clock rate of performance cores.
TEST_F(LiveMachineTest, TheKernelTellsTheTypesOfHybridCores) {
  PutCpus(8, CpuSet::Range(0, 7));
  PutNode(0, CpuSet::Range(0, 7), "10");
  for (int id = 0; id < 8; ++id) {
    Put(fmt::format("system/cpu/cpu{}/cpufreq/cpuinfo_max_freq", id),
        id < 4 ? "5400000" : "4600000");
  }
  Put("cpu_core/cpus", "0-3");
  Put("cpu_atom/cpus", "4-6");
  Put("cpu_lowpower/cpus", "7");
  const Machine machine = Read();
  for (const Cpu& cpu : machine.cpus()) {
    EXPECT_EQ(ToString(cpu.kind), cpu.id < 4 ? "performance" : "efficient") << cpu.id;
  }
}

// A guest may see one type alone.
TEST_F(LiveMachineTest, CoresOfOneTypeAreNotHybrid) {
  PutCpus(4, CpuSet::Range(0, 3));
  PutNode(0, CpuSet::Range(0, 3), "10");
  for (const char* const type : {"cpu_core/cpus", "cpu_atom/cpus"}) {
    Put("cpu_core/cpus", "");
    Put(type, "0-3");
    const Machine machine = Read();
    for (const Cpu& cpu : machine.cpus())
      EXPECT_EQ(ToString(cpu.kind), "normal") << type;
  }
}

}  // namespace
}  // namespace resmgr
