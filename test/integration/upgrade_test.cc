// SPDX-License-Identifier: Apache-2.0
// The daemon is started anew under load while another process holds its listening socket, as
// systemd does: no call fails.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "pkg/sys/unix_socket.h"
#include "test/integration/daemon_fixture.h"

namespace resmgr::test {
namespace {

constexpr int kClients = 4;
constexpr int kCallsPerSecond = 200;  // of all of them
constexpr int kRestarts = 20;

// Clients that call all the time, as kubelets do: containers come and go between other calls.
class Load {
 public:
  explicit Load(const std::string& socket) {
    for (int i = 0; i < kClients; ++i)
      threads_.emplace_back([this, socket, i] { Call(socket, i); });
  }
  ~Load() { End(); }

  // Returns what failed.
  std::vector<std::string> End() {
    ending_ = true;
    for (std::thread& thread : threads_)
      thread.join();
    threads_.clear();
    return failures_;
  }
  int calls() const { return calls_; }

 private:
  void Note(const char* what, const Status& status) {
    ++calls_;
    std::this_thread::sleep_for(milliseconds(1000 * kClients / kCallsPerSecond));
    if (status.ok()) return;
    const std::lock_guard lock(mutex_);
    failures_.push_back(fmt::format("{}: {}", what, Describe(status)));
  }

  void Call(const std::string& socket, int number) {
    CriClient client(socket, ApiVersion::kV1, Retries::kTransparent);
    const std::string name = fmt::format("c{}", number);
    const auto pod = MakeBestEffortPod(name);
    const auto sandbox = client.RunPod(pod);
    Note("RunPodSandbox", sandbox.status());
    if (!sandbox.ok()) return;
    for (uint32_t attempt = 0; !ending_; ++attempt) {
      cri::ContainerConfig config = MakeBestEffortContainer(name);
      config.mutable_metadata()->set_attempt(attempt);
      const auto id = client.CreateContainer(*sandbox, pod, config);
      Note("CreateContainer", id.status());
      if (!id.ok()) continue;
      Note("StartContainer", client.StartContainer(*id));
      Note("ContainerStatus", client.ContainerStatus(*id).status());
      cri::VersionResponse version;
      Note("Version", FromGrpc(client.Unary("Version", cri::VersionRequest(), &version)));
      Note("StopContainer", client.StopContainer(*id));
      Note("RemoveContainer", client.RemoveContainer(*id));
    }
  }

  std::atomic<bool> ending_ = false;
  std::atomic<int> calls_ = 0;
  std::mutex mutex_;
  std::vector<std::string> failures_;
  std::vector<std::thread> threads_;
};

class UpgradeTest : public DaemonTest {
 protected:
  // Holds the daemon's socket from now on, in its stead.
  void HoldSocket() {
    auto made = ListeningSocket::Create(RelaySocket());
    ASSERT_TRUE(made.ok()) << made.status();
    // Without close-on-exec, for the daemons.
    held_.Reset(::dup(made->fd()));
    // The file outlives the one that made it.
    std::filesystem::create_hard_link(RelaySocket(), Path("kept"));
    made = Unavailable("gone");
    std::filesystem::rename(Path("kept"), RelaySocket());
  }
  void StartWithSocket() {
    const std::string become = fmt::format(
        "exec 3<&{}; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=relay; exec \"$0\" \"$@\"",
        held_.get());
    auto daemon =
        DaemonProcess::Start(StaticFlags(), Path("daemon.log"), {"/bin/bash", "-c", become});
    ASSERT_THAT(daemon, IsOk());
    daemon_ = *std::move(daemon);
  }

  UniqueFd held_;
};

TEST_F(UpgradeTest, NoCallFailsWhileTheServiceManagerHoldsTheSocket) {
  StartRuntime();
  HoldSocket();
  StartWithSocket();
  Load load(RelaySocket());
  CriClient client(RelaySocket(), ApiVersion::kV1, Retries::kTransparent);
  const Running exclusive = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("g", 2));
  const CpuSet own = CpusAtRuntime(exclusive.container);
  ASSERT_EQ(own.size(), 2);
  for (int i = 0; i < kRestarts; ++i) {
    std::this_thread::sleep_for(milliseconds(100));
    const auto status = daemon_->Terminate();
    ASSERT_TRUE(status.ok() && *status == 0);
    // Clients that come now wait.
    std::this_thread::sleep_for(milliseconds(20));
    StartWithSocket();
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_THAT(load.End(), testing::IsEmpty());
  EXPECT_GT(load.calls(), kRestarts * 10);
  EXPECT_EQ(CpusAtRuntime(exclusive.container), own);
  EXPECT_TRUE(std::filesystem::exists(RelaySocket())) << "the file is not the daemon's";
}

TEST_F(UpgradeTest, ASecondDaemonDoesNotServeTheSameSocket) {
  StartRuntime();
  HoldSocket();
  StartWithSocket();
  const std::string become =
      fmt::format("exec 3<&{}; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\"", held_.get());
  const auto second =
      DaemonProcess::Start(StaticFlags(), Path("second.log"), {"/bin/bash", "-c", become});
  EXPECT_FALSE(second.ok());
  EXPECT_THAT(std::string(Message(second.status())), testing::HasSubstr("in use"));
}

}  // namespace
}  // namespace resmgr::test
