// SPDX-License-Identifier: Apache-2.0
// Clients that do not speak the protocol, speak half of it, or come in masses.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pkg/sys/unique_fd.h"
#include "test/integration/control_fixture.h"
#include "test/support/programs/programs.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// An HTTP/2 frame with any header.
std::string Frame(uint32_t length, uint8_t type, uint8_t flags, uint32_t stream,
                  const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0})
    frame += static_cast<char>(length >> shift & 0xff);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0})
    frame += static_cast<char>(stream >> shift & 0xff);
  return frame + payload;
}

const std::string kSettings = Frame(0, 4, 0, 0, "");

// A request of one message, with every header spelled out and never put into a table.
std::string Request(uint32_t stream, const std::string& path, const std::string& message) {
  std::string headers;
  const auto add = [&headers](std::string_view name, std::string_view value) {
    headers += '\0';
    for (const std::string_view text : {name, value}) {
      headers += static_cast<char>(text.size());
      headers += text;
    }
  };
  add(":method", "POST");
  add(":scheme", "http");
  add(":path", path);
  add(":authority", "localhost");
  add("content-type", "application/grpc");
  add("te", "trailers");
  std::string body("\0\0\0", 3);
  body += static_cast<char>(message.size() >> 8);
  body += static_cast<char>(message.size());
  body += message;
  add("content-length", std::to_string(body.size()));
  return Frame(static_cast<uint32_t>(headers.size()), 1, 4, stream, headers) +
         Frame(static_cast<uint32_t>(body.size()), 0, 1, stream, body);
}

class HostileTest : public DaemonTest {
 protected:
  void SetUp() override { StartBoth(); }
  void TearDown() override {
    if (!daemon_) return;
    EXPECT_TRUE(daemon_->process().Running());
    EXPECT_TRUE(Served());
  }

  bool Served() { return Relayed().Call(kVersion, {""}).status.ok(); }

  UniqueFd Connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = RelaySocket();
    std::memcpy(address.sun_path, path.data(), path.size());
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      fd.Reset();
    }
    return fd;
  }
  static void Send(const UniqueFd& fd, const std::string& bytes) {
    // The other side may have closed already: that is an outcome, not an error.
    (void)!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Reads until the other side closes.
  static bool ClosedByPeer(const UniqueFd& fd) {
    while (true) {
      pollfd state{fd.get(), POLLIN, 0};
      if (::poll(&state, 1, static_cast<int>(kPatience.count())) != 1) return false;
      char buffer[4096];
      if (::read(fd.get(), buffer, sizeof(buffer)) <= 0) return true;
    }
  }
};

TEST_F(HostileTest, ClosesConnectionsThatAreNotHttp2) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), std::string(1000, '\0'),
        std::string("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"), std::string(200'000, 'x')}) {
    const UniqueFd fd = Connect();
    ASSERT_TRUE(fd.valid());
    Send(fd, bytes);
    EXPECT_TRUE(ClosedByPeer(fd));
  }
}

