// SPDX-License-Identifier: Apache-2.0
// The daemon is started anew, or another one takes over from it, under load: no call fails. Also
// tests that one of the two dies at any step.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "pkg/sys/hand_over.h"
#include "pkg/sys/unix_socket.h"
#include "test/integration/daemon_fixture.h"
#include "test/support/containerd/child_process.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

constexpr int kClients = 4;
constexpr int kCallsPerSecond = 200;  // rate of all clients
// A daemon of another version.
std::string Next() {
  return ProgramAt("test/integration/cri-resmgr-next");
}

// How often the daemon is replaced; scripts/test-upgrades asks for more.
int Rounds() {
  const char* const more = std::getenv("RESMGR_UPGRADES");
  if (more == nullptr) return SanitizedPrograms() ? 8 : 20;
  return std::max(std::atoi(more), 1);
}

// gRPC C++'s error for a call that was never sent, since a GOAWAY came before.
constexpr char kNotSent[] = "unavailable: GOAWAY received";
constexpr int kMostTries = 5;

// Clients that call all the time, as kubelets do: containers come and go between other calls.
class Load {
 public:
  explicit Load(const std::string& socket) {
    for (int i = 0; i < kClients; ++i)
      threads_.emplace_back([this, socket, i] { Call(socket, i); });
  }
  ~Load() { End(); }

  // Returns the failures.
  std::vector<std::string> End() {
    ending_ = true;
    for (std::thread& thread : threads_)
      thread.join();
    threads_.clear();
    return failures_;
  }
  int calls() const { return calls_; }

 private:
  static const Status& StatusOf(const Status& status) { return status; }
  template <typename Reply>
  static const Status& StatusOf(const StatusOr<Reply>& reply) {
    return reply.status();
  }

