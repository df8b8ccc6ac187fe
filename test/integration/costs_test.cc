// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "pkg/sys/unix_socket.h"
#include "test/integration/daemon_fixture.h"
#include "test/support/programs/programs.h"
#include "test/support/scrape/scrape.h"

namespace resmgr::test {
namespace {

// Measurements that need an idle machine: start-up time, idle wake-ups.

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
  // The best of some, of more on a busy machine, which delays a start; nothing hurries it.
  auto best = Clock::duration::max();
  auto loading = Clock::duration::max();
  // How long a program takes to be loaded is the machine's. Where that is long, the rest is, too:
  // 23 ms were measured where loading took 38.
  const auto in_time = [&] {
    return best <= kReadyLimit ||
           best - loading <= std::max<Clock::duration>(kAfterLoadingLimit, loading);
  };
  for (int i = 0; i < 5 || (i < 40 && !in_time()); ++i) {
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
  EXPECT_TRUE(in_time());
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

// The cost of containers for the daemon and for its scraper, on which docs/scale.md and the limits
// of charts/cri-resmgr are based.

constexpr int kFew = 100;
constexpr int kMany = 600;
constexpr int kVariables = 30;  // bytes of the environment
// The limit of docs/scale.md.
constexpr int64_t kMostOfOneKib = 16;
constexpr int64_t kMostKib = int64_t{64} << 10;
constexpr int kMostSeries = 600;

class ContainerCostTest : public DaemonTest {
 protected:
  void SetUp() override {
    StartRuntime();
    StartDaemon(Flags({"-policy", "topology-aware", "-reserved-resources", "CPU=1",
                       "-metrics-address", "127.0.0.1:0"}));
    ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
  }

  // Runs pods of one container until there are `containers`.
  void RunUntil(int containers) {
    CriClient client = Relayed();
    for (; running_ < containers; ++running_) {
      auto container = MakeBurstableContainer("main", {100});
      for (int i = 0; i < kVariables; ++i) {
        auto* const variable = container.add_envs();
        variable->set_key(fmt::format("VARIABLE_{}", i));
        variable->set_value(std::string(60, 'x'));
      }
      Run(client, MakeBurstablePod(fmt::format("pod-{}", running_)), container);
    }
  }
  std::string Metrics() {
    std::smatch port;
    const std::string log = daemon_->Log();
    if (!std::regex_search(log, port, std::regex("metrics are served on port ([0-9]+)"))) return "";
    return Scrape(std::stoi(port[1]));
  }
  // Whether use was sampled twice, as rates need.
  // Use and problems are looked at some seconds after the start; their series begin then.
  bool AllSeriesBegan() {
    const std::string text = Metrics();
    return text.find("cri_resmgr_numa_cpu_used{") != std::string::npos &&
           text.find("cri_resmgr_problems{") != std::string::npos;
  }
  // Lines of the metrics that are samples.
  int Series() {
    const std::string text = Metrics();
    const std::string samples = std::regex_replace(text, std::regex("#[^\n]*\n"), "");
    const size_t body = samples.find("\r\n\r\n");
    if (body == std::string::npos) return 0;
    return static_cast<int>(std::ranges::count(samples.substr(body + 4), '\n'));
  }

 private:
  int running_ = 0;
};

TEST_F(ContainerCostTest, MemoryOfOneIsBounded) {
  RunUntil(kFew);
  const int64_t few = ProcStatus("VmRSS:");
  RunUntil(kMany);
  const int64_t many = ProcStatus("VmRSS:");
  fmt::print("{} containers: {} KiB, {}: {} KiB, so {:.1f} KiB for each\n", kFew, few, kMany, many,
             static_cast<double>(many - few) / (kMany - kFew));
  EXPECT_GT(few, 0);
  if (SanitizedPrograms()) return;
  EXPECT_LT(many - few, kMostOfOneKib * (kMany - kFew));
  EXPECT_LT(ProcStatus("VmHWM:"), kMostKib);
}

// Prometheus keeps each series of each of thousands of nodes.
TEST_F(ContainerCostTest, SeriesDoNotGrowWithContainers) {
  RunUntil(kFew);
  ASSERT_TRUE(Logged("metrics are served on port"));
  ASSERT_TRUE(Eventually([this] { return AllSeriesBegan(); })) << Metrics();
  const int few = Series();
  RunUntil(2 * kFew);
  fmt::print("{} series\n", few);
  EXPECT_GT(few, 100);
  EXPECT_LT(few, kMostSeries);
  EXPECT_EQ(Series(), few);
}

// Messages of any size pass, and the daemon's memory does not grow with them.

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kHuge = 64 * kMiB;
constexpr int64_t kPeakLimitKib = int64_t{20} * 1024;

class BigMessagesTest : public DaemonTest {
 protected:
  void SetUp() override { StartBoth(); }
  void TearDown() override {
    if (SanitizedPrograms() || !daemon_) return;
    EXPECT_LT(ProcStatus("VmHWM:"), kPeakLimitKib) << "KiB at the most";
  }
};

TEST_F(BigMessagesTest, HugeReplyPasses) {
  const CallResult result = Relayed().Call("/test.Echo/Sized", {std::to_string(kHuge)});
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  ASSERT_EQ(result.messages.size(), 1u);
  EXPECT_EQ(result.messages[0].size(), kHuge);
}

TEST_F(BigMessagesTest, HugeRequestPasses) {
  std::string message(kHuge, 'x');
  for (size_t i = 0; i < message.size(); i += 4096)
    message[i] = static_cast<char>('a' + i / 4096 % 26);
  const CallResult result = Relayed().Call("/test.Echo/Unary", {message});
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  EXPECT_TRUE(result.messages.at(0) == message);
}

TEST_F(BigMessagesTest, ManyBigRepliesAtOncePass) {
  CriClient client = Relayed();
  std::vector<std::unique_ptr<PendingCall>> calls;
  calls.reserve(32);
  for (int i = 0; i < 32; ++i)
    calls.push_back(client.Start("/test.Echo/Sized", std::to_string(4 * kMiB)));
  for (const auto& call : calls) {
    const auto result = call->Wait(SanitizedPrograms() ? 4 * kPatience : kPatience);
    ASSERT_TRUE(result.has_value());
    ASSERT_TRUE(result->status.ok()) << result->status.error_message();
    EXPECT_EQ(result->messages.at(0).size(), 4 * kMiB);
  }
}

TEST_F(BigMessagesTest, SlowReaderSlowsTheRuntimeDown) {
  CriClient client = Relayed();
  const auto call = client.Start("/test.Echo/Sized", std::to_string(kMiB),
                                 {.metadata = {{"x-count", "100"}}, .pause_after = 1});
  ASSERT_TRUE(call->WaitForMessages(1, kPatience));
  // Other calls are not delayed by it, on the same connection or another one.
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(client.Call("/runtime.v1.RuntimeService/Version", {""}).status.ok());
  }
  ASSERT_TRUE(Relayed().Call("/test.Echo/Sized", {std::to_string(8 * kMiB)}).status.ok());
  call->ResumeReading();
  const auto result = call->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok());
  EXPECT_EQ(result->messages.size(), 100u);
}

// Without a policy: for one the daemon also lists the runtime itself, and then holds the list.
class LongListTest : public BigMessagesTest {
 protected:
  void SetUp() override {
    StartRuntime();
    StartDaemon(Flags({}));
  }
};

TEST_F(LongListTest, Passes) {
  runtime_.WithStore([](CriStore& store) {
    cri::RunPodSandboxRequest pod;
    *pod.mutable_config() = MakeBestEffortPod("many");
    cri::RunPodSandboxResponse pod_response;
    store.RunPodSandbox(pod, &pod_response);
    for (uint32_t i = 0; i < 1000; ++i) {
      cri::CreateContainerRequest request;
      request.set_pod_sandbox_id(pod_response.pod_sandbox_id());
      *request.mutable_config() = MakeContainer({.name = "c", .attempt = i});
      // 17 MiB together: more than gRPC's 4 and kubelet's 16 MiB.
      (*request.mutable_config()->mutable_annotations())["filler"] = std::string(17'800, 'x');
      cri::CreateContainerResponse response;
      store.CreateContainer(request, &response);
    }
  });
  cri::ListContainersResponse list;
  ASSERT_TRUE(Relayed().Unary("ListContainers", cri::ListContainersRequest(), &list).ok());
  EXPECT_EQ(list.containers_size(), 1000);
  EXPECT_GT(list.ByteSizeLong(), 17 * kMiB);
}

// A request that is read has to be held whole, and is still passed on.
class BigCreateTest : public DaemonTest {};

TEST_F(BigCreateTest, BigCreateRequestIsPlaced) {
  CriClient client = Started();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("big")));
  auto config = MakeGuaranteedContainer("main", 2);
  (*config.mutable_annotations())["filler"] = std::string(12 * kMiB, 'x');
  const std::string id = Ok(client.CreateContainer(pod, MakeGuaranteedPod("big"), config));
  EXPECT_EQ(CpusAtRuntime(id).size(), 2);
  EXPECT_EQ(runtime_.FindContainer(id)->config.annotations().at("filler").size(), 12 * kMiB);
}

}  // namespace
}  // namespace resmgr::test
