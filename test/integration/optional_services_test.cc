// SPDX-License-Identifier: Apache-2.0
// Optional services (admin and config sockets, metrics, the state's directory) never prevent a
// daemon's start, and work as soon as possible.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "pkg/sys/files.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/sys/unix_socket.h"
#include "test/integration/daemon_fixture.h"
#include "test/support/api_server/http_server.h"
#include "test/support/programs/programs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OptionalServicesTest : public DaemonTest {
 protected:
  bool Serves(const std::string& name) {
    return Eventually([&] { return ConnectUnix(Path(name)).ok(); });
  }
  // Whether none of the daemon's threads runs any more after SIGSTOP.
  bool Stopped() {
    const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", pid()));
    return std::all_of(begin(threads), end(threads), [](const auto& thread) {
      // "PID (NAME) STATE ..."
      const std::string stat = TextOf(thread.path() / "stat");
      const size_t name_end = stat.rfind(") ");
      return name_end == std::string::npos || stat[name_end + 2] == 'T';
    });
  }
  // Runs the program with these flags to its end.
  int RunToEnd(std::vector<std::string> flags) {
    flags.insert(flags.begin(), Program("cri-resmgr"));
    const auto process = ChildProcess::Start(flags, Path("run.log"));
    EXPECT_THAT(process, IsOk());
    return process.ok() ? (*process)->Wait(kPatience).value_or(-1) : -1;
  }
};

TEST_F(OptionalServicesTest, BusyMetricsPortIsTriedAgain) {
  HttpServer busy([](const HttpServerRequest& /*request*/, HttpServerReply& /*reply*/) {});
  ASSERT_THAT(busy.Start(0), IsOk());
  StartRuntime();
  StartDaemon(StaticFlags({"-metrics-address", "127.0.0.1:" + std::to_string(busy.port())}));
  ASSERT_NE(daemon_, nullptr);
  EXPECT_TRUE(Logged("cannot serve metrics"));
  EXPECT_TRUE(Relayed().Call(kVersion, {""}).status.ok()) << "the node goes on";
  busy.Stop();
  EXPECT_TRUE(Logged("metrics are served on port"));
}

TEST_F(OptionalServicesTest, EndsAtOnceWithMetrics) {
  StartRuntime();
  StartDaemon(StaticFlags({"-metrics-address", "127.0.0.1:0"}));
  ASSERT_TRUE(Logged("the runtime holds"));
  daemon_->process().Signal(SIGTERM);
  const auto code = Must(daemon_->process().Wait(kAtOnceAlone));
  EXPECT_EQ(code, 0);
}

// The first daemon still has a call; the second one serves the kubelet.
TEST_F(OptionalServicesTest, TakesOverFromADaemonThatEnds) {
  CriClient client = Started();
  runtime_.Script("ListContainerStats", {.hold = true});
  const auto held = client.Start("ListContainerStats", cri::ListContainerStatsRequest());
  ASSERT_TRUE(runtime_.WaitForHeld("ListContainerStats", 1));
  daemon_->process().Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return !std::filesystem::exists(RelaySocket()); }));
  EXPECT_EQ(RunToEnd(StaticFlags({"-reset-policy"})), 2);
  EXPECT_THAT(TextOf(Path("run.log")), HasSubstr("wait until it has ended"));
  const auto first = std::move(daemon_);
  auto second = Must(DaemonProcess::Start(StaticFlags(), Path("second.log")));
  daemon_ = std::move(second);
  EXPECT_TRUE(Logged("another process uses"));
  CriClient next = Relayed();
  const Running running = Run(next, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  EXPECT_FALSE(ClaimDirectory(Path("state") + "/state").ok()) << "still of the first one";

  runtime_.Release("ListContainerStats");
  EXPECT_EQ(first->process().Wait(kPatience).value_or(-1), 0);
  EXPECT_TRUE(Logged("admin.sock is served now"));
  EXPECT_TRUE(Logged("config.sock is served now"));
  EXPECT_TRUE(Serves("admin.sock") && Serves("config.sock"));
  // From then on the second daemon saves its state.
  EXPECT_TRUE(Eventually([&] {
    return TextOf(Path("state") + "/state/state").find(running.container) != std::string::npos;
  }));
}

