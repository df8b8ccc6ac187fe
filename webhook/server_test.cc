// SPDX-License-Identifier: Apache-2.0
#include "webhook/server.h"

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/captured_log.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"
#include "webhook/testing/https_client.h"
#include "webhook/testing/reviews.h"
#include "webhook/testing/test_certificate.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;
using resmgr::test::Eventually;
using resmgr::test::Must;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kDeadline{20};

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    UseCertificate("one");
    options_.address = "127.0.0.1";
    options_.port = 0;
    options_.certificate_file = directory_.File("tls.crt");
    options_.key_file = directory_.File("tls.key");
  }
  ~ServerTest() override { End(); }

  void UseCertificate(const std::string& name,
                      std::chrono::seconds valid_for = std::chrono::hours(1)) {
    const TestCertificate pair = MakeTestCertificate(name, valid_for);
    EXPECT_TRUE(AtomicWriteFile(directory_.File("tls.key"), pair.key, 0600).ok());
    EXPECT_TRUE(AtomicWriteFile(directory_.File("tls.crt"), pair.certificate, 0644).ok());
  }

  void Start(bool handle_signals = false) {
    server_ = Must(Server::Create(options_));
    if (handle_signals) server_->HandleSignals();
    thread_ = std::thread([this] { end_status_ = server_->Run(); });
  }

  void End() {
    if (!thread_.joinable()) return;
    server_->Stop();
    thread_.join();
  }

  HttpsClient Connect() {
    auto client = HttpsClient::Connect(server_->port(), kDeadline);
    EXPECT_TRUE(client.ok()) << Describe(client.status());
    return *std::move(client);
  }

  // The status of the answer, 0 without one.
  unsigned StatusOf(const std::string& bytes) {
    HttpsClient client = Connect();
    // The server may end the connection before it has read all bytes.
    const Status ignored = client.Write(bytes);
    const auto response = client.ReadResponse();
    return response.ok() ? response->status : 0;
  }

  TempDir directory_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::optional<Status> end_status_;
};

TEST_F(ServerTest, AnswersReviewsOnOneConnection) {
  Start();
  HttpsClient client = Connect();
  for (int i = 0; i < 3; ++i) {
    const auto response = Must(client.PostReview(ReviewOf(EverydayPod()).dump()));
    EXPECT_EQ(response.status, 200u);
    EXPECT_THAT(response.header, HasSubstr("Content-Type: application/json"));
    EXPECT_EQ(PatchIn(json::parse(response.body)).size(), 1u);
  }
  const auto health = Must(client.Send("GET", "/healthz", "", ""));
  EXPECT_EQ(health.body, "ok\n");
}

// The API server ignores the failure, so that only the log tells why pods have no annotation.
TEST_F(ServerTest, TellsThatClientsRefuseTheCertificate) {
  const test::CapturedLog log("certificate");
  Start();
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(HttpsClient::Connect(server_->port(), kDeadline, 0, /*verify=*/true).ok());
  Connect();
  End();
  EXPECT_EQ(log.lines.size(), 1u) << log.Text();
  EXPECT_THAT(log.Text(), HasSubstr("a client refuses the certificate in"));
  EXPECT_THAT(log.Text(), HasSubstr("unknown ca"));
}

TEST_F(ServerTest, TellsOnceThatACertificateHasExpired) {
  const test::CapturedLog log("has expired");
  options_.limits.reload = milliseconds(5);
  UseCertificate("old", -std::chrono::hours(1));
  Start();
  // The dates are checked several times meanwhile.
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(Connect().CertificateName(), "old");
  UseCertificate("new");
  EXPECT_TRUE(Eventually([this] { return Connect().CertificateName() == "new"; }));
  End();
  EXPECT_EQ(log.lines.size(), 1u) << log.Text();
}

TEST_F(ServerTest, ServesManyConnectionsAtOnce) {
  Start();
  std::vector<HttpsClient> clients;
  clients.reserve(50);
  for (int i = 0; i < 50; ++i)
    clients.push_back(Connect());
  for (HttpsClient& client : clients) {
    const auto response = Must(client.PostReview(ReviewOf(EverydayPod()).dump()));
    EXPECT_EQ(response.status, 200u);
  }
}

TEST_F(ServerTest, SpeaksTls12AndLater) {
  Start();
  EXPECT_TRUE(HttpsClient::Connect(server_->port(), kDeadline, TLS1_2_VERSION).ok());
  EXPECT_TRUE(HttpsClient::Connect(server_->port(), kDeadline, TLS1_3_VERSION).ok());
  EXPECT_FALSE(HttpsClient::Connect(server_->port(), kDeadline, TLS1_1_VERSION).ok());
  EXPECT_FALSE(HttpsClient::Connect(server_->port(), kDeadline, TLS1_VERSION).ok());
}

