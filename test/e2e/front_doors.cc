// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/front_doors.h"

namespace resmgr::test {

void FrontDoorsTest::OpenDoor(const std::string& policy, const std::string& config) {
  Open({.relayed = !IsPlugin(), .nri_plugin = IsPlugin(), .policy = policy, .config = config});
  if (HasFatalFailure() || !IsPlugin()) return;
  cri::VersionResponse version;
  ASSERT_TRUE(node().runtime().Unary("Version", cri::VersionRequest(), &version).ok());
  // "1.6.20~ds1", "v1.6.20"
  if (version.runtime_version().find("1.6.") <= 1) {
    GTEST_SKIP() << "containerd " << version.runtime_version()
                 << " has no NRI; scripts/test-runtimes fetches one that has";
  }
  ExpectServing();
}

void FrontDoorsTest::ExpectServing() {
  ++lives_;
  cri::VersionResponse version;
  const Status serving = WaitUntil("the daemon serves", kPatience, [&] {
    return IsPlugin() ? Synchronizations() >= lives_
                      : node().client().Unary("Version", cri::VersionRequest(), &version).ok();
  });
  EXPECT_TRUE(serving.ok()) << Describe(serving) << node().RelayLog();
}

CpuSet FrontDoorsTest::Inside(const RunningPod& pod) {
  const auto cpus = node().CpusInside(pod);
  EXPECT_TRUE(cpus.ok()) << Describe(cpus.status());
  return cpus.value_or(CpuSet());
}

void FrontDoorsTest::EndDaemon(int signal_number) {
  node().relay().process().Signal(signal_number);
  ASSERT_TRUE(node().relay().process().Wait(kPatience).ok());
}

void FrontDoorsTest::StartDaemon() {
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
}

void FrontDoorsTest::RestartDaemon(int signal_number) {
  EndDaemon(signal_number);
  StartDaemon();
  ExpectServing();
}

void FrontDoorsTest::RestartContainerd() {
  ASSERT_TRUE(node().RestartContainerd().ok()) << containerd().Log();
}

size_t FrontDoorsTest::Synchronizations() {
  return TimesIn(node().WholeRelayLog(), "synchronized: ");
}

std::string NameOf(const ::testing::TestParamInfo<Door>& door) {
  return door.param == Door::kRelay ? "Relay" : "NriPlugin";
}

}  // namespace resmgr::test
