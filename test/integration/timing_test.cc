// SPDX-License-Identifier: Apache-2.0
// Measurements that need an idle machine: start-up time, idle wake-ups.
#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "pkg/sys/unix_socket.h"
#include "test/integration/daemon_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr milliseconds kReadyLimit{30};
constexpr std::chrono::milliseconds kAfterLoadingLimit{15};
constexpr seconds kIdle{3};

class TimingTest : public DaemonTest {
 protected:
  // The time to load the program with all its libraries, until it has printed its version and
  // ended.
  Clock::duration TimeOfLoading() {
    const auto start = Clock::now();
    const auto process = ChildProcess::Start({Program("cri-resmgr"), "-version"}, Path("version"));
    EXPECT_THAT(process, IsOk());
    if (process.ok()) {
      EXPECT_THAT((*process)->Wait(kPatience), IsOk());
    }
    return Clock::now() - start;
  }
  // Sums over all threads how often each was woken.
  int64_t Wakeups() {
    int64_t total = 0;
    const std::string tasks = "/proc/" + std::to_string(pid()) + "/task";
    for (const auto& thread : std::filesystem::directory_iterator(tasks)) {
      std::ifstream file(thread.path() / "status");
      for (std::string word; file >> word;) {
        int64_t value = 0;
        if (word == "voluntary_ctxt_switches:" && file >> value) total += value;
      }
    }
    return total;
  }
};

TEST_F(TimingTest, ServesWithinThirtyMillisecondsOfItsStart) {
  if (SanitizedPrograms()) GTEST_SKIP() << "times mean nothing under a sanitizer";
  StartRuntime();
  std::vector<std::string> argv = StaticFlags();
  argv.insert(argv.begin(), Program("cri-resmgr"));
  // The best of some: a busy machine delays a start, nothing hurries it.
  auto best = Clock::duration::max();
  auto loading = Clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    loading = std::min(loading, TimeOfLoading());
    const auto start = Clock::now();
    auto process = ChildProcess::Start(argv, Path("start.log"));
    ASSERT_THAT(process, IsOk());
    // Looks more often than Eventually does: its pauses would count as start-up time.
    while (!ConnectUnix(RelaySocket()).ok() && Clock::now() < start + kPatience) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    ASSERT_TRUE(Relayed().Call("/runtime.v1.RuntimeService/Version", {""}).status.ok());
    best = std::min(best, Clock::now() - start);
    (*process)->Signal(SIGTERM);
    ASSERT_THAT((*process)->Wait(kPatience), IsOk());
  }
  const std::chrono::duration<double, std::milli> took = best;
  const std::chrono::duration<double, std::milli> more = best - loading;
  std::printf("serves %.1f ms after its start, %.1f ms after it is loaded\n", took.count(),
              more.count());
  // How long a program takes to be loaded is the machine's.
  EXPECT_TRUE(best <= kReadyLimit || best - loading <= kAfterLoadingLimit);
}

TEST_F(TimingTest, IdleDaemonDoesNotWakeUp) {
  if (SanitizedPrograms())
    GTEST_SKIP() << "as the optimized one does; ThreadSanitizer has a thread that wakes up";
  CriClient client = Started();
  Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  // A stream that stays open without messages.
  const auto events = client.Start("GetContainerEvents", cri::GetEventsRequest());
  ASSERT_TRUE(runtime_.WaitForCalls("GetContainerEvents", 1));
  ASSERT_TRUE(client.Call("/runtime.v1.RuntimeService/Version", {""}).status.ok());
  // Work that the calls left behind ends first: the state is synced a second later, and the runtime
  // is listed once more some seconds after the connection. After that the test expects that nothing
  // happens, so it has no condition to wait for.
  EXPECT_TRUE(Eventually([&] {
    const int64_t before = Wakeups();
    std::this_thread::sleep_for(kIdle);
    return Wakeups() == before;
  }));
}

}  // namespace
}  // namespace resmgr::test
