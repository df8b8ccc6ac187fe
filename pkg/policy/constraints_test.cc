// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/constraints.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace resmgr {
namespace {

using ::testing::HasSubstr;

// Eight CPUs on two nodes; 6 is isolated, 7 is offline.
Machine EightCpus() {
  Machine::Parts parts;
  parts.nodes.resize(2);
  for (int id = 0; id < 8; ++id) {
    Cpu cpu;
    cpu.id = id;
    cpu.online = id != 7;
    cpu.isolated = id == 6;
    if (cpu.online) {
      cpu.core = id;
      cpu.l3 = cpu.die = cpu.numa = cpu.package = id / 4;
      parts.nodes[static_cast<size_t>(id / 4)].cpus.Add(id);
      parts.allowed.Add(id);
    }
    parts.cpus.push_back(cpu);
  }
  for (int id = 0; id < 2; ++id) {
    NumaNode& node = parts.nodes[static_cast<size_t>(id)];
    node.id = id;
    node.distances = id == 0 ? std::vector<int>{10, 20} : std::vector<int>{20, 10};
  }
  StatusOr<Machine> machine = Machine::Create(std::move(parts));
  EXPECT_TRUE(machine.ok()) << Describe(machine.status());
  return *machine;
}

StatusOr<CpuSet> PickLowest(const CpuSet& from, int count) {
  CpuSet picked;
  for (const int cpu : from) {
    if (picked.size() < count) picked.Add(cpu);
  }
  return picked;
}

class ConstraintsTest : public ::testing::Test {
 protected:
  ConstraintsTest() {
    const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
    mount_ = std::filesystem::path(::testing::TempDir()) /
             fmt::format("constraints_{}_{}", test.name(), ::getpid());
    options_.pick = &PickLowest;
    options_.cgroup_mount = mount_.string();
  }
  void TearDown() override { std::filesystem::remove_all(mount_); }

  void WriteCgroupFile(const std::string& path, std::string_view text) {
    std::filesystem::create_directories((mount_ / path).parent_path());
    std::ofstream(mount_ / path) << text << "\n";
  }

  static std::optional<CpuConstraint> Constraint(std::string_view text, std::string_view origin) {
    if (text.empty()) return std::nullopt;
    const StatusOr<CpuConstraint> constraint = ParseCpuConstraint(text, origin);
    EXPECT_TRUE(constraint.ok()) << Describe(constraint.status());
    return constraint.value_or(CpuConstraint{});
  }
  StatusOr<PolicyCpus> Resolve(std::string_view available, std::string_view reserved) {
    return ResolveCpuConstraints(machine_, Constraint(available, "available"),
                                 Constraint(reserved, "reserved"), options_);
  }
  std::string Text(std::string_view available, std::string_view reserved) {
    const StatusOr<PolicyCpus> cpus = Resolve(available, reserved);
    if (!cpus.ok()) return std::string(Message(cpus.status()));
    return fmt::format("{} reserved {}", cpus->available.ToString(), cpus->reserved.ToString());
  }

