// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/cpu_constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using ::testing::HasSubstr;

CpuConstraint Constraint(std::string_view text) {
  const auto constraint = ParseCpuConstraint(text, "origin");
  EXPECT_TRUE(constraint.ok()) << text << ": " << Describe(constraint.status());
  return constraint.value_or(CpuConstraint{});
}

std::string ConstraintError(const StatusOr<CpuConstraint>& constraint) {
  EXPECT_EQ(constraint.status().code(), StatusCode::kInvalidArgument);
  return std::string(Message(constraint.status()));
}

TEST(CpuConstraintTest, ReadsSets) {
  for (const char* text : {"cpuset:0-3,8", "#0-3,8", "0-3,8", " 0-3,8 ", "cpuset: 0-3, 8"}) {
    const CpuConstraint constraint = Constraint(text);
    EXPECT_EQ(constraint.kind, CpuConstraint::Kind::kSet) << text;
    EXPECT_EQ(constraint.cpus, (CpuSet{0, 1, 2, 3, 8})) << text;
  }
  EXPECT_EQ(Constraint("#3").cpus, CpuSet{3});
  EXPECT_EQ(Constraint("cpuset:3").cpus, CpuSet{3});
}

TEST(CpuConstraintTest, ReadsWhatToLeaveOut) {
  EXPECT_EQ(Constraint("exclude-cpuset:0-3,8").kind, CpuConstraint::Kind::kAllBut);
  EXPECT_EQ(Constraint("exclude-cpuset: 0-3,8").cpus, (CpuSet{0, 1, 2, 3, 8}));
  EXPECT_EQ(ConstraintError(ParseCpuConstraint("exclude-cpuset:", "")),
            "the list of CPUs is empty");
}

TEST(CpuConstraintTest, ReadsQuantities) {
  for (const char* text : {"3", "3000m", "3.0", "quantity:3", "quantity:3000m"}) {
    const CpuConstraint constraint = Constraint(text);
    EXPECT_EQ(constraint.kind, CpuConstraint::Kind::kQuantity) << text;
    EXPECT_EQ(constraint.quantity.value, 3000) << text;
  }
}

TEST(CpuConstraintTest, ReadsCgroups) {
  EXPECT_EQ(Constraint("cgroup:kubepods").cgroup, "kubepods");
  EXPECT_EQ(Constraint("cgroup:/kubepods").cgroup, "/kubepods");
  EXPECT_EQ(Constraint("/kubepods-x,y").cgroup, "/kubepods-x,y");
  EXPECT_EQ(Constraint("/kubepods").kind, CpuConstraint::Kind::kCgroup);
}

TEST(CpuConstraintTest, RefusesTheRest) {
  for (const char* text : {"", "  ", "cpuset:", "#", "cgroup:", "0", "0m", "quantity:", "3-1",
                           "1,x", "-1", "2K", "all", "cpuset:0-100000", "cpuset:99999999999"}) {
    EXPECT_EQ(ParseCpuConstraint(text, "").status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(ConstraintError(ParseCpuConstraint("0", "")), "must be more than 0 CPUs");
  EXPECT_EQ(ConstraintError(ParseCpuConstraint("cpuset:", "")), "the list of CPUs is empty");
  EXPECT_THAT(ConstraintError(ParseCpuConstraint("", "")), HasSubstr("cgroup:DIR"));
}

TEST(CpuConstraintTest, ANegativeExponentIsNoRange) {
  EXPECT_EQ(Constraint("5e-1").quantity.value, 500);
  EXPECT_EQ(Constraint("1500E-3").quantity.value, 1500);
  EXPECT_EQ(Constraint("1e1").quantity.value, 10'000);
  EXPECT_EQ(Constraint("1-1").cpus, (CpuSet{1}));
  EXPECT_THAT(ConstraintError(ParseCpuConstraint("0,1e-1", "")), HasSubstr("a range such as 0-3"));
}

TEST(CpuConstraintTest, TextReadsBackToTheSame) {
  for (const char* text :
       {"cpuset:0-3,8", "#5", "750m", "2", "cgroup:kubepods", "/a/b", "exclude-cpuset:1-2"}) {
    const CpuConstraint constraint = Constraint(text);
    EXPECT_EQ(Constraint(ToString(constraint)), constraint) << text;
  }
}

// Reads a constraint as the flags' values are read.
StatusOr<CpuConstraint> FromFlag(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const std::string cpus, CpuOfResources(text));
  return ParseCpuConstraint(cpus, "");
}

TEST(ResourcesFlagTest, TakesCommasIntoTheValue) {
  EXPECT_EQ(FromFlag("CPU=0-3,8,10-11")->cpus.ToString(), "0-3,8,10-11");
  EXPECT_EQ(FromFlag("cpu=cpuset:0,2")->cpus, (CpuSet{0, 2}));
  EXPECT_EQ(FromFlag("CPU=#0,2")->cpus, (CpuSet{0, 2}));
  EXPECT_EQ(FromFlag("Cpu = 750m")->quantity.value, 750);
}

TEST(ResourcesFlagTest, RefusesOtherDomainsAndNone) {
  EXPECT_EQ(ConstraintError(FromFlag("750m")), "\"750m\" is not DOMAIN=VALUE; write CPU=750m");
  EXPECT_EQ(ConstraintError(FromFlag("CPU")), "\"CPU\" is not DOMAIN=VALUE; write CPU=VALUE");
  EXPECT_EQ(ConstraintError(FromFlag("CPU=1,Memory=1G")),
            "the resource \"Memory\" is not known; only CPU is");
  EXPECT_EQ(ConstraintError(FromFlag("CPU=1,CPU=2")), "duplicate key CPU");
  EXPECT_FALSE(FromFlag("").ok());
  EXPECT_FALSE(FromFlag("=1").ok());
  EXPECT_FALSE(FromFlag("CPU=").ok());
}

}  // namespace
}  // namespace resmgr