TEST_F(HostileTest, ClosesConnectionsThatBreakTheProtocol) {
  const std::string broken[] = {
      Frame(0xffffff, 0, 0, 1, std::string(100'000, 'x')),  // longer than allowed
      Frame(8, 0, 0, 1, "8 bytes "),                        // data of a stream that is not open
      Frame(4, 1, 4, 1, "\xff\xff\xff\xff"),                // headers that are not HPACK
      Frame(4, 1, 4, 2, "\x82\x84\x86\x41"),                // a stream of the wrong parity
      Frame(3, 4, 0, 0, "abc"),                             // settings of a wrong length
      Frame(4, 8, 0, 0, std::string(4, '\0')),              // a window that grows by nothing
      Frame(5, 9, 4, 1, "a b c"),                           // a continuation of nothing
  };
  for (const std::string& bytes : broken) {
    const UniqueFd fd = Connect();
    ASSERT_TRUE(fd.valid());
    Send(fd, kPreface + kSettings + bytes);
    ::shutdown(fd.get(), SHUT_WR);
    EXPECT_TRUE(ClosedByPeer(fd));
  }
}

// The client may open endless windows; replies that wait for it stay with the runtime nevertheless.
TEST_F(HostileTest, ClientThatDoesNotReadCostsNoMemoryAndGetsEverythingLater) {
  constexpr int kReplies = 16;
  constexpr size_t kReplySize = size_t{4} << 20;
  constexpr int64_t kPeakLimitKib = int64_t{20} * 1024;
  const std::string settings =
      Frame(6, 4, 0, 0, std::string("\0\4\x7f\xff\xff\xff", 6));  // each stream's window
  const std::string window = Frame(4, 8, 0, 0, std::string("\x7f\0\0\0", 4));
  std::string requests;
  for (uint32_t i = 0; i < kReplies; ++i)
    requests += Request(2 * i + 1, "/test.Echo/Sized", std::to_string(kReplySize));
  const UniqueFd fd = Connect();
  ASSERT_TRUE(fd.valid());
  Send(fd, kPreface + settings + window + requests);
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(Served());

  size_t received = 0;
  std::string buffer(size_t{1} << 20, '\0');
  while (received < kReplies * kReplySize) {
    pollfd state{fd.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&state, 1, static_cast<int>(kPatience.count())), 1) << received;
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    ASSERT_GT(count, 0) << received;
    received += static_cast<size_t>(count);
  }
  if (!SanitizedPrograms()) {
    EXPECT_LT(ProcStatus("VmHWM:"), kPeakLimitKib);
  }
}

// The knowledge of a call must not live in the connection's memory of the last few requests.
TEST_F(HostileTest, EditedCallIsNamedHoweverManyOthersPassMeanwhile) {
  CriClient client = Relayed();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const std::string create =
      CreateRequest(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("m", 2))
          .SerializeAsString();
  runtime_.Script("CreateContainer", {.hold = true});
  const UniqueFd fd = Connect();
  ASSERT_TRUE(fd.valid());
  const std::string path = client.PathOf("CreateContainer");
  Send(fd, kPreface + kSettings + Request(1, path, create));
  ASSERT_TRUE(runtime_.WaitForHeld("CreateContainer", 1));
  runtime_.ForgetCalls();
  for (uint32_t i = 1; i <= 20; ++i)
    Send(fd, Request(1 + 2 * i, fmt::format("/test.Echo/Other{}", i), ""));
  ASSERT_TRUE(Eventually([this] { return runtime_.Calls("/test.Echo/Other20").size() == 1; }));
  runtime_.Stop(FakeRuntime::SocketFile::kLeave);
  std::string received;
  const std::string expected = "broke during CreateContainer";
  while (received.find(expected) == std::string::npos) {
    pollfd state{fd.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&state, 1, static_cast<int>(kPatience.count())), 1) << received;
    char buffer[4096];
    const ssize_t count = ::read(fd.get(), buffer, sizeof(buffer));
    ASSERT_GT(count, 0) << received;
    received.append(buffer, static_cast<size_t>(count));
  }
  StartRuntime();
}

TEST_F(HostileTest, SurvivesRandomFrames) {
  const uint64_t seed = SeedOr(1);
  SCOPED_TRACE(Repeat(seed));
  std::mt19937 generator(seed);
  const auto random = [&generator] { return static_cast<uint32_t>(generator()); };
  for (int i = 0; i < 200; ++i) {
    const UniqueFd fd = Connect();
    ASSERT_TRUE(fd.valid());
    std::string bytes = kPreface + kSettings;
    for (uint32_t frames = 1 + random() % 20; frames > 0; --frames) {
      std::string payload(random() % 300, '\0');
      for (char& c : payload)
        c = static_cast<char>(random());
      const auto size = static_cast<uint32_t>(payload.size());
      bytes +=
          Frame(random() % 10 == 0 ? random() % 70'000 : size, static_cast<uint8_t>(random() % 11),
                static_cast<uint8_t>(random()), random() % 5, payload);
    }
    Send(fd, bytes);
  }
  EXPECT_TRUE(Served());
}

TEST_F(HostileTest, HalfOpenConnectionsDisturbNoOtherClient) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(Connect());
    ASSERT_TRUE(silent.back().valid());
    if (i % 3 == 1) Send(silent.back(), kPreface);
    if (i % 3 == 2) Send(silent.back(), std::string(kPreface) + kSettings + "\x00\x00");
  }
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(Served());
  silent.clear();
}

TEST_F(HostileTest, ConnectionsThatCloseInAllStagesLeaveNothingOpen) {
  ASSERT_TRUE(Served());
  const int before = OpenFiles();
  for (int i = 0; i < 2000; ++i) {
    const UniqueFd fd = Connect();
    ASSERT_TRUE(fd.valid());
    if (i % 4 == 1) Send(fd, kPreface);
    if (i % 4 == 2) Send(fd, kPreface + kSettings);
    if (i % 4 == 3) Send(fd, "garbage");
  }
  // One more than before may still be open: that of the last check.
  EXPECT_TRUE(Eventually([&] { return OpenFiles() <= before + 2; })) << OpenFiles() << " files";
}

TEST_F(HostileTest, MoreConnectionsThanFilesAreSurvived) {
  std::vector<UniqueFd> flood;
  CriClient first = Relayed();
  ASSERT_TRUE(first.Call(kVersion, {""}).status.ok());
  for (int i = 0; i < 900; ++i) {
    flood.push_back(Connect());
    Send(flood.back(), kPreface + kSettings);
  }
  // Earlier clients are still served.
  EXPECT_TRUE(first.Call(kVersion, {""}).status.ok());
  flood.clear();
  EXPECT_TRUE(Eventually([&] { return Served(); }));
}