TEST_F(OptionalServicesTest, TellsTheServiceManagerThatTheLoopIsAlive) {
  const UniqueFd manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  Path("notify").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(manager.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  StartRuntime();
  ::setenv("NOTIFY_SOCKET", Path("notify").c_str(), 1);
  ::setenv("WATCHDOG_USEC", "200000", 1);
  StartDaemon(StaticFlags());
  ::unsetenv("NOTIFY_SOCKET");
  ::unsetenv("WATCHDOG_USEC");
  int fed = 0;
  EXPECT_TRUE(Eventually([&] {
    std::array<char, 256> message{};
    const ssize_t got = ::recv(manager.get(), message.data(), message.size(), 0);
    if (got > 0) fed += std::string_view(message.data(), static_cast<size_t>(got)) == "WATCHDOG=1";
    return fed >= 3;
  }));
  // A loop that stands still sends no watchdog message, and the manager ends the daemon.
  daemon_->process().Signal(SIGSTOP);
  ASSERT_TRUE(Eventually([this] { return Stopped(); })) << "a thread may still be sending one";
  std::array<char, 256> message{};
  while (::recv(manager.get(), message.data(), message.size(), 0) > 0) {
  }
  EXPECT_FALSE(
      Eventually([&] { return ::recv(manager.get(), message.data(), message.size(), 0) > 0; },
                 milliseconds(500)));
  daemon_->process().Signal(SIGCONT);
}

// Files of the daemon that are endless, huge or not regular: they are reported and cost nothing.

constexpr int64_t kMemoryOfHostileFilesKib = int64_t{128} * 1024;

class HostileFilesTest : public DaemonTest {
 protected:
  // The reason why a daemon with these flags does not become ready.
  std::string WhyNot(const std::vector<std::string>& flags) {
    const auto daemon = DaemonProcess::Start(flags, Path("daemon.log"));
    return daemon.ok() ? "it is ready" : std::string(Message(daemon.status()));
  }
};

TEST_F(HostileFilesTest, AStateOfEightGibibytesIsPutAside) {
  const fs::path directory = fs::path(Path("state")) / "state";
  fs::create_directories(directory);
  // The daemon may read any of these.
  for (const fs::path& file :
       {directory / "state", directory / "state.previous", fs::path(RelaySocket() + ".calls")}) {
    std::ofstream(file).close();
    fs::resize_file(file, uintmax_t{8} << 30);
  }
  StartBoth();
  EXPECT_TRUE(Logged("state has more than 50331648 bytes; it is now " +
                     (directory / "state.unusable").string()));
  EXPECT_TRUE(Logged("state.previous has more than 50331648 bytes"));
  EXPECT_TRUE(Logged("calls has more than 2097152 bytes"));
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  EXPECT_EQ(CpusAtRuntime(running.container).size(), 1);
  EXPECT_TRUE(Eventually([&] { return fs::exists(directory / "state"); }));
  if (!SanitizedPrograms()) {
    EXPECT_LT(ProcStatus("VmHWM:"), kMemoryOfHostileFilesKib);
  }
}

TEST_F(HostileFilesTest, FilesOfTheCommandLineAreFiles) {
  StartRuntime();
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  fs::create_directory(Path("directory"));
  for (const std::string& path : {Path("fifo"), Path("directory"), std::string("/dev/zero")}) {
    EXPECT_THAT(WhyNot(Flags({"-config", path})), HasSubstr(path + " is not a regular file"));
    EXPECT_THAT(WhyNot(Flags({"-topology", path})), HasSubstr(path + " is not a regular file"));
  }
}

}  // namespace
}  // namespace resmgr::test
