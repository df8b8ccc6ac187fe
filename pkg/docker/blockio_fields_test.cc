// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/blockio_fields.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pkg/docker/body_edits.h"

namespace resmgr::docker {
namespace {

constexpr Operation kAtCreation = Operation::kCreateContainer;
constexpr Operation kAtUpdate = Operation::kUpdateContainerResources;

std::string Edited(std::string_view body, std::string_view file, std::string_view value) {
  Adjustment adjustment;
  adjustment.Wide().unified.Set(std::string(file), std::string(value));
  const auto edited = EditBody(kAtCreation, body, adjustment);
  EXPECT_TRUE(edited.ok()) << edited.status();
  return edited.value_or("");
}

TEST(BlockioFieldsTest, LimitsAreListsOfDevices) {
  EXPECT_EQ(Edited("{}", "io.max",
                   "7:7 rbps=50000000 wbps=max riops=max wiops=5000\n8:0 rbps=1 wbps=2 riops=max "
                   "wiops=max"),
            R"({"HostConfig":{"BlkioDeviceReadBps":[{"Path":"/dev/block/7:7","Rate":50000000},)"
            R"({"Path":"/dev/block/8:0","Rate":1}],)"
            R"("BlkioDeviceWriteBps":[{"Path":"/dev/block/8:0","Rate":2}],)"
            R"("BlkioDeviceReadIOps":[],)"
            R"("BlkioDeviceWriteIOps":[{"Path":"/dev/block/7:7","Rate":5000}]}})");
  EXPECT_EQ(
      Edited(R"({"HostConfig":{"BlkioDeviceReadBps":[{"Path":"/dev/x","Rate":1}]}})", "io.max", ""),
      R"({"HostConfig":{"BlkioDeviceReadBps":[],"BlkioDeviceWriteBps":[],)"
      R"("BlkioDeviceReadIOps":[],"BlkioDeviceWriteIOps":[]}})")
      << "the class says that there is no limit";
}

TEST(BlockioFieldsTest, AWeightIsTheOneThatRuncTurnsIntoTheFile) {
  EXPECT_EQ(Edited("{}", "io.weight", "default 708\n8:0 910"),
            R"({"HostConfig":{"BlkioWeight":80,)"
            R"("BlkioWeightDevice":[{"Path":"/dev/block/8:0","Weight":100}]}})");
  for (int64_t weight = 10; weight <= 1000; ++weight) {
    const int64_t unified = 1 + (weight - 10) * 9999 / 990;
    NewMembers members;
    ASSERT_TRUE(AddBlockio("io.weight", fmt::format("default {}", unified), members).ok());
    ASSERT_EQ(members.at(0).second, fmt::format("{}", weight));
  }
}

TEST(BlockioFieldsTest, WhatIsMalformedIsRefused) {
  for (const char* const text :
       {"x rbps=1", "8:0 rbps=-1", "8:0 speed=1", "8: rbps=1", "8:0:1 rbps"}) {
    NewMembers members;
    EXPECT_FALSE(AddBlockio("io.max", text, members).ok()) << text;
  }
  for (const char* const text : {"default", "default 0", "default 10001", "x 5", "8:0 default"}) {
    NewMembers members;
    EXPECT_FALSE(AddBlockio("io.weight", text, members).ok()) << text;
  }
}

TEST(BlockioFieldsTest, SwapCountsWithMemory) {
  EXPECT_EQ(Edited(R"({"HostConfig":{"Memory":1000}})", "memory.swap.max", "500"),
            R"({"HostConfig":{"Memory":1000,"MemorySwap":1500}})");
  EXPECT_EQ(Edited(R"({"HostConfig":{"Memory":1000,"MemorySwap":7}})", "memory.swap.max", "0"),
            R"({"HostConfig":{"Memory":1000,"MemorySwap":1000}})");
  EXPECT_EQ(Edited(R"({"HostConfig":{"Memory":1000}})", "memory.swap.max", "max"),
            R"({"HostConfig":{"Memory":1000,"MemorySwap":-1}})");
  EXPECT_EQ(Edited(R"({"HostConfig":{"X":1}})", "memory.swap.max", "500"),
            R"({"HostConfig":{"X":1}})")
      << "dockerd refuses it without a limit of memory";
}

TEST(BlockioFieldsTest, OnlyACreationHasThem) {
  for (const char* const file : {"io.max", "io.weight", "memory.swap.max"}) {
    EXPECT_FALSE(DockerLeavesOut(kAtCreation, {.field = Field::kUnified, .key = file})) << file;
    EXPECT_TRUE(DockerLeavesOut(kAtUpdate, {.field = Field::kUnified, .key = file})) << file;
  }
}

}  // namespace
}  // namespace resmgr::docker
