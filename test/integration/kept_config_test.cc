// SPDX-License-Identifier: Apache-2.0
// The use of an earlier daemon's delivered configuration by a daemon that starts.
#include <filesystem>
#include <string>

#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

class KeptConfigTest : public ControlTest {};

TEST_F(KeptConfigTest, WhatWasDeliveredIsInForceAfterARestart) {
  StartRuntime();
  const std::string file = WriteFile("node.yaml", "policy: {Active: null}");
  StartDaemon(Flags({"-config", file}));
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(SetConfig({{"policy", kStatic}}), "");
  const CpuSet before = CpusAtRuntime(running.container);
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(Path("state/config")); }));
  daemon_->Kill();
  StartDaemon(Flags({"-config", file}));
  EXPECT_EQ(PolicyInForce(), "static");
  EXPECT_EQ(Ctl({"status", "-o", "json"}).json().value("config", ""), "agent");
  EXPECT_TRUE(Eventually([&] { return Ctl({"containers", "-o", "json"}).json().size() == 1; }));
  EXPECT_EQ(CpusAtRuntime(running.container), before);

  daemon_->Kill();
  StartDaemon(Flags({"-force-config", file}));
  EXPECT_EQ(PolicyInForce(), "null");
}

TEST_F(KeptConfigTest, AKeptConfigurationThatNoLongerFitsIsLeftAside) {
  StartRuntime();
  std::filesystem::create_directories(Path("state"));
  WriteFile("state/config", R"({"version":1,"name":"agent","data":{"policy":"Active: gone"}})");
  StartDaemon(Flags({"-policy", "null"}));
  EXPECT_EQ(PolicyInForce(), "null");
  EXPECT_TRUE(Logged("earlier run is ignored"));
  daemon_->Kill();
  WriteFile("state/config", R"({"version":1,"name":"agent","data":{"policy":"Active: static"}})");
  StartDaemon(Flags({"-policy", "null"}));
  EXPECT_EQ(PolicyInForce(), "null");
  EXPECT_TRUE(Logged("has no effect, since -policy says null"));
  daemon_->Kill();
  WriteFile("state/config", "{");
  StartDaemon(Flags({}));
  EXPECT_TRUE(Logged("cannot be read"));
}

TEST_F(KeptConfigTest, ADaemonStartsWithDamagedState) {
  CriClient client = Started();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const CpuSet before = CpusAtRuntime(running.container);
  EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(Path("state/state/state")); }));
  daemon_->Kill();
  WriteFile("state/state/state", "rubbish");
  StartDaemon(StaticFlags());
  EXPECT_TRUE(Logged("not a state file"));
  EXPECT_TRUE(Eventually([&] { return Ctl({"containers", "-o", "json"}).json().size() == 1; }));
  EXPECT_EQ(CpusAtRuntime(running.container), before);
}

TEST_F(KeptConfigTest, CallsGoOnWithAFullDisk) {
  StartRuntime();
  WriteFile("state", "a file where the directory should be");
  StartDaemon(StaticFlags());
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  EXPECT_EQ(CpusAtRuntime(running.container).size(), 2);
  EXPECT_TRUE(Logged("is not saved"));
}

}  // namespace
}  // namespace resmgr::test
