// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/front_doors.h"

#include <fmt/format.h>

namespace resmgr::test {

void DoorTest::OpenDoor(const std::string& policy, const std::string& config) {
  OpenDoorWith({.policy = policy, .config = config});
}

void DoorTest::OpenDoorWith(Node::Options options) {
  options.relayed = !IsPlugin();
  options.nri_plugin = IsPlugin();
  Open(options);
  if (HasFatalFailure() || !IsPlugin()) return;
  NeedsNewerThan16("NRI");
  if (!HasFatalFailure() && !IsSkipped()) ExpectServing();
}

void DoorTest::ExpectServing() {
  ++lives_;
  cri::VersionResponse version;
  const Status serving = WaitUntil("the daemon serves", kPatience, [&] {
    return IsPlugin() ? Synchronizations() >= lives_
                      : node().client().Unary("Version", cri::VersionRequest(), &version).ok();
  });
  EXPECT_TRUE(serving.ok()) << Describe(serving) << node().RelayLog();
}

CpuSet DoorTest::Inside(const RunningPod& pod) {
  const auto cpus = node().CpusInside(pod);
  EXPECT_TRUE(cpus.ok()) << Describe(cpus.status());
  return cpus.value_or(CpuSet());
}

std::string DoorTest::CpuFile(const RunningPod& pod) {
  const auto read = node().runtime().Exec(
      pod.container_id, {"sh", "-c",
                         "cd /run/cri-resmgr && ls && cat cpus.env && . ./cpus.env && "
                         "echo $CPUS && ! touch other 2>/dev/null"});
  if (!read.ok()) return Describe(read.status());
  return read->stdout() + read->stderr();
}

std::string DoorTest::CpuFileOf(const CpuSet& cpus, const CpuSet& exclusive,
                                const std::string& mems) {
  return fmt::format(
      "cpus.env\nCPUS={0}\nEXCLUSIVE_CPUS={1}\nSHARED_CPUS={2}\nMEMORY_NODES={3}\n{0}\n",
      cpus.ToString(), exclusive.ToString(), (cpus - exclusive).ToString(), mems);
}

void DoorTest::EndDaemon(int signal_number) {
  node().relay().process().Signal(signal_number);
  ASSERT_TRUE(node().relay().process().Wait(kPatience).ok());
}

void DoorTest::StartDaemon() {
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
}

void DoorTest::RestartDaemon(int signal_number) {
  EndDaemon(signal_number);
  StartDaemon();
  ExpectServing();
}

void DoorTest::RestartContainerd() {
  ASSERT_TRUE(node().RestartContainerd().ok()) << containerd().Log();
}

size_t DoorTest::Synchronizations() {
  return TimesIn(node().WholeRelayLog(), "synchronized: ");
}

std::string NameOf(const ::testing::TestParamInfo<Door>& door) {
  return door.param == Door::kRelay ? "Relay" : "NriPlugin";
}

}  // namespace resmgr::test