  // gRPC C++ fails a call that it has not sent yet when it reads GOAWAY, and by itself tries it
  // again once, on the same connection if it is unlucky. gRPC for Go, with which kubelets call,
  // tries until it is sent; so does this.
  template <typename Call>
  static auto UntilSent(const Call& call) {
    auto reply = call();
    for (int i = 0; i < kMostTries && Describe(StatusOf(reply)) == kNotSent; ++i)
      reply = call();
    return reply;
  }

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
    const auto sandbox = UntilSent([&] { return client.RunPod(pod); });
    Note("RunPodSandbox", sandbox.status());
    if (!sandbox.ok()) return;
    for (uint32_t attempt = 0; !ending_; ++attempt) {
      cri::ContainerConfig config = MakeBestEffortContainer(name);
      config.mutable_metadata()->set_attempt(attempt);
      const auto id = UntilSent([&] { return client.CreateContainer(*sandbox, pod, config); });
      Note("CreateContainer", id.status());
      if (!id.ok()) continue;
      Note("StartContainer", UntilSent([&] { return client.StartContainer(*id); }));
      Note("ContainerStatus", UntilSent([&] { return client.ContainerStatus(*id).status(); }));
      Note("Version", UntilSent([&] {
             cri::VersionResponse version;
             return FromGrpc(client.Unary("Version", cri::VersionRequest(), &version));
           }));
      Note("StopContainer", UntilSent([&] { return client.StopContainer(*id); }));
      Note("RemoveContainer", UntilSent([&] { return client.RemoveContainer(*id); }));
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
  for (int i = 0; i < Rounds(); ++i) {
    std::this_thread::sleep_for(milliseconds(100));
    const auto status = daemon_->Terminate();
    ASSERT_TRUE(status.ok() && *status == 0);
    // Clients that come now wait.
    std::this_thread::sleep_for(milliseconds(20));
    StartWithSocket();
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_THAT(load.End(), testing::IsEmpty());
  EXPECT_GT(load.calls(), Rounds());
  EXPECT_EQ(CpusAtRuntime(exclusive.container), own);
  EXPECT_TRUE(std::filesystem::exists(RelaySocket())) << "the file is not the daemon's";
}

// Without a service manager: each daemon takes over from the one before, which is of the other
// version.
class TakeOverTest : public UpgradeTest {
 protected:
  std::vector<std::string> TakeOverFlags() const { return StaticFlags({"-take-over"}); }
  static std::vector<std::string> Launcher(bool next) {
    if (!next) return {};
    return {"/bin/bash", "-c", "exec " + Next() + " \"$@\""};
  }
  // Returns when the new one serves and the old one has ended.
  void Upgrade(bool next) {
    auto daemon = DaemonProcess::Start(TakeOverFlags(), Path("daemon.log"), Launcher(next));
    ASSERT_THAT(daemon, IsOk());
    const auto ended = daemon_->process().Wait(kPatience);
    ASSERT_THAT(ended, IsOk());
    EXPECT_EQ(*ended, 0);
    daemon_ = *std::move(daemon);
  }
  // Starts one that takes over, and does not wait.
  std::unique_ptr<ChildProcess> StartSuccessor() {
    std::vector<std::string> argv = {Next()};
    for (const std::string& flag : TakeOverFlags())
      argv.push_back(flag);
    auto process = ChildProcess::Start(argv, Path("next.log"));
    EXPECT_THAT(process, IsOk());
    return process.ok() ? *std::move(process) : nullptr;
  }
  bool SuccessorLogged(const std::string& text) {
    return Eventually([&] { return TextOf(Path("next.log")).find(text) != std::string::npos; });
  }
  // A call that the runtime does not answer yet.
  std::unique_ptr<PendingCall> HoldCall(CriClient& client) {
    runtime_.Script("/test.Echo/Unary", {.hold = true});
    auto call = client.Start("/test.Echo/Unary", "x");
    EXPECT_TRUE(runtime_.WaitForHeld("/test.Echo/Unary", 1));
    return call;
  }
  void ExpectServed() {
    CriClient client = Relayed();
    cri::VersionResponse version;
    EXPECT_THAT(FromGrpc(client.Unary("Version", cri::VersionRequest(), &version)), IsOk());
  }
  // The test's question in the place of a successor.
  HandOverChannel Ask() {
    auto socket = ConnectUnix(RelaySocket() + ".take-over");
    EXPECT_THAT(socket, IsOk());
    return {*std::move(socket), HandOverChannel::Files::kTake};
  }
  static std::string Await(HandOverChannel& other, const std::string& wanted) {
    for (;;) {
      const auto message = other.Await(kPatience);
      if (!message.ok()) return Describe(message.status());
      if (message->starts_with(wanted)) return *message;
    }
  }
};

TEST_F(TakeOverTest, NoCallFailsWhileDaemonsTakeOver) {
  StartBoth();
  Load load(RelaySocket());
  CriClient client(RelaySocket(), ApiVersion::kV1, Retries::kTransparent);
  const Running exclusive = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("g", 2));
  const CpuSet own = CpusAtRuntime(exclusive.container);
  ASSERT_EQ(own.size(), 2);
  for (int i = 0; i < Rounds(); ++i) {
    std::this_thread::sleep_for(milliseconds(100));
    Upgrade(i % 2 == 0);
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_THAT(load.End(), testing::IsEmpty());
  EXPECT_GT(load.calls(), Rounds());
  EXPECT_EQ(CpusAtRuntime(exclusive.container), own);
  EXPECT_THAT(daemon_->Log(), testing::HasSubstr("+next, takes over"))
      << "they are of different versions";
  EXPECT_EQ(daemon_->Log().find("the state will be lost at a restart"), std::string::npos);
  const auto status = daemon_->Terminate();
  EXPECT_TRUE(status.ok() && *status == 0);
  EXPECT_FALSE(std::filesystem::exists(RelaySocket())) << "the file is that of the last one";
}

TEST_F(TakeOverTest, ASuccessorThatDiesAtAnyStepChangesNothing) {
  CriClient client = Started();
  const Running exclusive = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("g", 2));
  const CpuSet own = CpusAtRuntime(exclusive.container);
  for (const char* last : {"", "take-over 1 9", "all", "drain", "drained"}) {
    SCOPED_TRACE(last);
    const std::string step = last;
    HandOverChannel other = Ask();
    if (!step.empty()) {
      ASSERT_THAT(other.Send("take-over 1 9"), IsOk());
    }
    if (step == "all" || step[0] == 'd') {
      ASSERT_EQ(Await(other, "all").substr(0, 4), "all ");
    }
    std::unique_ptr<PendingCall> held;
    CriClient holder = Relayed();
    if (step == "drain") held = HoldCall(holder);
    if (step[0] == 'd') {
      ASSERT_THAT(other.Send("drain"), IsOk());
    }
    if (step == "drained") {
      ASSERT_EQ(Await(other, "drained"), "drained");
    }
    // A client that connects when nothing is accepted any more waits.
    auto late = std::async(std::launch::async, [this] {
      CriClient client_of_late = Relayed();
      cri::VersionResponse version;
      return FromGrpc(client_of_late.Unary("Version", cri::VersionRequest(), &version));
    });
    std::this_thread::sleep_for(milliseconds(50));
    other = HandOverChannel(UniqueFd(), HandOverChannel::Files::kTake);
    EXPECT_THAT(late.get(), IsOk());
    if (held) {
      runtime_.Release("/test.Echo/Unary");
      const auto ended = held->Wait(kPatience);
      ASSERT_TRUE(ended.has_value());
      EXPECT_TRUE(ended->status.ok()) << ended->status.error_message();
    }
    ExpectServed();
  }
  EXPECT_TRUE(daemon_->process().Running());
  EXPECT_EQ(CpusAtRuntime(exclusive.container), own);
  Upgrade(true);
  EXPECT_EQ(CpusAtRuntime(exclusive.container), own);
  ExpectServed();
}

TEST_F(TakeOverTest, ASuccessorThatIsKilledWhileItWaitsChangesNothing) {
  StartBoth();
  CriClient holder = Relayed();
  const auto held = HoldCall(holder);
  const auto successor = StartSuccessor();
  ASSERT_TRUE(Logged("takes over"));
  ASSERT_TRUE(SuccessorLogged("sockets of cri-resmgr"));
  std::this_thread::sleep_for(milliseconds(200));
  successor->Signal(SIGKILL);
  EXPECT_TRUE(Logged("this daemon continues to serve"));
  ExpectServed();
  runtime_.Release("/test.Echo/Unary");
  const auto ended = held->Wait(kPatience);
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(ended->status.ok());
}

TEST_F(TakeOverTest, WhenTheFormerDaemonIsKilledTheOtherOneServes) {
  CriClient client = Started();
  const Running exclusive = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("g", 2));
  const CpuSet own = CpusAtRuntime(exclusive.container);
  const auto held = HoldCall(client);
  const auto successor = StartSuccessor();
  ASSERT_TRUE(SuccessorLogged("sockets of cri-resmgr"));
  CriClient late = Relayed();
  daemon_->process().Signal(SIGKILL);
  const auto waits = late.Start(late.PathOf("Version"), "");
  ASSERT_TRUE(SuccessorLogged("ready"));
  const auto served = waits->Wait(kPatience);
  ASSERT_TRUE(served.has_value());
  EXPECT_TRUE(served->status.ok()) << served->status.error_message();
  EXPECT_EQ(CpusAtRuntime(exclusive.container), own);
  EXPECT_TRUE(SuccessorLogged("ended before it was asked to"));
  ExpectServed();
}

