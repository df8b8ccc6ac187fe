// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/machine_source.h"

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/topology/hwloc_loader.h"
#include "test/support/seed.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string DataFile(std::string_view name) {
  return std::string(RESMGR_SOURCE_DIR "/test/data/topology/").append(name);
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Machine LoadSpec(std::string_view spec) {
  StatusOr<Machine> machine = LoadMachine(spec);
  EXPECT_TRUE(machine.ok()) << Describe(machine.status());
  return *std::move(machine);
}

Machine LoadFile(std::string_view name) {
  return LoadSpec(DataFile(name));
}

std::string LoadError(std::string_view spec, StatusCode code) {
  const StatusOr<Machine> machine = LoadMachine(spec);
  if (machine.ok()) return "no error";
  EXPECT_EQ(machine.status().code(), code) << Describe(machine.status());
  return std::string(Message(machine.status()));
}

CpuSet CpusOfKind(const Machine& machine, CoreKind kind) {
  CpuSet cpus;
  for (const Cpu& cpu : machine.cpus()) {
    if (cpu.kind == kind) cpus.Add(cpu.id);
  }
  return cpus;
}

// Sets one of hwloc's environment variables for a scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

TEST(MachineSourceTest, ReadsTheMachineItRunsOn) {
  const Machine machine = LoadSpec("live");
  EXPECT_FALSE(machine.allowed().empty());
  EXPECT_TRUE(machine.allowed().IsSubsetOf(machine.online()));
  EXPECT_FALSE(machine.nodes().empty());
  EXPECT_EQ(machine.Fingerprint(), LoadSpec("live").Fingerprint());
}

TEST(MachineSourceTest, WhatPodsMayUseIsAllowedOnALiveMachine) {
  const TempDir directory;
  const auto allow = [&](const std::string& cgroup, const std::string& cpus) {
    const std::filesystem::path path(directory.File("root") + "/sys/fs/cgroup" + cgroup);
    std::filesystem::create_directories(path);
    std::ofstream(path / "cpuset.cpus.effective") << cpus << '\n';
    std::ofstream(directory.File("root") + "/sys/fs/cgroup/cgroup.controllers") << "cpuset\n";
  };
  const CgroupPlaces places{.pods = "", .root = directory.File("root")};
  StatusOr<FoundMachine> found = FindMachine("live", places);
  ASSERT_TRUE(found.ok()) << Describe(found.status());
  const CpuSet online = found->machine.online();
  EXPECT_EQ(found->machine.allowed(), online) << "no cgroup says anything";
  EXPECT_EQ(found->machine.allowed_nodes(), found->machine.node_ids());
  const CpuSet first{online.First()};
  allow("", online.ToString());
  allow("/kubepods.slice", first.ToString());
  found = FindMachine("live", places);
  ASSERT_TRUE(found.ok()) << Describe(found.status());
  EXPECT_EQ(found->machine.allowed(), first);
  EXPECT_EQ(found->pods->name, "/kubepods.slice");
  EXPECT_FALSE(FindMachine("synthetic:pu:4", places)->pods.has_value());
}

TEST(MachineSourceTest, SyntheticDescriptionGivesEveryLevel) {
  const Machine machine = LoadSpec("synthetic:package:2 numa:2 l3:2 core:4 pu:2");
  EXPECT_EQ(machine.online(), CpuSet::Range(0, 63));
  EXPECT_EQ(machine.packages().size(), 2U);
  EXPECT_EQ(machine.nodes().size(), 4U);
  EXPECT_EQ(machine.l3_groups().size(), 8U);
  EXPECT_EQ(machine.cores().size(), 32U);
  EXPECT_EQ(machine.FindNode(1)->cpus, CpuSet::Range(16, 31));
  EXPECT_EQ(machine.cores()[1], (CpuSet{2, 3}));
  EXPECT_EQ(machine.FindCpu(33)->package, 1);
  EXPECT_EQ(machine.allowed(), machine.online());
}

