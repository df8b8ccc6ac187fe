// SPDX-License-Identifier: Apache-2.0
#include "agent/credentials.h"

#include <fstream>
#include <future>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/http.h"
#include "pkg/base/json.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr::agent {
namespace {

using std::chrono::seconds;
using test::Fails;
using test::IsOk;
using test::Must;
using testing::HasSubstr;
using testing::Not;

// Programs that a test plays itself.
class FakeRunner : public CommandRunner {
 public:
  std::unique_ptr<RunningCommand> Run(Command command, CommandDone done) override {
    commands.push_back(std::move(command));
    done_ = std::move(done);
    return std::make_unique<RunningCommand>();
  }
  void End(StatusOr<std::string> output) { std::exchange(done_, nullptr)(std::move(output)); }
  bool runs() const { return done_ != nullptr; }

  std::vector<Command> commands;

 private:
  CommandDone done_;
};

class CredentialsTest : public testing::Test {
 protected:
  Credentials Make(const UserAuth& user) {
    ClusterAccess access;
    access.server = "https://api";
    access.user = user;
    return {loop_, access, runner_, [this] { return now_; }, read_};
  }
  Credentials MakeExec(bool cluster_info = false) {
    UserAuth user;
    user.exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                           .command = "get-token",
                           .arguments = {"--for", "me"},
                           .environment = {{"N", "V"}},
                           .provide_cluster_info = cluster_info};
    return Make(user);
  }
  // The result of Get; nullopt: it waits for a plugin.
  std::optional<StatusOr<Credential>> Get(Credentials& credentials) {
    const auto result = std::make_shared<std::optional<StatusOr<Credential>>>();
    credentials.Get([result](StatusOr<Credential> credential) { *result = std::move(credential); });
    test::RunUntil(loop_, [&] { return result->has_value() || runner_.runs(); });
    return *result;
  }
  std::string Token(Credentials& credentials) {
    const auto credential = Get(credentials);
    if (!credential) return "<later>";
    return credential->ok() ? (*credential)->token : Describe(credential->status());
  }
  static std::string Output(const std::string& token, const std::string& expires = "") {
    Json status = {{"token", token}};
    if (!expires.empty()) status["expirationTimestamp"] = expires;
    return JsonText({{"kind", "ExecCredential"}, {"status", status}});
  }

  EventLoop loop_;
  FakeRunner runner_;
  Credentials::Read read_ = ReadFile;
  // 2026-01-02T00:00:00Z
  std::chrono::system_clock::time_point now_ =
      std::chrono::system_clock::from_time_t(1'767'312'000);
};

TEST_F(CredentialsTest, CertificatesAreReadForEachRequest) {
  TempDir directory;
  UserAuth user;
  user.certificate.file = directory.File("c.crt");
  user.key.data = "K";
  Credentials credentials = Make(user);
  EXPECT_THAT(*Get(credentials),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("client certificate: ")));
  for (const std::string text : {"first", "second"}) {
    std::ofstream(directory.File("c.crt")) << text;
    const auto credential = Must(*Get(credentials));
    EXPECT_EQ(credential.certificate, text);
    EXPECT_EQ(credential.key, "K");
  }
  std::ofstream(directory.File("c.crt"));
  EXPECT_THAT(*Get(credentials),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("c.crt is empty")));
}

TEST_F(CredentialsTest, ADiskThatHangsIsNotWaitedForOnTheLoop) {
  std::promise<void> answers;
  read_ = [disk = answers.get_future().share()](const std::string&, size_t) {
    disk.wait();
    return StatusOr<std::string>("secret");
  };
  UserAuth user;
  user.token_file = "/disk/token";
  auto credentials = Make(user);
  for (int request = 0; request < 2; ++request) {
    EXPECT_THAT(*Get(credentials), Fails(StatusCode::kDeadlineExceeded, HasSubstr("within 2 s")));
  }
  answers.set_value();
  EXPECT_EQ(Token(credentials), "secret");
}

TEST_F(CredentialsTest, AuthoritiesAreReadForEachRequestAlsoBesideAPlugin) {
  const TempDir directory;
  ClusterAccess access;
  access.ca.file = directory.File("ca.crt");
  access.user.exec = ExecPlugin{.command = "get-token"};
  Credentials credentials(loop_, access, runner_, [this] { return now_; });
  EXPECT_THAT(*Get(credentials),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("certificate authority: ")));
  std::ofstream(access.ca.file) << "CA\n";
  std::string authorities;
  credentials.Get([&](const StatusOr<Credential>& c) { authorities = c->authorities; });
  ASSERT_TRUE(test::RunUntil(loop_, [this] { return runner_.runs(); }));
  runner_.End(Output("t1"));
  EXPECT_EQ(authorities, "CA\n");
  std::ofstream(access.ca.file) << "other\n";
  const auto again = Must(*Get(credentials));
  EXPECT_EQ(again.token, "t1");
  EXPECT_EQ(again.authorities, "other\n");
}

TEST_F(CredentialsTest, GivesTheTokenOfTheKubeconfig) {
  UserAuth user;
  user.token = "abc";
  auto credentials = Make(user);
  EXPECT_EQ(Token(credentials), "abc");
}

TEST_F(CredentialsTest, ReadsATokenFileEachTime) {
  const TempDir directory;
  UserAuth user;
  user.token = "old and forgotten";
  user.token_file = directory.File("token");
  auto credentials = Make(user);
  std::ofstream(user.token_file) << "one\n";
  EXPECT_EQ(Token(credentials), "one");
  std::ofstream(user.token_file) << "two\n";
  EXPECT_EQ(Token(credentials), "two");
}