TEST_F(TakeOverTest, WithoutADaemonItStartsAsAlways) {
  StartRuntime();
  StartDaemon(TakeOverFlags());
  ASSERT_FALSE(HasFatalFailure());
  ExpectServed();
}

TEST_F(TakeOverTest, UnderAServiceManagerItIsRefusedWithTheReason) {
  StartRuntime();
  auto daemon = DaemonProcess::Start(StaticFlags(), Path("daemon.log"),
                                     {"/usr/bin/env", "NOTIFY_SOCKET=" + Path("no-manager.sock")});
  ASSERT_THAT(daemon, IsOk());
  daemon_ = *std::move(daemon);
  const auto successor = StartSuccessor();
  const auto status = successor->Wait(kPatience);
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(*status, 2);
  EXPECT_TRUE(SuccessorLogged("-take-over: the daemon that serves keeps its sockets: the service"));
  ExpectServed();
}

TEST_F(TakeOverTest, ASocketOfTheServiceManagerIsHandedOn) {
  StartRuntime();
  HoldSocket();
  StartWithSocket();
  Upgrade(true);
  ASSERT_FALSE(HasFatalFailure());
  ExpectServed();
  const auto status = daemon_->Terminate();
  EXPECT_TRUE(status.ok() && *status == 0);
  EXPECT_TRUE(std::filesystem::exists(RelaySocket())) << "the file is the manager's";
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