TEST_F(HostileTest, ClientThatTakesNoAnswersIsNotBufferedFor) {
  if (SanitizedPrograms()) GTEST_SKIP() << "memory means nothing under a sanitizer";
  const int64_t before = ProcStatus("VmRSS:");
  const UniqueFd fd = Connect();
  ASSERT_TRUE(fd.valid());
  // Each PING wants an answer; this client reads none.
  std::string pings;
  for (int i = 0; i < 1000; ++i)
    pings += Frame(8, 6, 0, 0, "12345678");
  std::string bytes = kPreface + kSettings;
  for (int i = 0; i < 2000; ++i) {
    pollfd state{fd.get(), POLLOUT, 0};
    if (::poll(&state, 1, 100) != 1) break;
    if (::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
    bytes = pings;
  }
  EXPECT_TRUE(Served());
  EXPECT_LT(ProcStatus("VmRSS:"), before + 6 * 1024);
}

// The cost of a megabyte of configuration for other clients.
class BigConfigurationTest : public ControlTest {
 protected:
  // How long the loop works while another client waits for a Version, in ms, in ascending order.
  // Processor time of the loop's thread: other programs of a busy machine do not count.
  std::vector<double> TimesDuring(const std::function<void()>& work) {
    CriClient client = Relayed();
    std::atomic<bool> over = false;
    std::thread worker([&] {
      work();
      over = true;
    });
    std::vector<double> times;
    while (!over) {
      const double begin = LoopTime();
      EXPECT_TRUE(client.Call(kVersion, {""}).status.ok());
      times.push_back(LoopTime() - begin);
    }
    worker.join();
    EXPECT_FALSE(times.empty());
    std::sort(times.begin(), times.end());
    return times;
  }
  // The loop's processor time since the daemon's start, in ms.
  double LoopTime() {
    constexpr double kNanosPerMilli = 1e6;
    const std::string task = std::to_string(pid());
    std::ifstream file("/proc/" + task + "/task/" + task + "/schedstat");
    double nanos = 0;
    EXPECT_TRUE(file >> nanos);
    return nanos / kNanosPerMilli;
  }
};

// Configurations that are refused, in the forms that cost most.
TEST_F(BigConfigurationTest, ReadingItDelaysNoOtherCall) {
  StartBoth();
  std::string dotted;
  for (int i = 0; dotted.size() < 980'000; ++i)
    dotted += fmt::format("policy.x{}{}:\n", i, std::string(40, 'x'));
  std::string brackets = "policy: ";
  brackets.append(1'000'000, '[');
  std::string anchors = "policy: ";
  for (int i = 0; i < 60; ++i)
    anchors += fmt::format("&a{} [", i);
  anchors.append(900'000, 'x');
  for (const std::string& text : {dotted, brackets, anchors}) {
    const std::string file = WriteFile("big.yaml", text);
    const std::vector<double> times = TimesDuring([&] {
      EXPECT_EQ(Ctl({"config", "set", file}).exit_code, 1);
    });
    // A reading on the loop takes far longer.
    EXPECT_LT(times[times.size() / 2], SanitizedPrograms() ? 100 : 20);
    EXPECT_LT(times.back(), SanitizedPrograms() ? 250 : 50);
    RecordProperty("slowest_ms", std::to_string(times.back()));
  }
}

TEST_F(BigConfigurationTest, ShowingItDelaysNoOtherCall) {
  StartBoth();
  // No other part may be as large.
  std::string text = "policy: {Active: static, ReservedResources: {CPU: 1}}\ndump:\n  Config:\n";
  for (int i = 0; i < 990; ++i)
    text += fmt::format("  - off:{}{}\n", std::string(900, 'x'), i);
  ASSERT_EQ(Ctl({"config", "set", WriteFile("big.yaml", text)}).exit_code, 0);
  const std::vector<double> times = TimesDuring([&] {
    // All ask at once: each gets its answer, and they do not wait for each other.
    std::vector<std::thread> readers;
    for (int i = 0; i < 8; ++i) {
      readers.emplace_back([&] {
        const Shown shown = Ctl({"config", "show"});
        EXPECT_EQ(shown.exit_code, 0) << shown.err;
        EXPECT_THAT(shown.out, testing::HasSubstr("x989"));
      });
    }
    for (std::thread& reader : readers)
      reader.join();
  });
  // Eight prints one after the other on the loop take more than 500, and with sanitizers far more.
  EXPECT_LT(times.back(), SanitizedPrograms() ? 2'000 : 60);
  RecordProperty("slowest_ms", std::to_string(times.back()));
}

}  // namespace
}  // namespace resmgr::test
