// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "test/e2e/node_fixture.h"

namespace resmgr::test {

// The way by which containers come: the relay in front of containerd, or a plugin of containerd's
// NRI, with the client speaking to containerd itself.
enum class Door { kRelay, kNriPlugin };

// A node that is entered by one of the doors, which derived fixtures choose.
class DoorTest : public NodeTest {
 protected:
  virtual bool IsPlugin() const = 0;

  // Opens the door with this policy, or without one until one is delivered. Skips the test if
  // containerd has no NRI.
  void OpenDoor(const std::string& policy = "static", const std::string& config = "");
  // The same with more options than those of the door.
  void OpenDoorWith(Node::Options options);

  // The daemon serves, for the first time or again. A plugin does when containerd has told it its
  // inventory once more, which no call shows.
  void ExpectServing();

  // Cpus_allowed_list, read inside the container.
  CpuSet Inside(const RunningPod& pod);

  // The file about its CPUs that a program in the container reads; the directory holds nothing
  // else, and the program may not write there.
  std::string CpuFile(const RunningPod& pod);
  // The text that it should read there.
  static std::string CpuFileOf(const CpuSet& cpus, const CpuSet& exclusive,
                               const std::string& mems);

  // Ends the daemon by this signal, and with StartDaemon starts it again.
  void EndDaemon(int signal_number);
  void StartDaemon();
  void RestartDaemon(int signal_number);

  void RestartContainerd();

 private:
  size_t Synchronizations();

  size_t lives_ = 0;
};

// Tests that run with each door.
class FrontDoorsTest : public DoorTest, public ::testing::WithParamInterface<Door> {
 protected:
  bool IsPlugin() const override { return GetParam() == Door::kNriPlugin; }
};

std::string NameOf(const ::testing::TestParamInfo<Door>& door);

}  // namespace resmgr::test