TEST_F(ServerTest, TakesARenewedCertificateByItself) {
  options_.limits.reload = milliseconds(5);
  Start();
  HttpsClient before = Connect();
  EXPECT_EQ(before.CertificateName(), "one");
  UseCertificate("two");
  EXPECT_TRUE(Eventually([this] { return Connect().CertificateName() == "two"; }));
  const auto response = before.PostReview(ReviewOf(EverydayPod()).dump());
  EXPECT_TRUE(response.ok()) << "connections survive the change";
}

TEST_F(ServerTest, KeepsItsCertificateWhenTheNewOneIsNoGood) {
  options_.limits.reload = milliseconds(5);
  Start();
  ASSERT_TRUE(AtomicWriteFile(directory_.File("tls.crt"), "broken", 0644).ok());
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(Connect().CertificateName(), "one");
  UseCertificate("three");
  EXPECT_TRUE(Eventually([this] { return Connect().CertificateName() == "three"; }));
}

TEST_F(ServerTest, SignalsReloadAndEnd) {
  options_.limits.reload = std::chrono::hours(1);
  Start(/*handle_signals=*/true);
  EXPECT_EQ(Connect().CertificateName(), "one");
  UseCertificate("two");
  ASSERT_EQ(raise(SIGHUP), 0);
  EXPECT_TRUE(Eventually([this] { return Connect().CertificateName() == "two"; }));
  ASSERT_EQ(raise(SIGTERM), 0);
  thread_.join();
  EXPECT_TRUE(end_status_->ok());
}

// API servers hear only after SIGTERM that the pod ends.
TEST_F(ServerTest, ServesNewClientsForAWhileAfterSigterm) {
  options_.shutdown_delay = std::chrono::hours(1);
  Start(/*handle_signals=*/true);
  HttpsClient before = Connect();
  EXPECT_EQ(before.Send("GET", "/healthz", "", "")->status, 200u);
  ASSERT_EQ(raise(SIGTERM), 0);
  EXPECT_TRUE(Eventually([&] { return StatusOf("GET /healthz HTTP/1.1\r\n\r\n") == 503; }));
  HttpsClient after = Connect();
  for (HttpsClient* const client : {&before, &after}) {
    const auto response = Must(client->PostReview(ReviewOf(EverydayPod()).dump()));
    EXPECT_EQ(response.status, 200u);
    EXPECT_THAT(response.header, HasSubstr("Connection: close")) << "the next one goes elsewhere";
  }
  ASSERT_EQ(raise(SIGTERM), 0) << "the second one ends it at once";
  thread_.join();
  EXPECT_TRUE(end_status_->ok());
}

TEST_F(ServerTest, EndsWhenTheDelayAfterSigtermIsOver) {
  options_.shutdown_delay = milliseconds(20);
  Start(/*handle_signals=*/true);
  ASSERT_EQ(raise(SIGTERM), 0);
  thread_.join();
  EXPECT_TRUE(end_status_->ok());
}

