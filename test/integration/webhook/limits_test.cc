// SPDX-License-Identifier: Apache-2.0
// The connections, memory and time that clients can take from the webhook.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unique_fd.h"
#include "test/support/containerd/child_process.h"
#include "test/support/programs/programs.h"
#include "webhook/testing/https_client.h"
#include "webhook/testing/reviews.h"
#include "webhook/testing/test_certificate.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};
// The limit of the sample Deployment.
constexpr int64_t kMaxRssKib = int64_t{128} * 1024;
constexpr size_t kLargestBody = size_t{4} << 20;

class LimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    const TestCertificate pair = MakeTestCertificate("webhook");
    ASSERT_TRUE(AtomicWriteFile(directory_.File("tls.key"), pair.key, 0600).ok());
    ASSERT_TRUE(AtomicWriteFile(directory_.File("tls.crt"), pair.certificate, 0644).ok());
    auto process = test::ChildProcess::Start(
        {test::Program("cri-resmgr-webhook"), "-address=127.0.0.1", "-port=0",
         "-cert-file=" + directory_.File("tls.crt"), "-key-file=" + directory_.File("tls.key")},
        log_);
    ASSERT_TRUE(process.ok()) << Describe(process.status());
    process_ = *std::move(process);
    ASSERT_TRUE(
        test::WaitUntil("the port in the log", kPatience, [this] { return ReadPort(); }).ok())
        << test::LastLines(log_);
  }

  bool ReadPort() {
    constexpr std::string_view kBefore = "serving on port ";
    const std::string log = test::TextOf(log_);
    const size_t at = log.find(kBefore);
    if (at == std::string::npos || log.find('\n', at) == std::string::npos) return false;
    port_ = static_cast<uint16_t>(std::stoi(log.substr(at + kBefore.size())));
    return true;
  }

  HttpsClient Connect() {
    auto client = HttpsClient::Connect(port_, kPatience);
    EXPECT_TRUE(client.ok()) << Describe(client.status());
    return *std::move(client);
  }

  // Connected, but without a handshake.
  UniqueFd ConnectSilently() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }

  // The time of a review on a connection of its own.
  milliseconds TimeOfReview() {
    const auto start = Clock::now();
    const auto response = Connect().PostReview(ReviewOf(EverydayPod()).dump());
    const auto time = Clock::now() - start;
    EXPECT_TRUE(response.ok()) << Describe(response.status());
    EXPECT_EQ(response.ok() ? response->status : 0, 200u);
    return std::chrono::duration_cast<milliseconds>(time);
  }

  int64_t PeakRssKib() const { return test::ProcStatus(process_->pid(), "VmHWM:"); }

  // The header of a review of `size` bytes, and as much of the body as given.
  static std::string Beginning(size_t size, std::string_view body) {
    return fmt::format(
        "POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\n\r\n{}",
        size, body);
  }

  TempDir directory_;
  const std::string log_ = directory_.File("log");
  std::unique_ptr<test::ChildProcess> process_;
  uint16_t port_ = 0;
};