  const Machine machine_ = EightCpus();
  std::filesystem::path mount_;
  ConstraintOptions options_;
};

TEST_F(ConstraintsTest, WithoutConstraintsEverythingIsAvailable) {
  EXPECT_EQ(Text("", ""), "0-6 reserved ");
}

TEST_F(ConstraintsTest, SetsAreTakenAsTheyStand) {
  EXPECT_EQ(Text("1-5", "2,4"), "1-5 reserved 2,4");
  EXPECT_EQ(Text("0-6", "#6"), "0-6 reserved 6");
  EXPECT_EQ(Text("1-2", "1-2"), "1-2 reserved 1-2");
}

TEST_F(ConstraintsTest, WhatRoundingAReservationAddsIsNotReserved) {
  EXPECT_EQ(Resolve("", "750m")->unreserved.value, 250);
  EXPECT_EQ(Resolve("", "1m")->unreserved.value, 999);
  EXPECT_EQ(Resolve("4-5", "1001m")->unreserved.value, 999);
  for (const std::string_view whole : {"", "2", "2,4", "#6", "exclude-cpuset:2-7"})
    EXPECT_EQ(Resolve("", whole)->unreserved.value, 0) << whole;
}

TEST_F(ConstraintsTest, AllButSomeAreTheOthers) {
  EXPECT_EQ(Text("exclude-cpuset:0-3", ""), "4-6 reserved ");
  EXPECT_EQ(Text("1-5", "exclude-cpuset:2-7"), "1-5 reserved 1");
  EXPECT_EQ(Text("exclude-cpuset:0-6", ""), "available: without CPU 0-6 there is none left");
  EXPECT_EQ(Text("1-2", "exclude-cpuset:1-3"), "reserved: without CPU 1-3 there is none left");
  EXPECT_THAT(Text("exclude-cpuset:9", ""), HasSubstr("this machine has no CPU 9"));
}

TEST_F(ConstraintsTest, ReservedQuantitiesRoundUp) {
  EXPECT_EQ(Text("", "1m"), "0-6 reserved 0");
  EXPECT_EQ(Text("", "750m"), "0-6 reserved 0");
  EXPECT_EQ(Text("", "2"), "0-6 reserved 0-1");
  EXPECT_EQ(Text("4-5", "1001m"), "4-5 reserved 4-5");
}

TEST_F(ConstraintsTest, AvailableQuantitiesRoundDown) {
  EXPECT_EQ(Text("3", ""), "0-2 reserved ");
  EXPECT_EQ(Text("2900m", "1"), "0-1 reserved 0");
  EXPECT_EQ(Text("900m", ""), "available: 900m is less than one CPU");
}

TEST_F(ConstraintsTest, CpusThatAreNotThereAreNamed) {
  EXPECT_EQ(Text("0-9", ""), "available: this machine has no CPU 8-9; it has 0-7");
  EXPECT_EQ(Text("", "64"),
            "reserved: asks for 64 CPUs, but 6 CPUs are available and not isolated: 0-5");
  EXPECT_EQ(Text("", "#64"), "reserved: this machine has no CPU 64; it has 0-7");
}

TEST_F(ConstraintsTest, CpusThatAreOfflineAreLeftOut) {
  EXPECT_EQ(Text("5-7", ""), "5-6 reserved ");
  EXPECT_EQ(Text("0-3,7", "3,7"), "0-3 reserved 3");
  EXPECT_EQ(Text("#7", ""), "available: all of its CPUs are offline; online are 0-6");
  EXPECT_EQ(Text("1-3", "#7"), "1-3 reserved 1") << "a reservation does not become empty";
}

TEST_F(ConstraintsTest, CpusThatWentOfflineSinceAreLeftOut) {
  options_.offline = {0, 3};
  EXPECT_EQ(Text("", ""), "1-2,4-6 reserved ");
  EXPECT_EQ(Text("1-3", "2-3"), "1-2 reserved 2");
  EXPECT_EQ(Text("exclude-cpuset:1", "exclude-cpuset:4-7"), "2,4-6 reserved 2");
  EXPECT_EQ(Text("#3", ""), "all available CPUs (3) are offline");
  EXPECT_EQ(Text("", "#0"), "1-2,4-6 reserved 1") << "a reservation does not become empty";
  EXPECT_EQ(Text("#0,6", "#0"), "6 reserved 6") << "not even where only isolated CPUs are left";
}

TEST_F(ConstraintsTest, NoOtherCpuChangesWhenSomeGoOffline) {
  EXPECT_EQ(Text("4", "2"), "0-3 reserved 0-1");
  options_.offline = {1};
  EXPECT_EQ(Text("4", "2"), "0,2-4 reserved 0") << "another one is available instead";
  EXPECT_EQ(Text("7", "2"), "0,2-6 reserved 0") << "there is no other one";
  EXPECT_EQ(Resolve("", "1500m")->unreserved.value, 0);
  options_.offline = {0, 1};
  EXPECT_EQ(Text("4", "2"), "2-5 reserved 2-3");
}

TEST_F(ConstraintsTest, ACgroupLosesOfflineCpusByItself) {
  WriteCgroupFile("pods/cpuset.cpus.effective", "1-2");
  options_.offline = {3};
  EXPECT_EQ(Text("cgroup:pods", "2-3"), "1-2 reserved 2");
}

TEST_F(ConstraintsTest, ACgroupKeepsTheCpusOfItsPartitions) {
  WriteCgroupFile("pods/cpuset.cpus.effective", "1-2");
  WriteCgroupFile("pods/cpuset.cpus.exclusive.effective", "3-4");
  EXPECT_EQ(Text("cgroup:pods", ""), "1-4 reserved ");
}

TEST_F(ConstraintsTest, ReservedCpusMustBeAvailable) {
  EXPECT_EQ(Text("1-5", "0,2"), "reserved: CPU 0 is not available; available are 1-5");
  EXPECT_EQ(Text("1-3", "4"),
            "reserved: asks for 4 CPUs, but 3 CPUs are available and not isolated: 1-3");
  EXPECT_EQ(Text("20", ""), "available: asks for 20 CPUs, but 7 CPUs are usable: 0-6");
  EXPECT_EQ(
      Text("", "9223372036854775"),
      "reserved: asks for 9223372036854775 CPUs, but 6 CPUs are available and not isolated: 0-5");
}

// Its preference changes with the number that it gets.
StatusOr<CpuSet> PickEvenOrOdd(const CpuSet& from, int count) {
  CpuSet picked;
  for (const int cpu : from) {
    if (from.size() % 2 == cpu % 2 && picked.size() < count) picked.Add(cpu);
  }
  for (const int cpu : from) {
    if (picked.size() < count) picked.Add(cpu);
  }
  return picked;
}

TEST_F(ConstraintsTest, ReservedCpusByQuantityStayWhenASmallerNumberIsAvailable) {
  options_.pick = PickEvenOrOdd;
  EXPECT_EQ(Text("7", "2"), "0-6 reserved 0,2");
  EXPECT_EQ(Text("5", "2"), "0-3,5 reserved 0,2");
  EXPECT_EQ(Text("4", "2"), "0-3 reserved 0,2");
  EXPECT_EQ(Text("3", "2"), "0-2 reserved 0,2");
  EXPECT_EQ(Text("2", "2"), "0,2 reserved 0,2");
  EXPECT_EQ(Text("1", "2"),
            "reserved: asks for 2 CPUs, but 1 CPU is available and not isolated: 1");
}

TEST_F(ConstraintsTest, ReservedCpusByQuantityStayWhenFewerAreAvailable) {
  options_.pick = PickEvenOrOdd;
  EXPECT_EQ(Text("", "2"), "0-6 reserved 0,2");
  EXPECT_EQ(Text("0-4", "2"), "0-4 reserved 0,2");
  EXPECT_EQ(Text("0,2-4", "2"), "0,2-4 reserved 0,2");
  EXPECT_EQ(Text("1-4", "2"), "1-4 reserved 2,4") << "0 alone is replaced";
  EXPECT_EQ(Text("1,4-5", "2"), "1,4-5 reserved 1,4");
}

TEST_F(ConstraintsTest, IsolatedCpusAreNotReservedByQuantity) {
  EXPECT_EQ(Text("5-6", "1"), "5-6 reserved 5");
  EXPECT_EQ(Text("#6", "1"),
            "reserved: asks for 1 CPU, but 0 CPUs are available and not isolated: none");
}

TEST_F(ConstraintsTest, CgroupsAreFoundByEveryName) {
  WriteCgroupFile("two/pods/cpuset.cpus.effective", "1-4");
  WriteCgroupFile("two/pods/cpuset.cpus", "");
  WriteCgroupFile("cpuset/one/cpuset.cpus", "2-3");
  EXPECT_EQ(Text("cgroup:two/pods", ""), "1-4 reserved ");
  EXPECT_EQ(Text("/two/pods", "cgroup:one"), "1-4 reserved 2-3");
  EXPECT_EQ(Text("/one", ""), "2-3 reserved ");
  EXPECT_EQ(Text("cgroup:" + (mount_ / "two/pods").string(), ""), "1-4 reserved ");
}

TEST_F(ConstraintsTest, CgroupsWithoutUsableCpusAreNamed) {
  WriteCgroupFile("empty/cpuset.cpus", "");
  WriteCgroupFile("wrong/cpuset.cpus", "nonsense");
  WriteCgroupFile("large/cpuset.cpus", "0-31");
  EXPECT_EQ(Text("cgroup:empty", ""), "available: the cgroup empty has no CPUs");
  EXPECT_THAT(Text("cgroup:wrong", ""), HasSubstr("wrong/cpuset.cpus"));
  EXPECT_EQ(Text("cgroup:large", ""), "available: this machine has no CPU 8-31; it has 0-7");
  EXPECT_THAT(Text("cgroup:none", ""), HasSubstr("available: there is no cgroup none"));
  EXPECT_EQ(Resolve("cgroup:none", "").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ConstraintsTest, ThePickersRefusalIsReported) {
  options_.pick = [](const CpuSet&, int) -> StatusOr<CpuSet> {
    return ResourceExhausted("no luck");
  };
  EXPECT_EQ(Text("", "1"), "reserved: no luck");
}

}  // namespace
}  // namespace resmgr