TEST(MachineSourceTest, CoresMayShareAnL2Cache) {
  const Machine machine = LoadSpec("synthetic:package:1 l3:1 l2:2 core:4 pu:1");
  EXPECT_THAT(machine.l2_groups(), ElementsAre(CpuSet::Range(0, 3), CpuSet::Range(4, 7)));
  EXPECT_EQ(machine.cores().size(), 8U);
  EXPECT_EQ(machine.l3_groups().size(), 1U);
  EXPECT_EQ(machine.nodes().size(), 1U);
  EXPECT_EQ(LoadSpec("synthetic:package:1 l3:1 core:4 pu:2").l2_groups().size(), 4U);
}

TEST(MachineSourceTest, SyntheticMachineMayLackMostLevels) {
  const Machine machine = LoadSpec("synthetic:pu:4");
  EXPECT_EQ(machine.cores().size(), 4U);
  EXPECT_EQ(machine.packages().size(), 1U);
  EXPECT_THAT(machine.l3_groups(), IsEmpty());
  EXPECT_EQ(machine.FindCpu(3)->numa, 0);
}

TEST(MachineSourceTest, SyntheticIndexesMayBeAnyNumbers) {
  const Machine machine = LoadSpec("synthetic:package:2 core:2 pu:1(indexes=0,10,5,20)");
  EXPECT_EQ(machine.online(), (CpuSet{0, 5, 10, 20}));
  EXPECT_THAT(machine.packages(), ElementsAre(CpuSet{0, 10}, CpuSet{5, 20}));
}

TEST(MachineSourceTest, SubNumaClustersShareOneL3) {
  const Machine machine = LoadFile("xeon-2s-snc2.xml");
  EXPECT_EQ(machine.l3_groups().size(), 2U);
  EXPECT_EQ(machine.nodes().size(), 4U);
  EXPECT_EQ(machine.cores()[0], (CpuSet{0, 16}));
  EXPECT_EQ(machine.FindNode(2)->cpus, *CpuSet::Parse("8-11,24-27"));
  EXPECT_THAT(machine.FindNode(2)->distances, ElementsAre(21, 21, 10, 11));
}

TEST(MachineSourceTest, OneNodeMayHoldManyL3Groups) {
  const Machine machine = LoadFile("epyc-2s-ccx.xml");
  EXPECT_EQ(machine.l3_groups().size(), 8U);
  EXPECT_EQ(machine.l3_groups()[5], *CpuSet::Parse("20-23,52-55"));
  EXPECT_EQ(machine.nodes().size(), 2U);
}

TEST(MachineSourceTest, DiesArePartsOfPackages) {
  const Machine machine = LoadFile("cascadelake-2s-dies.xml");
  EXPECT_THAT(machine.dies(), ElementsAre(CpuSet::Range(0, 3), CpuSet::Range(4, 7),
                                          CpuSet::Range(8, 11), CpuSet::Range(12, 15)));
  EXPECT_EQ(machine.packages().size(), 2U);
}

TEST(MachineSourceTest, PersistentMemoryIsNoLocalNodeOfAnyCpu) {
  const Machine machine = LoadFile("xeon-2s-pmem.xml");
  for (const int id : {2, 3}) {
    EXPECT_EQ(machine.FindNode(id)->type, MemoryType::kPmem);
    EXPECT_TRUE(machine.FindNode(id)->cpus.empty());
    EXPECT_EQ(machine.FindNode(id)->memory, Bytes{int64_t{512} << 30});
  }
  EXPECT_EQ(machine.FindNode(1)->cpus, CpuSet::Range(8, 15));
  EXPECT_THAT(machine.FindNode(2)->distances, ElementsAre(17, 28, 10, 28));
}

TEST(MachineSourceTest, HighBandwidthMemoryIsNoLocalNodeOfAnyCpu) {
  const Machine machine = LoadFile("xeon-2s-hbm-flat.xml");
  EXPECT_EQ(machine.FindNode(2)->type, MemoryType::kHbm);
  EXPECT_EQ(machine.FindNode(3)->type, MemoryType::kHbm);
  EXPECT_EQ(machine.FindCpu(7)->numa, 1);
}