TEST_F(LimitsTest, IdleAndSlowConnectionsDelayNoReview) {
  std::vector<HttpsClient> hostile;
  for (int i = 0; i < 200; ++i) {
    hostile.push_back(Connect());
    // Half of them are used once, which is not a reason to keep them for long.
    if (i % 2 == 0) {
      EXPECT_TRUE(hostile.back().Send("GET", "/healthz", "", "").ok());
    }
  }
  for (int i = 0; i < 100; ++i) {
    hostile.push_back(Connect());
    EXPECT_TRUE(hostile.back().Write(Beginning(kLargestBody, "{\"a\":")).ok());
  }
  std::vector<UniqueFd> silent;
  silent.reserve(200);
  for (int i = 0; i < 200; ++i)
    silent.push_back(ConnectSilently());
  std::vector<milliseconds> times;
  times.reserve(21);
  for (int i = 0; i < 21; ++i)
    times.push_back(TimeOfReview());
  std::ranges::sort(times);
  EXPECT_LT(times[times.size() / 2].count(), test::SanitizedPrograms() ? 10'000 : 1000) << "median";
}

TEST_F(LimitsTest, SignalsForTheDaemonDoNotEndIt) {
  process_->Signal(SIGUSR1);
  process_->Signal(SIGHUP);
  ASSERT_TRUE(test::WaitUntil("the reload", kPatience, [this] {
                return test::TextOf(log_).find("the certificate") != std::string::npos;
              }).ok());
  EXPECT_TRUE(process_->Running()) << test::LastLines(log_);
}

TEST_F(LimitsTest, AConnectionOfReviewsOutlivesIdleOnes) {
  HttpsClient reviews = Connect();
  const std::string review = ReviewOf(EverydayPod()).dump();
  ASSERT_TRUE(reviews.PostReview(review).ok());
  std::vector<HttpsClient> idle;
  idle.reserve(300);
  for (int i = 0; i < 300; ++i)
    idle.push_back(Connect());
  const auto response = reviews.PostReview(review);
  ASSERT_TRUE(response.ok()) << Describe(response.status());
  EXPECT_EQ(response->status, 200u);
}

// Bodies that are held back one byte before their end, 140 MB in all, and that would be millions of
// values.
TEST_F(LimitsTest, NoBodiesMakeItExceedItsMemory) {
  json review = ReviewOf("@");
  review["request"]["oldObject"] = "@";
  const std::string text = review.dump();
  // Sanitizers, under which memory is not judged, make a review so slow that the time of a request
  // would end within it.
  const size_t largest = test::SanitizedPrograms() ? kLargestBody / 16 : kLargestBody;
  const auto filled = [&text, largest](const std::string& unit, const std::string& open,
                                       const std::string& close) {
    std::string value = open;
    const size_t room = (largest - text.size()) / 2 - 64;
    while (!unit.empty() && value.size() + unit.size() + close.size() < room)
      value += unit;
    value += close;
    std::string body = text;
    for (size_t at; (at = body.find("\"@\"")) != std::string::npos;)
      body.replace(at, 3, value);
    return body;
  };
  const std::string nested(largest / 5, '[');
  const std::vector<std::string> bodies = {
      filled("[],", "[", "0]"),
      filled("{\"a\":{}},", "[", "0]"),
      filled("", nested, std::string(nested.size(), ']')),
      filled("\"\":{},", R"({"metadata":{"annotations":{)", R"("z":0}}})"),
      filled("{},", R"({"metadata":{},"spec":{"containers":[)", R"({}]}})"),
      filled("[],", R"({"metadata":{},"spec":{"containers":[{"name":"c","resources":{"limits":[)",
             R"(0]}}]}})"),
  };
  std::vector<HttpsClient> clients;
  const int held = test::SanitizedPrograms() ? 12 : 36;
  for (int i = 0; i < held; ++i) {
    clients.push_back(Connect());
    const std::string& body = bodies[static_cast<size_t>(i) % bodies.size()];
    // Earlier connections may be closed for this one.
    EXPECT_TRUE(
        clients.back()
            .Write(Beginning(body.size(), std::string_view(body).substr(0, body.size() - 1)))
            .ok());
  }
  for (size_t i = clients.size(); i-- > 0;) {
    if (!clients[i].Write("}").ok()) continue;
    const auto response = clients[i].ReadResponse();
    EXPECT_THAT(response.ok() ? response->status : 200u, testing::AnyOf(200u, 400u));
  }
  for (const std::string& body : bodies) {
    const auto response = Connect().PostReview(body);
    ASSERT_TRUE(response.ok()) << Describe(response.status());
    EXPECT_THAT(response->status, testing::AnyOf(200u, 400u));
  }
  EXPECT_LT(PeakRssKib(), test::SanitizedPrograms() ? 8 * kMaxRssKib : kMaxRssKib);
  EXPECT_LT(TimeOfReview().count(), 10'000);
}

}  // namespace
}  // namespace resmgr::webhook
