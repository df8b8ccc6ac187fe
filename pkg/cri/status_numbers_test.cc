// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/edit_fields.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;

v1::ContainerStatusResponse Reply() {
  v1::ContainerStatusResponse reply;
  reply.mutable_status()->set_id("c");
  auto& linux = *reply.mutable_status()->mutable_resources()->mutable_linux();
  linux.set_cpu_period(100'000);
  linux.set_cpu_quota(-1);
  linux.set_cpu_shares(2);
  linux.set_memory_limit_in_bytes(5);
  linux.GetReflection()->MutableUnknownFields(&linux)->AddVarint(77, 1);
  (*reply.mutable_info())["info"] = "{}";
  return reply;
}

v1::LinuxContainerResources& LinuxOf(v1::ContainerStatusResponse& reply) {
  return *reply.mutable_status()->mutable_resources()->mutable_linux();
}

TEST(StatusNumbersTest, ReplacesThemWhereTheyStand) {
  v1::ContainerStatusResponse reply = Reply();
  const auto changed = WithCpuNumbers(reply.SerializeAsString(), [](CpuNumbers& numbers) {
    EXPECT_EQ(numbers, (CpuNumbers{.shares = 2, .quota = -1, .period = 100'000}));
    numbers = {.shares = 1024, .quota = 50'000, .period = 10'000};
  });
  LinuxOf(reply).set_cpu_shares(1024);
  LinuxOf(reply).set_cpu_quota(50'000);
  LinuxOf(reply).set_cpu_period(10'000);
  EXPECT_EQ(changed, reply.SerializeAsString());
}

TEST(StatusNumbersTest, AddsAndRemovesThem) {
  v1::ContainerStatusResponse reply = Reply();
  LinuxOf(reply).clear_cpu_shares();
  const auto changed = WithCpuNumbers(reply.SerializeAsString(), [](CpuNumbers& numbers) {
    numbers.shares = 1024;
    numbers.quota.reset();
    numbers.period = 0;
  });
  ASSERT_TRUE(changed);
  v1::ContainerStatusResponse seen;
  ASSERT_TRUE(seen.ParseFromString(*changed));
  LinuxOf(reply).set_cpu_shares(1024);
  LinuxOf(reply).clear_cpu_quota();
  LinuxOf(reply).clear_cpu_period();
  EXPECT_EQ(seen.SerializeAsString(), reply.SerializeAsString());
}

TEST(StatusNumbersTest, FilesOfSharesGoWithTheShares) {
  v1::ContainerStatusResponse reply = Reply();
  LinuxOf(reply).clear_cpu_shares();
  auto& unified = *LinuxOf(reply).mutable_unified();
  unified["memory.high"] = "5";
  const std::string without = reply.SerializeAsString();
  unified["cpu.weight"] = "300";
  const auto changed = WithCpuNumbers(reply.SerializeAsString(), [](CpuNumbers& numbers) {
    EXPECT_TRUE(numbers.shares_in_file);
    numbers.shares_in_file = false;
  });
  EXPECT_EQ(changed, without);
}

TEST(StatusNumbersTest, LeavesTheReplyWhereNothingChanges) {
  const std::string reply = Reply().SerializeAsString();
  const auto nothing = [](CpuNumbers&) {};
  const auto all = [](CpuNumbers& numbers) { numbers.shares = 7; };
  EXPECT_EQ(WithCpuNumbers(reply, nothing), std::nullopt);
  v1::ContainerStatusResponse old;
  old.mutable_status()->set_id("c");
  EXPECT_EQ(WithCpuNumbers(old.SerializeAsString(), all), std::nullopt) << "no resources";
  EXPECT_EQ(WithCpuNumbers(reply.substr(0, reply.size() - 1), all), std::nullopt);
  EXPECT_EQ(WithCpuNumbers("", all), std::nullopt);
}

}  // namespace
}  // namespace resmgr