TEST_F(CredentialsTest, NamesATokenFileThatIsNoUse) {
  const TempDir directory;
  UserAuth user;
  user.token_file = directory.File("token");
  auto credentials = Make(user);
  EXPECT_THAT(Token(credentials), HasSubstr(user.token_file));
  std::ofstream(user.token_file) << "\n";
  EXPECT_THAT(Token(credentials), HasSubstr("is empty"));
}

TEST_F(CredentialsTest, RunsThePluginOnceForAllWhoWait) {
  auto credentials = MakeExec();
  std::vector<std::string> tokens;
  const auto take = [&](const StatusOr<Credential>& c) { tokens.push_back(c->token); };
  credentials.Get(take);
  credentials.Get(take);
  ASSERT_EQ(runner_.commands.size(), 1u);
  EXPECT_THAT(runner_.commands[0].argv, testing::ElementsAre("get-token", "--for", "me"));
  runner_.End(Output("t1"));
  EXPECT_THAT(tokens, testing::ElementsAre("t1", "t1"));
  EXPECT_EQ(Token(credentials), "t1");  // kept
}

TEST_F(CredentialsTest, RunsThePluginAgainBeforeItsTokenExpires) {
  auto credentials = MakeExec();
  Get(credentials);
  runner_.End(Output("t1", "2026-01-02T00:01:00Z"));
  now_ += seconds(45);
  EXPECT_EQ(Token(credentials), "t1");
  now_ += seconds(10);
  EXPECT_EQ(Token(credentials), "<later>");
  runner_.End(Output("t2"));
  EXPECT_EQ(Token(credentials), "t2");
}

TEST_F(CredentialsTest, RunsThePluginAgainWhenTheServerDoesNotLikeWhatItGave) {
  auto credentials = MakeExec();
  Get(credentials);
  runner_.End(Output("t1"));
  credentials.Reject();
  EXPECT_EQ(Token(credentials), "<later>");
  EXPECT_EQ(runner_.commands.size(), 2u);
}

TEST_F(CredentialsTest, TellsThePluginWhatItMayAskFor) {
  auto credentials = MakeExec(true);
  Get(credentials);
  const auto& environment = runner_.commands[0].environment;
  ASSERT_EQ(environment.size(), 2u);
  EXPECT_EQ(environment[1].first, "KUBERNETES_EXEC_INFO");
  const auto info = ParseJson(environment[1].second);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(TextAt(*info, {"apiVersion"}), "client.authentication.k8s.io/v1");
  EXPECT_EQ(TextAt(*info, {"spec", "cluster", "server"}), "https://api");
}

TEST_F(CredentialsTest, PassesOnWhyAPluginFailed) {
  auto credentials = MakeExec();
  Status status;
  credentials.Get([&](const StatusOr<Credential>& c) { status = c.status(); });
  runner_.End(FailedPrecondition("get-token failed"));
  EXPECT_THAT(status, Fails(StatusCode::kFailedPrecondition, "get-token failed"));
}

TEST(PluginCredentialTest, ReadsCertificates) {
  const auto parsed = Must(ParsePluginCredential(
      R"({"kind":"ExecCredential","status":{"clientCertificateData":"C","clientKeyData":"K"}})"));
  EXPECT_EQ(parsed.credential.certificate, "C");
  EXPECT_EQ(parsed.credential.key, "K");
  EXPECT_FALSE(parsed.expires.has_value());
}

TEST(PluginCredentialTest, RefusesWhatIsNone) {
  for (const char* text :
       {"", "hello", "{}", R"({"kind":"Status"})", R"({"kind":"ExecCredential"})",
        R"({"kind":"ExecCredential","status":{"clientKeyData":"K"}})",
        R"({"kind":"ExecCredential","status":{"token":5}})",
        R"({"kind":"ExecCredential","status":{"token":"s3cret","expirationTimestamp":"soon"}})"}) {
    EXPECT_THAT(ParsePluginCredential(text),
                Fails(StatusCode::kFailedPrecondition, Not(HasSubstr("s3cret"))))
        << text;
  }
}

TEST(PluginCredentialTest, ReadsTimesWithOffsets) {
  const auto expires = [](const std::string& time) {
    const auto parsed = ParsePluginCredential(
        R"({"kind":"ExecCredential","status":{"token":"t","expirationTimestamp":")" + time +
        "\"}}");
    return parsed.ok() ? parsed->expires : std::nullopt;
  };
  const auto utc = expires("2026-01-02T03:04:05Z");
  ASSERT_TRUE(utc.has_value());
  EXPECT_EQ(expires("2026-01-02T05:04:05+02:00"), utc);
  EXPECT_EQ(expires("2026-01-01T19:34:05-07:30"), utc);
  EXPECT_EQ(expires("2026-01-02T03:04:05.678901Z"), *utc + std::chrono::microseconds(678'901));
  EXPECT_GT(expires("9999-12-31T23:59:59Z"), utc) << "never";
  for (const char* wrong : {"2026-01-02T03:04:05", "2026-01-02T03:04:05+2",
                            "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05Zulu", "soon",
                            "infinite-future", " infinite-future", "infinite-past"}) {
    EXPECT_FALSE(expires(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace resmgr::agent
