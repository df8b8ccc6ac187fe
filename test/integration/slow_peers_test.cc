// SPDX-License-Identifier: Apache-2.0
// Clients and runtimes that are slow, silent or hostile: others are served meanwhile as if they
// were alone, and the daemon's memory stays within what pkg/adr/0002-http2.md promises.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unix_socket.h"
#include "test/integration/daemon_fixture.h"
#include "test/support/gzip.h"
#include "test/support/hostile/attacks.h"
#include "test/support/hostile/raw_client.h"
#include "test/support/programs/programs.h"
#include "test/support/raw_http2/raw_http2.h"

namespace resmgr::test {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

// The limit of the median time of another client's call.
constexpr milliseconds kUndisturbed{50};
// The limit of pkg/adr/0002-http2.md: 128 MiB that peers make the daemon keep, and its own memory.
constexpr int64_t kMemoryLimitKib = (128 + 32) * 1024;

class SlowPeersTest : public DaemonTest {
 protected:
  ~SlowPeersTest() override {
    stop_ = true;
    for (std::thread& thread : threads_)
      thread.join();
    daemon_.reset();
  }

  // Repeats `disturb` on a thread of its own until the test ends.
  void Meanwhile(std::function<bool()> disturb) {
    threads_.emplace_back([this, disturb = std::move(disturb)] {
      while (!stop_ && disturb())
        ++disturbances_;
    });
  }

  // Waits until the functions given to Meanwhile have run `count` times in all.
  bool WaitForDisturbances(int count) {
    return Eventually([&] { return disturbances_ >= count; });
  }

  // A client that keeps sending this and reads nothing.
  void Flood(const std::string& once, const std::string& again) {
    Meanwhile([this, once, again, client = std::shared_ptr<RawClient>()]() mutable {
      if (client == nullptr) {
        client = std::make_shared<RawClient>(RelaySocket());
        if (!client->Start() || !client->Send(once)) client = nullptr;
      } else if (!client->Send(again, milliseconds(200))) {
        client = nullptr;
        std::this_thread::sleep_for(milliseconds(1));
      }
      return true;
    });
  }

  // Checks the median time of some calls of an unrelated client.
  void ExpectOthersUndisturbed(milliseconds limit = kUndisturbed) {
    CriClient other = Relayed();
    std::string error;
    // A connection that its client gave up in the middle of an attack is tried again; times are
    // judged only after it.
    const auto served = [&] {
      return (error = other.Call(kVersion, {""}).status.error_message()).empty();
    };
    ASSERT_TRUE(SanitizedPrograms() ? Eventually(served, 3 * kPatience) : served()) << error;
    std::vector<std::chrono::steady_clock::duration> times;
    for (int i = 0; i < 21; ++i) {
      const auto start = std::chrono::steady_clock::now();
      ASSERT_TRUE(other.Call(kVersion, {""}).status.ok()) << i;
      times.push_back(std::chrono::steady_clock::now() - start);
      std::this_thread::sleep_for(milliseconds(5));
    }
    std::ranges::sort(times);
    const auto median = std::chrono::duration<double, std::milli>(times[times.size() / 2]);
    if (!SanitizedPrograms()) {
      EXPECT_LT(median, limit) << "ms";
    }
    RecordProperty("median_ms", std::to_string(median.count()));
    std::printf("another client's Version: median %.2f ms, worst %.2f ms\n", median.count(),
                std::chrono::duration<double, std::milli>(times.back()).count());
  }

  void ExpectBoundedMemory() {
    std::printf("peak of the daemon's memory: %lld KiB\n",
                static_cast<long long>(ProcStatus("VmHWM:")));
    if (!SanitizedPrograms()) {
      EXPECT_LT(ProcStatus("VmHWM:"), kMemoryLimitKib) << "KiB at the most";
    }
  }