TEST(MachineSourceTest, NodesWithoutMemoryOrCpusAndAsymmetricDistances) {
  const Machine machine = LoadFile("odd-memory.xml");
  EXPECT_EQ(machine.FindNode(1)->memory, Bytes{0});
  EXPECT_EQ(machine.FindNode(1)->cpus, (CpuSet{2, 3}));
  EXPECT_EQ(machine.FindNode(3)->type, MemoryType::kDram);
  EXPECT_TRUE(machine.FindNode(3)->cpus.empty());
  EXPECT_THAT(machine.FindNode(0)->distances, ElementsAre(10, 12, 20, 30));
  EXPECT_THAT(machine.FindNode(3)->distances, ElementsAre(31, 32, 41, 10));
}

// A file with another text in it, as hwloc writes it elsewhere.
std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

Machine FromXml(const std::string& xml) {
  StatusOr<Machine::Parts> parts = ReadXmlMachine(xml);
  EXPECT_TRUE(parts.ok()) << Describe(parts.status());
  StatusOr<Machine> machine = Machine::Create(*std::move(parts));
  EXPECT_TRUE(machine.ok()) << Describe(machine.status());
  return *std::move(machine);
}

TEST(MachineSourceTest, KeepsMemoryThatIsNotAllowedApart) {
  const std::string file = Contents(DataFile("xeon-2s-pmem.xml"));
  const std::string all = "allowed_nodeset=\"0x0000000f\"";
  const Machine machine = FromXml(Replaced(file, all, "allowed_nodeset=\"0x00000005\""));
  EXPECT_EQ(machine.node_ids(), NodeSet::Range(0, 3));
  EXPECT_EQ(machine.allowed_nodes(), (NodeSet{0, 2}));
  EXPECT_FALSE(machine.FindNode(1)->allowed);
  EXPECT_EQ(machine.FindNode(1)->memory, FromXml(file).FindNode(1)->memory);
  EXPECT_EQ(FromXml(file).allowed_nodes(), NodeSet::Range(0, 3));
  // No machine is without memory.
  const Machine none = FromXml(Replaced(file, all, "allowed_nodeset=\"0x0\""));
  EXPECT_EQ(none.allowed_nodes(), NodeSet::Range(0, 3));
}