TEST_F(ServerTest, RefusesWhatIsTooLarge) {
  options_.limits.body = 100'000;
  Start();
  EXPECT_EQ(StatusOf("POST /mutate HTTP/1.1\r\nContent-Length: 100001\r\n\r\n" +
                     std::string(100'001, 'x')),
            413u);
  EXPECT_EQ(StatusOf("POST /mutate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n186A1\r\n" +
                     std::string(100'001, 'x')),
            413u);
  EXPECT_EQ(StatusOf("GET /healthz HTTP/1.1\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n"), 431u);
  HttpsClient client = Connect();
  EXPECT_EQ(client.PostReview(ReviewOf(EverydayPod()).dump())->status, 200u);
}

TEST_F(ServerTest, RefusesWhatIsNotHttp) {
  Start();
  EXPECT_EQ(StatusOf("hello\r\n\r\n"), 400u);
  EXPECT_EQ(StatusOf("POST /mutate HTTP/1.1\r\nContent-Length: many\r\n\r\n"), 400u);
  EXPECT_EQ(StatusOf("POST /mutate HTTP/7.0\r\n\r\n"), 400u);
  EXPECT_EQ(StatusOf("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400u);
}

TEST_F(ServerTest, SlowClientsAreLetGo) {
  options_.limits.first_request = milliseconds(50);
  options_.limits.idle = milliseconds(50);
  options_.limits.body_time = milliseconds(50);
  Start();
  for (const std::string bytes :
       {"", "POST /mut", "POST /mutate HTTP/1.1\r\nContent-Length: 10\r\n\r\n{"}) {
    HttpsClient client = Connect();
    ASSERT_TRUE(client.Write(bytes).ok());
    EXPECT_EQ(client.ReadResponse().status().code(), StatusCode::kUnavailable) << bytes;
  }
}

TEST_F(ServerTest, AboveTheLimitTheOldestIdleConnectionIsClosed) {
  options_.limits.connections = 2;
  Start();
  HttpsClient reviewed = Connect();
  const std::string review = ReviewOf(EverydayPod()).dump();
  ASSERT_TRUE(reviewed.PostReview(review).ok());
  HttpsClient idle = Connect();
  EXPECT_EQ(idle.Send("GET", "/healthz", "", "")->status, 200u);
  HttpsClient third = Connect();
  EXPECT_EQ(third.Send("GET", "/healthz", "", "")->status, 200u);
  EXPECT_EQ(idle.ReadResponse().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(reviewed.PostReview(review)->status, 200u);
}

TEST_F(ServerTest, AboveTheLimitOfBodiesTheSlowestIsClosed) {
  options_.limits.bodies = 250'000;
  options_.limits.body = 100'000;
  Start();
  const std::string part = "POST /mutate HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{";
  std::vector<HttpsClient> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(Connect());
    ASSERT_TRUE(slow.back().Write(part).ok());
    // An answer on another connection shows that the part was read.
    EXPECT_EQ(Connect().Send("GET", "/healthz", "", "")->status, 200u);
  }
  EXPECT_EQ(slow[0].ReadResponse().status().code(), StatusCode::kUnavailable);
  HttpsClient client = Connect();
  const auto response = Must(client.PostReview(ReviewOf(EverydayPod()).dump()));
  EXPECT_EQ(response.status, 200u);
}

TEST_F(ServerTest, AConnectionWithoutReviewsIsNotKeptForLong) {
  options_.limits.first_request = milliseconds(500);
  Start();
  HttpsClient health = Connect();
  HttpsClient reviewed = Connect();
  EXPECT_EQ(health.Send("GET", "/healthz", "", "")->status, 200u);
  const std::string review = ReviewOf(EverydayPod()).dump();
  ASSERT_TRUE(reviewed.PostReview(review).ok());
  EXPECT_EQ(health.ReadResponse().status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(reviewed.PostReview(review).ok()) << "that of an API server stays";
}

TEST_F(ServerTest, ClosesWhenTheClientAsksForIt) {
  Start();
  HttpsClient client = Connect();
  ASSERT_TRUE(client.Write("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n").ok());
  EXPECT_EQ(client.ReadResponse()->status, 200u);
  EXPECT_EQ(client.ReadResponse().status().code(), StatusCode::kUnavailable);
}

TEST_F(ServerTest, EndsAtOnceWhenNobodyWaitsForAnAnswer) {
  options_.limits.grace = std::chrono::hours(1);
  Start();
  HttpsClient idle = Connect();
  EXPECT_EQ(idle.Send("GET", "/healthz", "", "")->status, 200u);
  End();
  EXPECT_TRUE(end_status_->ok());
  EXPECT_EQ(idle.ReadResponse().status().code(), StatusCode::kUnavailable);
}

TEST_F(ServerTest, EndsWhileItLooksAtItsCertificate) {
  options_.limits.reload = milliseconds(0);  // reloads without a pause
  Start();
  EXPECT_EQ(Connect().CertificateName(), "one");
  End();
  EXPECT_TRUE(end_status_->ok());
}

TEST_F(ServerTest, EndsWithinItsGraceWhenARequestDoesNotCome) {
  options_.limits.grace = milliseconds(50);
  Start();
  HttpsClient slow = Connect();
  ASSERT_TRUE(slow.Write("POST /mutate HTTP/1.1\r\nContent-Length: 10\r\n\r\n{").ok());
  End();
  EXPECT_TRUE(end_status_->ok());
}

TEST_F(ServerTest, SaysWhyItCannotStart) {
  Start();
  ServerOptions same = options_;
  same.port = server_->port();
  const Status taken = Server::Create(same).status();
  EXPECT_EQ(taken.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(taken)),
              HasSubstr(fmt::format("cannot listen on 127.0.0.1 port {}: ", same.port)));
  same.address = "here";
  EXPECT_EQ(Server::Create(same).status().code(), StatusCode::kInvalidArgument);
  same.certificate_file = directory_.File("absent");
  EXPECT_THAT(std::string(Message(Server::Create(same).status())), HasSubstr("absent"));
}

}  // namespace
}  // namespace resmgr::webhook