  std::vector<std::thread> threads_;
  std::atomic<bool> stop_{false};
  std::atomic<int> disturbances_{0};
};

constexpr size_t kMebi = size_t{1} << 20;
const std::string kRunPod = "/runtime.v1.RuntimeService/RunPodSandbox";
const std::string kCreate = "/runtime.v1.RuntimeService/CreateContainer";
const std::string kEverything = Settings(4, 0x7fffffff) + Frame(8, 0, 0, Number(0x7fff0000));

TEST_F(SlowPeersTest, ClientThatNeverReads) {
  StartBoth();
  RawClient client(RelaySocket());
  ASSERT_TRUE(client.Start(kEverything));
  for (uint32_t i = 0; i < 64; ++i)
    ASSERT_TRUE(client.Send(Request(2 * i + 1, "/test.Echo/Sized", std::to_string(4 * kMebi))));
  ExpectOthersUndisturbed();
  ExpectBoundedMemory();
}

// The ninth call of the same client is served.
TEST_F(SlowPeersTest, EightUnreadRepliesDoNotHoldTheNinth) {
  CriClient client = Started();
  std::vector<std::unique_ptr<PendingCall>> unread;
  unread.reserve(8);
  for (int i = 0; i < 8; ++i) {
    unread.push_back(client.Start("/test.Echo/Sized", std::to_string(kMebi),
                                  {.metadata = {{"x-count", "20"}}, .pause_after = 1}));
  }
  for (const auto& call : unread)
    ASSERT_TRUE(call->WaitForMessages(1, kPatience));
  for (int i = 0; i < 5; ++i) {
    const auto ninth = client.Start("/test.Echo/Sized", std::to_string(2 * kMebi));
    const auto result = ninth->Wait(kPatience);
    ASSERT_TRUE(result.has_value()) << i;
    ASSERT_TRUE(result->status.ok()) << result->status.error_message();
  }
  for (const auto& call : unread)
    call->ResumeReading();
  for (const auto& call : unread) {
    const auto result = call->Wait(kPatience);
    ASSERT_TRUE(result.has_value());
    EXPECT_TRUE(result->status.ok());
  }
}

// Each SETTINGS frame once took a walk over all streams.
TEST_F(SlowPeersTest, FloodOfSettingsOnAThousandStreams) {
  StartBoth();
  std::string streams;
  for (uint32_t i = 0; i < 1000; ++i)
    streams += RequestHeaders(2 * i + 1, "/test.Echo/Unary");
  std::string flood;
  for (uint32_t i = 0; i < 1000; ++i)
    flood += Settings(4, 1000 + i % 2);
  Flood(streams, flood);
  ASSERT_TRUE(WaitForDisturbances(3));
  ExpectOthersUndisturbed();
  ExpectBoundedMemory();
}

TEST_F(SlowPeersTest, FloodOfPings) {
  StartBoth();
  std::string flood;
  for (int i = 0; i < 1000; ++i)
    flood += Frame(6, 0, 0, "12345678");
  for (int i = 0; i < 4; ++i)
    Flood("", flood);
  ASSERT_TRUE(WaitForDisturbances(20));
  ExpectOthersUndisturbed();
  ExpectBoundedMemory();
}

// More than any limit of connections: a new client always gets in, and soon.
TEST_F(SlowPeersTest, FloodOfIdleClients) {
  RaiseFileLimit();
  StartBoth();
  CriClient first = Relayed();
  ASSERT_TRUE(first.Call(kVersion, {""}).status.ok());
  std::vector<RawClient> idle;
  for (int i = 0; i < 1500; ++i) {
    idle.emplace_back(RelaySocket());
    ASSERT_TRUE(idle.back().connected()) << i;
    if (i % 2 == 0) {
      ASSERT_TRUE(idle.back().Start());
    }
  }
  ExpectOthersUndisturbed();
  // The connection that was used meanwhile is not the one that is closed.
  EXPECT_TRUE(first.Call(kVersion, {""}).status.ok());
  EXPECT_TRUE(Logged("clients are connected"));
  const std::string log = daemon_->Log();
  size_t lines = 0;
  for (size_t at = 0; (at = log.find("clients are connected", at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_LE(lines, 20U);
  EXPECT_LE(OpenFiles(), 1200);
  ExpectBoundedMemory();
}

// Files may run out for other reasons than clients.
TEST_F(SlowPeersTest, NewClientsGetInWhenFilesHaveRunOut) {
  RaiseFileLimit();
  StartBoth();
  const rlimit few{200, 200};
  ASSERT_EQ(::prlimit(pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  std::vector<RawClient> idle;
  for (int i = 0; i < 400; ++i) {
    idle.emplace_back(RelaySocket());
    ASSERT_TRUE(idle.back().connected()) << i;
  }
  for (int i = 0; i < 5; ++i) {
    CriClient late = Relayed();
    EXPECT_TRUE(Eventually([&] { return late.Call(kVersion, {""}).status.ok(); })) << i;
  }
  const std::string log = daemon_->Log();
  size_t lines = 0;
  for (size_t at = 0; (at = log.find("cannot accept", at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_LE(lines, 20U);
}

TEST_F(SlowPeersTest, SilentClientsDoNotCloseTheAdminAndConfigSockets) {
  RaiseFileLimit();
  StartBoth();
  for (const std::string& socket : {Path("admin.sock"), Path("config.sock")}) {
    std::vector<RawClient> silent;
    for (int i = 0; i < 200; ++i) {
      silent.emplace_back(socket);
      ASSERT_TRUE(silent.back().connected()) << i;
    }
    for (int i = 0; i < 5; ++i) {
      const CallResult result = CriClient(socket).Call("/test.Nothing/Known", {""});
      EXPECT_EQ(result.status.error_code(), grpc::StatusCode::UNIMPLEMENTED)
          << socket << ": " << result.status.error_message();
    }
  }
}

// A runtime that opens no window but for the first few bytes of a call, which it needs to answer
// short ones. It never answers a creation.
class RuntimeWithLittleWindowTest : public SlowPeersTest {
 protected:
  void Start(const std::vector<std::string>& flags) {
    auto runtime =
        RawRuntime::Start(RuntimeSocket(), {.answer =
                                                [](uint32_t stream, const std::string& path) {
                                                  if (path == kRunPod)
                                                    return Answer(stream, "\x0a\x04pod1");
                                                  if (path == kCreate) return std::string();
                                                  if (path == "/test.Echo/Unary")
                                                    return std::string();
                                                  return Answer(stream, "");
                                                },
                                            .greeting = Settings(4, 4096),
                                            .opens_windows = false});
    ASSERT_THAT(runtime, IsOk());
    raw_ = *std::move(runtime);
    StartDaemon(flags);
  }
  void StartPlacing() {
    Start(StaticFlags());
    ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
    CriClient client = Relayed();
    const std::string pod = Ok(client.RunPod(MakeBestEffortPod("big")));
    ASSERT_EQ(pod, "pod1");
  }
  static std::string BigCreate(size_t size, int number) {
    cri::ContainerConfig config = MakeBestEffortContainer("c" + std::to_string(number));
    (*config.mutable_annotations())["filler"] = std::string(size, 'x');
    return CreateRequest("pod1", MakeBestEffortPod("big"), config).SerializeAsString();
  }

  std::unique_ptr<RawRuntime> raw_;
};

// Calls that are opened and given up again, as fast as a client can.
TEST_F(RuntimeWithLittleWindowTest, FloodOfCallsThatAreGivenUp) {
  Start(Flags({}));
  Meanwhile([this, client = std::shared_ptr<RawClient>(), stream = 1U]() mutable {
    if (client == nullptr) {
      client = std::make_shared<RawClient>(RelaySocket());
      stream = 1;
      if (!client->Start()) client = nullptr;
      return true;
    }
    std::string flood;
    for (int i = 0; i < 500; ++i, stream += 2)
      flood += RequestHeaders(stream, "/test.Echo/Unary") + Frame(3, 0, stream, Number(8));
    if (!client->Send(flood, seconds(1)) || stream > 0x3fffffff) client = nullptr;
    if (client != nullptr) (void)client->Read(milliseconds(0));
    return true;
  });
  ASSERT_TRUE(WaitForDisturbances(20));
  ExpectOthersUndisturbed();
  ExpectBoundedMemory();
}

TEST_F(RuntimeWithLittleWindowTest, HeldRequestsAreBounded) {
  StartPlacing();
  const std::string create = BigCreate(15 * kMebi, 0);
  std::vector<std::string> bodies;
  for (const uint32_t stream : {1U, 3U, 5U, 7U})
    bodies.push_back(Body(stream, create));
  std::atomic<int> refused = 0;
  std::atomic<int> sent = 0;
  for (int i = 0; i < 12; ++i) {
    Meanwhile([&, i] {
      RawClient client(RelaySocket());
      EXPECT_TRUE(client.Start());
      for (uint32_t call = 0; call < 4; ++call) {
        (void)client.Send(RequestHeaders(2 * call + 1, kCreate));
        // A proper client never waits long for windows: it gets enough of them, or a refusal.
        const std::string& body = bodies[call];
        for (size_t at = 0; at < body.size() && !stop_; at += 64 * 1024) {
          if (!client.Send(std::string_view(body).substr(at, 64 * 1024), seconds(2))) break;
          // Taking the windows keeps the socket from being full.
          const std::string read = client.Read(milliseconds(at % (128 * 1024) == 0 ? 1 : 0));
          if (read.find("no memory") != std::string::npos ||
              read.find("large requests") != std::string::npos) {
            ++refused;
            break;
          }
        }
        ++sent;
      }
      while (!stop_)
        (void)client.Read(milliseconds(20));
      return i < 0;
    });
  }
  ASSERT_TRUE(Eventually([&] { return sent >= 12; }, seconds(60)));
  ExpectOthersUndisturbed();
  ASSERT_TRUE(Eventually([&] { return sent == 48; }, seconds(60))) << sent;
  EXPECT_GT(refused, 0);
  ExpectBoundedMemory();
}

TEST_F(RuntimeWithLittleWindowTest, GzipBombsAreBounded) {
  StartPlacing();
  std::string bombs;
  for (int i = 0; i < (SanitizedPrograms() ? 24 : 64); ++i) {
    const auto stream = static_cast<uint32_t>(2 * i + 1);
    bombs += RequestHeaders(stream, kCreate, {{"grpc-encoding", "gzip"}}) +
             Body(stream, Gzip(BigCreate(15 * kMebi, i)), true);
  }
  RawClient client(RelaySocket());
  ASSERT_TRUE(client.Start());
  ASSERT_TRUE(client.Send(bombs));
  ExpectOthersUndisturbed();
  EXPECT_NE(client.ReadUntil("large requests").find("large requests"), std::string::npos);
  ExpectBoundedMemory();
}

// One byte of a header block may stand for four kilobytes.
TEST_F(RuntimeWithLittleWindowTest, HeaderFieldsThatGrowAreBounded) {
  StartPlacing();
  const std::string value(3900, 'x');
  for (int i = 0; i < (SanitizedPrograms() ? 1 : 4); ++i) {
    Meanwhile([this, value] {
      RawClient client(RelaySocket());
      EXPECT_TRUE(client.Start());
      // The first one is put into the table: a literal with incremental indexing, 3900 = 127 +
      // 3773.
      std::string block = Fields(RequestFields(kCreate)) + "\x40\x06" + "x-long" + "\x7f" +
                          static_cast<char>(0x80 | (3773 & 0x7f)) + static_cast<char>(3773 >> 7) +
                          value;
      std::string all = Frame(1, 4, 1, block);
      const std::string again = Fields(RequestFields(kCreate)) + std::string(60, '\xbe');
      for (uint32_t call = 1; call < 1000; ++call)
        all += Frame(1, 4, 2 * call + 1, again);
      (void)client.Send(all);
      while (!stop_)
        (void)client.Read(milliseconds(20));
      return false;
    });
  }
  ASSERT_TRUE(Logged("requests at once")) << daemon_->Log();
  ExpectOthersUndisturbed();
  ExpectBoundedMemory();
}

// Its clients' requests stay in their sockets.
TEST_F(RuntimeWithLittleWindowTest, PassingRequestsOfManyClientsAreBounded) {
  RaiseFileLimit();
  Start(Flags({}));
  std::string upload;
  for (uint32_t i = 0; i < 8; ++i) {
    upload += RequestHeaders(2 * i + 1, "/test.Echo/Unary") +
              Body(2 * i + 1, std::string(size_t{250} * 1024, 'x'));
  }
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.emplace_back(RelaySocket());
    ASSERT_TRUE(clients.back().Start());
  }
  for (RawClient& client : clients)
    (void)client.Send(upload, milliseconds(50));
  ExpectOthersUndisturbed();
  ExpectBoundedMemory();
}

// An answer that a runtime must not give becomes an error that every client understands.
class MalformedRuntimeTest : public SlowPeersTest {
 protected:
  // The status of a call that is answered with these frames.
  grpc::Status CallAnsweredWith(const std::function<std::string(uint32_t)>& frames) {
    auto runtime = RawRuntime::Start(
        RuntimeSocket(),
        {.answer = [frames](uint32_t stream, const std::string&) { return frames(stream); },
         .greeting = Frame(4, 0, 0, "")});
    EXPECT_THAT(runtime, IsOk());
    if (!runtime.ok()) return {};
    if (daemon_ == nullptr) StartDaemon(Flags({}));
    return Relayed().Call(kVersion, {""}, {.timeout = kPatience}).status;
  }
};

TEST_F(MalformedRuntimeTest, BecomesInternal) {
  const std::string begin = Fields({{":status", "200"}, {"content-type", "application/grpc"}});
  const std::string end = Fields({{"grpc-status", "0"}});
  const std::string message(5, '\0');
  const std::function<std::string(uint32_t)> answers[] = {
      // A body before its header fields, with a proper end or its own.
      [&](uint32_t id) { return Frame(0, 0, id, message) + Frame(1, 5, id, begin + end); },
      [&](uint32_t id) { return Frame(0, 1, id, message); },
      [&](uint32_t id) { return Frame(0, 1, id, ""); },
      // No trailers.
      [&](uint32_t id) { return Frame(1, 4, id, begin) + Frame(0, 1, id, message); },
      [&](uint32_t id) { return Frame(1, 4, id, begin) + Frame(0, 1, id, ""); },
  };
  for (const auto& answer : answers) {
    const grpc::Status status = CallAnsweredWith(answer);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL) << status.error_message();
    EXPECT_THAT(status.error_message(), testing::HasSubstr("the runtime"));
  }
}

// The memory that hostile clients can make the daemon hold in all ways at once. test/bench shows
// each alone.
class AllAttacksTest : public SlowPeersTest {
 protected:
  void SetUp() override {
    RaiseFileLimit();
    auto runtime = StartHostileRuntime(RuntimeSocket());
    ASSERT_THAT(runtime, IsOk());
    hostile_ = *std::move(runtime);
    StartDaemon(StaticFlags());
    ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
    ASSERT_EQ(Relayed().RunPod(MakeBestEffortPod("big")).value_or(""), kHostilePod);
  }
  // Waits until the daemon's memory hardly grows, or for the longest time of a test.
  void WaitForPeak() {
    constexpr int64_t kHardlyKib = 1024;
    int64_t before = -kHardlyKib;
    for (int i = 0; i < 15; ++i) {
      std::this_thread::sleep_for(seconds(1));
      const int64_t peak = ProcStatus("VmHWM:");
      if (peak - std::exchange(before, peak) < kHardlyKib) return;
    }
  }

  std::unique_ptr<RawRuntime> hostile_;
};

TEST_F(AllAttacksTest, TogetherAreBounded) {
  // With sanitizers the daemon is many times slower than the attackers: one thread of each attack
  // is enough to keep it busy, and others are served after the attack.
  const int threads = SanitizedPrograms() ? 1 : std::numeric_limits<int>::max();
  std::optional<AttackRun> run(std::in_place, Attacks(), RelaySocket(), threads);
  WaitForPeak();
  if (SanitizedPrograms()) run.reset();
  // Three dozen attacking threads leave others little of two processors.
  ExpectOthersUndisturbed(seconds(1));
  ExpectBoundedMemory();
}

// Plugins that ask for changes as fast as they can: other clients and one honest plugin do not
// notice.

using Clock = std::chrono::steady_clock;

constexpr int kThreads = 4;
constexpr int64_t kMemoryOfFloodKib = int64_t{128} * 1024;
constexpr milliseconds kUnderFlood{300};

class NriFloodTest : public SlowPeersTest {
 protected:
  void SetUp() override {
    StartRuntime();
    const std::string file = Path("config.yaml");
    std::ofstream(file) << "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
                           "nri: {Host: {Socket: "
                        << Path("nri.sock") << ", PluginPath: disabled}}\n";
    StartDaemon(Flags({"-config", file}));
    ASSERT_TRUE(Logged("serving NRI plugins"));
  }

  // Plugins that flood, of which every other one sends long requests.
  void FloodWith(int plugins, int thread, const std::string& container) {
    Meanwhile([this, plugins, thread, container] {
      EventLoop loop;
      std::vector<std::unique_ptr<nri::test::FakePlugin>> all;
      for (int i = 0; i < plugins; ++i) {
        auto socket = ConnectUnix(Path("nri.sock"));
        if (!socket.ok()) return false;
        all.push_back(std::make_unique<nri::test::FakePlugin>(
            loop, *std::move(socket),
            nri::test::FakePluginOptions{.index = "20",
                                         .name = fmt::format("flood{}-{}", thread, i)}));
      }
      const auto flood = loop.Every(milliseconds(1), [&] {
        for (size_t i = 0; i < all.size(); ++i) {
          nri::test::FakePlugin& plugin = *all[i];
          if (!plugin.synchronized || plugin.lost) continue;
          plugin.update_answers.clear();
          plugin.UpdateContainers({Update(container, i % 2 == 1)}, i % 2 == 1 ? 1 : 50);
          ++disturbances_;
        }
      });
      const auto end = loop.Every(milliseconds(10), [&] {
        if (stop_) loop.Stop();
      });
      loop.Run();
      return false;
    });
  }
  static api::ContainerUpdate Update(const std::string& container, bool is_long) {
    api::ContainerUpdate update;
    update.set_container_id(is_long ? std::string(size_t{1} << 20, 'x') : container);
    update.mutable_linux()->mutable_resources()->mutable_cpu()->mutable_shares()->set_value(512);
    return update;
  }
};

TEST_F(NriFloodTest, SixtyFourPluginsDelayNoOtherClient) {
  // With sanitizers, where no time is judged, a few keep the daemon as busy.
  const int plugins = SanitizedPrograms() ? 8 : 64;
  const int rounds = SanitizedPrograms() ? 1 : 5;
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  for (int i = 0; i < kThreads; ++i)
    FloodWith(plugins / kThreads, i, running.container);
  ASSERT_TRUE(WaitForDisturbances(2000));
  EXPECT_TRUE(Logged("floods this daemon"));
  std::this_thread::sleep_for(seconds(2));
  // Each round's slowest call. Other work on the machine delays some of them, a flood that delays
  // calls would delay each.
  milliseconds quietest = milliseconds::max();
  for (int i = 0; i < rounds; ++i) {
    const std::string name = fmt::format("meanwhile{}", i);
    milliseconds worst{0};
    const auto timed = [&worst](const auto& call) {
      const auto start = Clock::now();
      call();
      worst = std::max(worst, std::chrono::duration_cast<milliseconds>(Clock::now() - start));
    };
    StatusOr<std::string> pod = Unavailable("");
    StatusOr<std::string> container = Unavailable("");
    timed([&] { pod = client.RunPod(MakeBestEffortPod(name)); });
    ASSERT_THAT(pod, IsOk());
    timed([&] {
      container =
          client.CreateContainer(*pod, MakeBestEffortPod(name), MakeBestEffortContainer("main"));
    });
    ASSERT_THAT(container, IsOk());
    timed([&] { EXPECT_THAT(client.StartContainer(*container), IsOk()); });
    std::printf("the slowest call under a flood: %lld ms\n", static_cast<long long>(worst.count()));
    quietest = std::min(quietest, worst);
  }
  if (!SanitizedPrograms()) {
    EXPECT_LT(quietest, kUnderFlood);
    EXPECT_LT(ProcStatus("VmHWM:"), kMemoryOfFloodKib);
  }
  ExpectOthersUndisturbed(kUnderFlood);
  ExpectBoundedMemory();
}

}  // namespace
}  // namespace resmgr::test