TEST(MachineSourceTest, HugePagesAreNoOrdinaryMemory) {
  const Machine machine = LoadFile("hugepages-2s.xml");
  const NumaNode& node = *machine.FindNode(0);
  ASSERT_EQ(node.huge_pages.size(), 1U);
  EXPECT_EQ(node.huge_pages[0].size, Bytes{int64_t{1} << 30});
  EXPECT_EQ(node.huge_pages[0].count, 13);
  EXPECT_EQ(node.memory, Bytes{16'000'000'000});
  EXPECT_EQ(node.OrdinaryMemory(), Bytes{16'000'000'000 - (int64_t{13} << 30)});
  EXPECT_THAT(machine.FindNode(1)->huge_pages, IsEmpty());
  EXPECT_EQ(machine.FindNode(1)->OrdinaryMemory(), Bytes{16'000'000'000});
}

TEST(MachineSourceTest, ADamagedFileHasNoMoreHugePagesThanMemory) {
  const std::string file = Contents(DataFile("hugepages-2s.xml"));
  for (const char* const count : {"15", "18446744073709551615"}) {
    const std::string told = fmt::format("count=\"{}\"", count);
    const Machine machine = FromXml(Replaced(file, "count=\"13\"", told));
    EXPECT_EQ(machine.FindNode(0)->huge_pages[0].count, 14);
  }
}

TEST(MachineSourceTest, AMemoryOnlyNodeLiesBesideCpus) {
  const Machine machine = LoadFile("xeon-2s-hbm-flat.xml");
  EXPECT_TRUE(machine.FindNode(2)->cpus.empty());
  EXPECT_EQ(machine.FindNode(2)->near, CpuSet::Range(0, 3));
  EXPECT_EQ(machine.FindNode(3)->near, CpuSet::Range(4, 7));
}

TEST(MachineSourceTest, SeveralLocalNodesResolveToTheSmallest) {
  const Machine machine = LoadSpec(
      "synthetic:package:2 [numa(memory=8GiB)] die:2 [numa(memory=2GiB)] [numa(memory=4GiB)] "
      "core:2 pu:1");
  // The nodes of the first die are 0 and 1, those of the second 2 and 3, the package's is 4.
  EXPECT_EQ(machine.FindCpu(0)->numa, 0);
  EXPECT_EQ(machine.FindCpu(2)->numa, 2);
  EXPECT_TRUE(machine.FindNode(4)->cpus.empty());
}

TEST(MachineSourceTest, CoreTypesTellHybridCoresApart) {
  const Machine machine = LoadFile("alderlake-2p4e.xml");
  EXPECT_EQ(CpusOfKind(machine, CoreKind::kPerformance), CpuSet::Range(0, 3));
  EXPECT_EQ(CpusOfKind(machine, CoreKind::kEfficient), CpuSet::Range(4, 7));
  EXPECT_EQ(machine.cores()[0].size(), 2);
  EXPECT_EQ(machine.cores()[5].size(), 1);
}

TEST(MachineSourceTest, EfficiencyTellsHybridCoresApart) {
  const Machine machine = LoadFile("arm-dynamiq-4-3-1.xml");
  EXPECT_EQ(CpusOfKind(machine, CoreKind::kEfficient), CpuSet::Range(0, 3));
  EXPECT_EQ(CpusOfKind(machine, CoreKind::kPerformance), CpuSet::Range(4, 7));
  EXPECT_EQ(machine.packages().size(), 1U);
}

std::vector<int> Speeds(const Machine& machine) {
  std::vector<int> speeds;
  for (const Cpu& cpu : machine.cpus())
    speeds.push_back(cpu.speed);
  return speeds;
}

TEST(MachineSourceTest, FasterCoresOfOneDesignAreNotHybrid) {
  const Machine machine = LoadFile("xeon-favoured-cores.xml");
  EXPECT_EQ(CpusOfKind(machine, CoreKind::kNormal), machine.online());
  EXPECT_THAT(Speeds(machine), ElementsAre(0, 0, 1, 1));
}

TEST(MachineSourceTest, DesignsAndClockRatesRankCpus) {
  EXPECT_THAT(Speeds(LoadFile("alderlake-2p4e.xml")), ElementsAre(1, 1, 1, 1, 0, 0, 0, 0));
  EXPECT_THAT(Speeds(LoadFile("arm-dynamiq-4-3-1.xml")), ElementsAre(0, 0, 0, 0, 1, 1, 1, 2));
  EXPECT_THAT(Speeds(LoadFile("laptop-4c8t.xml")), Each(0));
}

// Four CPUs of which 0 and 2, 1 and 3 are of one kind each, with so much of this.
Machine TwoKinds(std::string_view what, int64_t even, int64_t odd, bool ranked) {
  std::string xml = Contents(DataFile("xeon-favoured-cores.xml"));
  const size_t first = xml.find("  <cpukind");
  EXPECT_NE(first, std::string::npos);
  xml.resize(first);
  for (const int64_t value : {even, odd}) {
    xml += fmt::format(
        "<cpukind cpuset=\"{}\"{}><info name=\"{}\" value=\"{}\"/></cpukind>\n",
        value == even ? "0x00000005" : "0x0000000a",
        ranked ? fmt::format(" forced_efficiency=\"{}\"", value > std::min(even, odd) ? 1 : 0) : "",
        what, value);
  }
  StatusOr<Machine::Parts> parts = ReadXmlMachine(xml + "</topology>\n");
  EXPECT_TRUE(parts.ok()) << parts.status();
  return *Machine::Create(*std::move(parts));
}

TEST(MachineSourceTest, KindsWithoutNamesAreOfOneDesignWhenTheirCapacitiesAreNearlyEqual) {
  for (const auto& [what, ranked] :
       {std::pair("FrequencyMaxMHz", true), std::pair("FrequencyMaxMHz", false),
        std::pair("LinuxCapacity", true)}) {
    const Machine favoured = TwoKinds(what, 1024, 980, ranked);
    EXPECT_EQ(CpusOfKind(favoured, CoreKind::kNormal), favoured.online()) << what;
    const Machine hybrid = TwoKinds(what, 1024, 700, ranked);
    EXPECT_EQ(CpusOfKind(hybrid, CoreKind::kEfficient), (CpuSet{1, 3})) << what;
    EXPECT_EQ(CpusOfKind(hybrid, CoreKind::kPerformance), (CpuSet{0, 2})) << what;
  }
  // The loader finds the faster CPUs nevertheless.
  EXPECT_THAT(Speeds(TwoKinds("FrequencyMaxMHz", 4900, 5100, true)), ElementsAre(0, 1, 0, 1));
}

TEST(MachineSourceTest, RatesOfADamagedFileAreLimited) {
  for (const char* const what : {"FrequencyMaxMHz", "FrequencyBaseMHz", "LinuxCapacity"}) {
    const Machine machine =
        TwoKinds(what, 9'000'000'000'000'000'000, 8'999'999'999'999'999'999, true);
    EXPECT_EQ(CpusOfKind(machine, CoreKind::kNormal), machine.online()) << what;
    const Machine hybrid = TwoKinds(what, 9'000'000'000'000'000'000, 7, true);
    EXPECT_EQ(CpusOfKind(hybrid, CoreKind::kEfficient), (CpuSet{1, 3})) << what;
  }
}

TEST(MachineSourceTest, ADamagedFileHasNoMoreMemoryThanANumberHolds) {
  const std::string file = Contents(DataFile("hugepages-2s.xml"));
  const std::string one = Replaced(file, "local_memory=\"16000000000\"", "local_memory=\"-1\"");
  EXPECT_THAT(std::string(Message(Machine::Create(*ReadXmlMachine(one)).status())),
              HasSubstr("the NUMA nodes have more memory than"));
}

// Intel SST-BF: higher base rates, and the same turbo for all.
TEST(MachineSourceTest, BaseClockRatesRankCpusThatAreEqualOtherwise) {
  std::string xml = Contents(DataFile("xeon-favoured-cores.xml"));
  const size_t first = xml.find("  <cpukind");
  ASSERT_NE(first, std::string::npos);
  xml.resize(first);
  for (const auto& [cpus, base] :
       {std::pair("0x00000005", "2100"), std::pair("0x0000000a", "2700")}) {
    xml += fmt::format(
        "<cpukind cpuset=\"{}\"><info name=\"FrequencyBaseMHz\" value=\"{}\"/>"
        "<info name=\"FrequencyMaxMHz\" value=\"3900\"/></cpukind>\n",
        cpus, base);
  }
  Machine::Parts parts = Must(ReadXmlMachine(xml + "</topology>\n"));
  std::vector<int> speeds;
  for (const Cpu& cpu : parts.cpus)
    speeds.push_back(cpu.speed);
  EXPECT_THAT(speeds, ElementsAre(0, 1, 0, 1));
}

TEST(MachineSourceTest, CoresMayHaveAnyNumberOfOnlineThreads) {
  const Machine machine = LoadFile("power-smt4-uneven.xml");
  std::vector<int> sizes;
  for (const CpuSet& core : machine.cores())
    sizes.push_back(core.size());
  EXPECT_THAT(sizes, ElementsAre(1, 2, 3, 4, 4, 3));
  EXPECT_EQ(machine.cpus().size(), 24U);
  EXPECT_FALSE(machine.FindCpu(1)->online);
  EXPECT_EQ(machine.FindCpu(12)->numa, 8);
  EXPECT_THAT(machine.FindNode(8)->distances, ElementsAre(40, 10));
}

TEST(MachineSourceTest, KeepsOfflineIsolatedAndDisallowedCpusApart) {
  const Machine machine = LoadFile("restricted-2s.xml");
  EXPECT_EQ(machine.online(), CpuSet::Range(0, 14));
  EXPECT_EQ(machine.isolated(), (CpuSet{6, 7, 14}));
  EXPECT_EQ(machine.allowed(), CpuSet::Range(0, 11));
}

TEST(MachineSourceTest, LoadsCpuNumbersUpToTheHighestOfLinux) {
  EXPECT_EQ(LoadFile("cpu-1024.xml").online(), (CpuSet{0, 1024}));
  const Machine most = Must(LoadMachine("synthetic:package:8 core:512 pu:2"));
  EXPECT_EQ(most.online(), CpuSet::Range(0, 8191));
  EXPECT_EQ(most.cores().size(), 4096u);
}

TEST(MachineSourceTest, RefusesCpuNumbersThatASetCannotHold) {
  EXPECT_THAT(LoadError("synthetic:pu:9000", StatusCode::kInvalidArgument),
              HasSubstr("more than 8192 CPUs"));
  EXPECT_THAT(LoadError("synthetic:package:2 core:2 pu:1(indexes=0,1,2,9000)",
                        StatusCode::kInvalidArgument),
              HasSubstr("CPU ids from 0 to 8191 are supported, this machine has 9000"));
}

TEST(MachineSourceTest, RefusesAGalaxyWithoutBuildingIt) {
  for (const char* spec :
       {"synthetic:package:1000000 core:1000000 pu:1000000", "synthetic:pu:99999999999999999999",
        "synthetic:64 64 64 64 64", "synthetic:package:1024(memory=1) core:1024 pu:2"}) {
    // Processor time: the machine may be busy.
    const std::clock_t start = std::clock();
    LoadError(spec, StatusCode::kInvalidArgument);
    EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC) << spec;
  }
}

// hwloc reads numbers as strtoul does, and needs no space between the levels.
TEST(MachineSourceTest, RefusesNumbersThatAreNotPlain) {
  for (const char* const spec :
       {"pu:0x3000", "pu:+9000", "pu: 9000", "package:10core:100pu:10", "package:0x2000numa:2 pu:1",
        "package:2(a[b) core:100 pu:100", "[numa(memory=[)] core:100 pu:100", "pu:2\tpu:9000",
        "pu:-1", "pu:9000x", "pu", "package:2:9000", "pu:2]", "[numa pu:2",
        "[numa(memory=1GiB]) pu:2"}) {
    EXPECT_THAT(LoadError(std::string("synthetic:") + spec, StatusCode::kInvalidArgument),
                HasSubstr("as in 'package:2 core:4 pu:2'"))
        << spec;
  }
  EXPECT_THAT(LoadError("synthetic:package:10\ncore:100\npu:10", StatusCode::kInvalidArgument),
              HasSubstr("more than 8192 CPUs"));
}

TEST(MachineSourceTest, LevelsOfSyntheticMachinesHaveManyForms) {
  for (const char* const spec :
       {"2 2 2", "package:2\nNUMANode:1(memory=1GiB)  core:4 pu:1", "group0:2 L2Cache:1 pu:4",
        "(memory=1GiB) core:8 pu:1", "package:2 [NUMANode(memory=1GiB)] core:4 pu:1",
        "numa:2(memory=1GiB)core:4 pu:1", "package:2[numa]core:4 pu:1"}) {
    EXPECT_EQ(LoadSpec(std::string("synthetic:") + spec).online().size(), 8) << spec;
  }
}

TEST(MachineSourceTest, RefusesBadDescriptionsWithTheirText) {
  for (const char* description :
       {"", "foo:2", "package:0 pu:1", "package:2 pu", "pu:2 core:2", "package:-1 pu:1", "[numa",
        "package:2(memory= pu:1", "package:2 pu:2)", "core:2 numa:2 pu:2"}) {
    LoadError(std::string("synthetic:") + description, StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(LoadError("synthetic:foo:2", StatusCode::kInvalidArgument), HasSubstr("'foo:2'"));
}

TEST(MachineSourceTest, FilesMayBeNamedWithAndWithoutPrefix) {
  EXPECT_EQ(LoadSpec("xml:" + DataFile("laptop-4c8t.xml")).Fingerprint(),
            LoadFile("laptop-4c8t.xml").Fingerprint());
}

TEST(MachineSourceTest, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(LoadError("/no/such/file.xml", StatusCode::kNotFound),
              HasSubstr("no file '/no/such/file.xml'"));
  EXPECT_THAT(LoadError("sinthetic:pu:4", StatusCode::kNotFound),
              HasSubstr("known forms: live, synthetic:DESCRIPTION"));
  EXPECT_THAT(LoadError("epyc-2s", StatusCode::kNotFound),
              HasSubstr("`cri-resmgr-ctl topology -types` lists them"));
  for (const char* const path : {RESMGR_SOURCE_DIR, "/dev/null", "/dev/zero"}) {
    EXPECT_THAT(LoadError(path, StatusCode::kInvalidArgument), HasSubstr("is not a regular file"));
  }
  EXPECT_THAT(LoadError(DataFile("../topology/README.md"), StatusCode::kInvalidArgument),
              HasSubstr("not a topology"));
  const TempDir directory;
  const std::string large = directory.File("large.xml");
  std::ofstream(large).close();
  EXPECT_THAT(LoadError(large, StatusCode::kInvalidArgument), HasSubstr("not a topology"));
  std::filesystem::resize_file(large, size_t{65} << 20);
  EXPECT_THAT(LoadError(large, StatusCode::kInvalidArgument), HasSubstr("more than"));
  EXPECT_THAT(LoadError("", StatusCode::kInvalidArgument), HasSubstr("known forms"));
}

TEST(MachineSourceTest, NamesTheVersionOfAFileThatANewerHwlocWrote) {
  const auto error = [](const std::string& xml) {
    return std::string(Message(ReadXmlMachine(xml).status()));
  };
  const std::string file = Contents(DataFile("laptop-4c8t.xml"));
  const std::string newer =
      Replaced(Replaced(file, "<topology version=\"2.0\"", "<topology version=\"3.0\""),
               "value=\"2.9.0\"", "value=\"3.1.2\"");
  EXPECT_EQ(error(newer),
            "a topology in version 3.0 of hwloc's format, written by hwloc 3.1.2; this build reads "
            "versions up to 2 (write one by lstopo --of xml --export-xml-flags v2)");
  EXPECT_THAT(error(Replaced(newer, "hwlocVersion", "Other")), HasSubstr("written by hwloc 3.0;"));
  // A version that is not a number is refused.
  EXPECT_THAT(error(Replaced(newer, "version=\"3.0\"", "version=\"x\"")),
              HasSubstr("not a topology that hwloc understands"));
  EXPECT_THAT(error("<topology version"), HasSubstr("not a topology that hwloc understands"));
}

TEST(MachineSourceTest, AnExplicitMachineBeatsTheEnvironment) {
  const ScopedVariable xml("HWLOC_XMLFILE", DataFile("epyc-2s-ccx.xml"));
  const ScopedVariable synthetic("HWLOC_SYNTHETIC", "pu:3");
  const ScopedVariable components("HWLOC_COMPONENTS", "linux,stop");
  EXPECT_EQ(LoadSpec("synthetic:pu:5").online().size(), 5);
  EXPECT_EQ(LoadFile("laptop-4c8t.xml").online().size(), 8);
}

TEST(MachineSourceTest, TheEnvironmentMayStandInForTheLiveMachine) {
  const ScopedVariable xml("HWLOC_XMLFILE", DataFile("restricted-2s.xml"));
  const Machine machine = LoadSpec("live");
  EXPECT_EQ(machine.Fingerprint(), LoadFile("restricted-2s.xml").Fingerprint());
}

// No damaged file may do worse than be refused.
TEST(MachineSourceTest, SurvivesDamagedFiles) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937 random(seed);
  const std::string whole = Contents(DataFile("xeon-2s-pmem.xml"));
  ASSERT_TRUE(ReadXmlMachine(whole).ok());
  int refused = 0;
  for (int round = 0; round < 100; ++round) {
    std::string damaged = whole;
    for (unsigned i = 0; i <= random() % 4; ++i) {
      const size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged.resize(at + 1);
          break;
        case 1:
          damaged[at] = static_cast<char>('0' + random() % 10);
          break;
        default:
          damaged.erase(at, random() % 200);
      }
      if (damaged.empty()) break;
    }
    StatusOr<Machine::Parts> parts = ReadXmlMachine(damaged);
    if (!parts.ok() || !Machine::Create(*std::move(parts)).ok()) ++refused;
  }
  EXPECT_GT(refused, 0);
}

TEST(ServerTypesTest, EachIsAMachineWithFourGibForEachCpu) {
  for (const ServerType& type : ServerTypes()) {
    SCOPED_TRACE(std::string(type.name));
    EXPECT_EQ(FindServerType(type.name), &type);
    EXPECT_FALSE(type.description.empty());
    const auto machine = Must(LoadMachine(type.name));
    int64_t memory = 0;
    for (const NumaNode& node : machine.nodes())
      memory += node.memory.value;
    EXPECT_EQ(memory, int64_t{machine.online().size()} * (4LL << 30));
  }
  EXPECT_EQ(FindServerType("epyc"), nullptr);
  EXPECT_EQ(FindServerType("zzz"), nullptr);
}

TEST(ServerTypesTest, SecondThreadsComeAfterAllCoresAndNodesHaveTheirDistances) {
  const auto machine = Must(LoadMachine("epyc-9654-2s-nps4"));
  EXPECT_EQ(machine.online().size(), 384);
  EXPECT_THAT(machine.packages(), SizeIs(2));
  EXPECT_THAT(machine.l3_groups(), SizeIs(24));
  EXPECT_EQ(machine.cores()[0].ToString(), "0,192");
  EXPECT_EQ(machine.l3_groups()[1].ToString(), "8-15,200-207");
  EXPECT_EQ(machine.nodes()[7].cpus.ToString(), "168-191,360-383");
  EXPECT_THAT(machine.nodes()[0].distances, ElementsAre(10, 12, 12, 12, 32, 32, 32, 32));
}

// Clusters of one package share its cache.
TEST(ServerTypesTest, SubNumaClustersShareTheirPackagesCache) {
  const auto machine = Must(LoadMachine("xeon-8480-2s-snc4"));
  EXPECT_EQ(machine.online().size(), 224);
  EXPECT_THAT(machine.l3_groups(), SizeIs(2));
  EXPECT_THAT(machine.nodes(), SizeIs(8));
}

TEST(ServerTypesTest, SyntheticMachinesTakeTheMemoryThatIsGivenForEachCpu) {
  const auto open = Must(LoadMachine("synthetic:numa:2 core:3 pu:2", kSyntheticMemoryPerCpu));
  EXPECT_EQ(open.nodes()[1].memory.value, 24LL << 30);
  EXPECT_TRUE(LeavesMemoryOpen(" synthetic:numa:2 core:3 pu:2"));

  constexpr std::string_view kTold = "synthetic:numa:2(memory=64GiB) core:3 pu:2";
  const auto told = Must(LoadMachine(kTold, kSyntheticMemoryPerCpu));
  EXPECT_EQ(told.nodes()[1].memory.value, 64LL << 30);
  EXPECT_FALSE(LeavesMemoryOpen(kTold));
  EXPECT_FALSE(LeavesMemoryOpen("live"));
  EXPECT_FALSE(LeavesMemoryOpen("epyc-9124"));
}

}  // namespace
}  // namespace resmgr
