// SPDX-License-Identifier: Apache-2.0
// Faults that an agent survives: API servers that end, lie, stall and forget.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include <sys/stat.h>

#include "test/integration/agent/agent_fixture.h"
#include "test/support/api_server/certificates.h"
#include "test/support/hanging_disk/hanging_disk.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using Fault = ApiServer::WatchFault;

class AgentFaultTest : public AgentTest {
 protected:
  // Resident memory in KiB.
  int64_t Memory() const {
    std::ifstream file("/proc/" + std::to_string(agent_->pid()) + "/status");
    for (std::string word; file >> word;) {
      int64_t value = 0;
      if (word == "VmRSS:" && file >> value) return value;
    }
    return 0;
  }
  // The edit arrives in any state of the agent.
  void ExpectConverges(const std::string& policy) {
    SetPolicy(kDefaultMap, policy);
    ASSERT_TRUE(DaemonGets(policy)) << AgentLog();
  }
};

TEST_F(AgentFaultTest, ServerRestartLosesNothing) {
  StartAll();
  api_.Stop();
  SetPolicy(kDefaultMap, "changed meanwhile");
  ASSERT_TRUE(api_.Start().ok());
  EXPECT_TRUE(DaemonGets("changed meanwhile")) << AgentLog();
}

TEST_F(AgentFaultTest, SignalsForTheDaemonDoNotEndIt) {
  StartAll();
  agent_->Signal(SIGHUP);
  agent_->Signal(SIGUSR1);
  ExpectConverges("after the signals");
}

TEST_F(AgentFaultTest, StartsBeforeTheServer) {
  SetPolicy(kDefaultMap, "first");
  api_.Stop();
  daemon_.Start();
  StartAgent();
  ASSERT_TRUE(Eventually([this] { return Probe("alive") == 0; })) << AgentLog();
  EXPECT_EQ(Probe("config-status"), 1);
  EXPECT_TRUE(daemon_.received().empty());
  ASSERT_TRUE(api_.Start().ok());
  EXPECT_TRUE(DaemonGets("first")) << AgentLog();
}

TEST_F(AgentFaultTest, VersionsThatAreGoneAreListedAnew) {
  StartAll();
  for (const bool as_status : {false, true}) {
    api_.Stop();
    SetPolicy(kDefaultMap, as_status ? "second" : "third");
    api_.Compact(as_status);
    ASSERT_TRUE(api_.Start().ok());
    ASSERT_TRUE(DaemonGets(as_status ? "second" : "third")) << AgentLog();
  }
}

TEST_F(AgentFaultTest, ErrorsInAndInsteadOfStreams) {
  StartAll();
  for (const int code : {410, 429, 500}) {
    api_.DisturbWatches(Fault::kError, code);
    ExpectConverges("after event " + std::to_string(code));
    api_.FailNext(5, code);
    api_.DisturbWatches(Fault::kEnd);
    ExpectConverges("after status " + std::to_string(code));
  }
}

TEST_F(AgentFaultTest, WaitsAsLongAsTheServerAsksFor) {
  SetPolicy(kDefaultMap, "first");
  api_.FailNext(1, 429, "/api/v1/nodes", 1);
  daemon_.Start();
  const auto start = std::chrono::steady_clock::now();
  StartAgent();
  ASSERT_TRUE(DaemonGets("first")) << AgentLog();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST_F(AgentFaultTest, ANewNodeObjectGetsTheAnnotationsAgain) {
  StartAll();
  ASSERT_TRUE(NodeSays(kStatus, "accepted"));
  ASSERT_TRUE(api_.objects().Delete(std::string(ApiServer::kNodes), kNode));
  api_.objects().Put(std::string(ApiServer::kNodes), kNode,
                     {{"metadata", {{"name", kNode}, {"uid", "another"}}}});
  EXPECT_TRUE(NodeSays(kStatus, "accepted")) << AgentLog();
}

TEST_F(AgentFaultTest, WatchCutAHundredTimesConverges) {
  StartAll();
  constexpr unsigned kSeed = 20'261'121;
  std::mt19937 random(kSeed);
  const Fault faults[] = {Fault::kEnd, Fault::kCut, Fault::kGarbage, Fault::kError};
  const int codes[] = {410, 500, 504};
  int64_t memory = 0;
  for (int round = 0; round < 100; ++round) {
    api_.DisturbWatches(faults[random() % 4], codes[random() % 3]);
    const std::string policy = "round " + std::to_string(round);
    SetPolicy(kDefaultMap, policy);
    if (random() % 3 == 0) continue;  // the next cut may come before it is back
    ASSERT_TRUE(DaemonGets(policy)) << "seed " << kSeed << "\n" << AgentLog();
    if (round < 20) memory = Memory();
  }
  ExpectConverges("the end");
  EXPECT_LT(Memory(), memory + 20 * 1024) << "KiB; was " << memory;
}

TEST_F(AgentFaultTest, SlowServerAndStreamsAreFollowed) {
  api_.SetDelay(milliseconds(100));
  api_.SetTrickle(true);
  StartAll();
  ExpectConverges("slowly");
}

TEST_F(AgentFaultTest, BookmarksMoveTheVersionOn) {
  api_.SetBookmarkInterval(milliseconds(30));
  StartAll();
  // Another object changes, which only bookmarks report.
  SetPolicy("somebody-else", "x");
  const uint64_t version = api_.objects().version();
  // Each watch has got a bookmark since then if there were twice as many as watches.
  const uint64_t bookmarks = api_.bookmarks() + uint64_t{2} * 3;
  ASSERT_TRUE(Eventually([&] { return api_.bookmarks() >= bookmarks; }));
  api_.DisturbWatches(Fault::kEnd);
  EXPECT_TRUE(Eventually([&] {
    const auto requests = api_.Requests();
    return std::any_of(requests.begin(), requests.end(), [&](const ApiServer::Request& request) {
      return request.IsWatch() && request.path.find("configmaps") != std::string::npos &&
             std::stoull(request.query.at("resourceVersion")) >= version;
    });
  })) << AgentLog();
}

TEST_F(AgentFaultTest, ReadsARotatedTokenAgain) {
  std::ofstream(Path("token")) << "one";
  WriteKubeconfig("", "{tokenFile: token}");
  api_.SetTokens({"one"});
  StartAll();
  std::ofstream(Path("token")) << "two";
  api_.SetTokens({"two"});
  api_.DisturbWatches(Fault::kEnd);
  ExpectConverges("with another token");
  // Another watch may have been about to be opened with the former one.
  EXPECT_TRUE(Eventually([this] { return api_.Requests().back().authorization == "Bearer two"; }));
}

TEST_F(AgentFaultTest, ADiskWithItsTokenThatHangsDoesNotStopIt) {
  HangingDisk disk;
  std::filesystem::create_directory(Path("secrets"));
  if (!disk.MountOn(Path("secrets"))) GTEST_SKIP() << "cannot mount FUSE file systems here";
  std::ofstream(Path("secrets/token")) << "one";
  WriteKubeconfig("", "{tokenFile: secrets/token}");
  api_.SetTokens({"one"});
  StartAll();
  disk.Hang();
  api_.DisturbWatches(Fault::kEnd);
  ASSERT_TRUE(Eventually([this] {
    return AgentLog().find("cannot be read within 2 s") != std::string::npos;
  })) << AgentLog();
  EXPECT_EQ(Probe("alive"), 0);
  disk.Answer();
  ExpectConverges("the disk answers");
}

TEST_F(AgentFaultTest, RunsItsPluginAgainWhenTheTokenIsRefused) {
  std::ofstream(Path("plugin"))
      << "#!/bin/sh\n"
         "echo '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"'$(cat "
      << Path("token") << ")'\"}}'\n";
  ::chmod(Path("plugin").c_str(), S_IRWXU);
  std::ofstream(Path("token")) << "one";
  WriteKubeconfig("", "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}}");
  api_.SetTokens({"one"});
  StartAll();
  std::ofstream(Path("token")) << "two";
  api_.SetTokens({"two"});
  api_.DisturbWatches(Fault::kEnd);
  ExpectConverges("with another token");
}

TEST_F(AgentFaultTest, TellsOfARefusedTokenAfterOtherTrouble) {
  StartAll();
  const auto logged = [this](const char* text) {
    return Eventually([&] { return AgentLog().find(text) != std::string::npos; });
  };
  api_.Stop();
  ASSERT_TRUE(logged("trying again")) << AgentLog();
  api_.SetTokens({"another"});
  ASSERT_TRUE(api_.Start().ok());
  EXPECT_TRUE(logged("401")) << AgentLog();
}

TEST_F(AgentFaultTest, KeepsSecretsOutOfTheLog) {
  std::ofstream(Path("token")) << "very-secret-token";
  WriteKubeconfig("", "{tokenFile: token}");
  api_.SetTokens({"another"});
  StartAgent({"-logger-level", "debug"});
  ASSERT_TRUE(Eventually([this] { return AgentLog().find("401") != std::string::npos; }));
  EXPECT_THAT(TextOf(Path("agent.log")), Not(HasSubstr("very-secret-token")));
}

// With TLS the test configures the API server before its start.
class AgentTlsTest : public AgentFaultTest {
 protected:
  AgentTlsTest() {
    api_.Stop();
    const KeyPair server = authority_.Issue("api.local");
    const Status status = api_.StartWithTls(
        {.certificate = server.certificate, .key = server.key, .ca = authority_.certificate()});
    EXPECT_TRUE(status.ok()) << Describe(status);
    std::ofstream(Path("ca.crt")) << authority_.certificate();
    SetPolicy(kDefaultMap, "first");
    daemon_.Start();
  }

  const TestAuthority authority_;
};

TEST_F(AgentTlsTest, ShowsItsCertificate) {
  const KeyPair client = authority_.Issue("agent");
  std::ofstream(Path("c.crt")) << client.certificate;
  std::ofstream(Path("c.key")) << client.key;
  WriteKubeconfig(", certificate-authority: ca.crt",
                  "{client-certificate: c.crt, client-key: c.key}");
  StartAgent();
  ASSERT_TRUE(DaemonGets("first")) << AgentLog();
  EXPECT_TRUE(api_.Requests().back().client_certificate);
}

TEST_F(AgentTlsTest, ChecksAgainstTheNameThatTheKubeconfigGives) {
  WriteKubeconfig(", certificate-authority: ca.crt, tls-server-name: api.local", "{}");
  StartAgent();
  EXPECT_TRUE(DaemonGets("first")) << AgentLog();
}

TEST_F(AgentTlsTest, GoesWithoutChecksWhereToldTo) {
  WriteKubeconfig(", insecure-skip-tls-verify: true", "{}");
  StartAgent();
  EXPECT_TRUE(DaemonGets("first")) << AgentLog();
}

TEST_F(AgentTlsTest, TrustsNoOtherAuthority) {
  for (const char* cluster :
       {"", ", certificate-authority: ca.crt, tls-server-name: other.local"}) {
    WriteKubeconfig(cluster, "{token: secret}");
    StartAgent();
    ASSERT_TRUE(Eventually([this] {
      return TextOf(Path("agent.log")).find("SSL") != std::string::npos;
    })) << AgentLog();
    EXPECT_TRUE(api_.Requests().empty());
    std::ofstream(Path("agent.log"), std::ios::trunc);
  }
}

// Whoever can get a certificate from one of the many authorities of the system could otherwise take
// the token and set the configuration.
TEST_F(AgentTlsTest, TheSystemsAuthoritiesDoNotCountBesideTheKubeconfigs) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root for a mount namespace";
  std::filesystem::create_directory(Path("certs"));
  std::ofstream(Path("certs/ca-certificates.crt")) << authority_.certificate();
  ASSERT_TRUE(RunProgram({"openssl", "rehash", Path("certs")}, Path("openssl.log"),
                         std::chrono::seconds(20))
                  .ok());
  WriteKubeconfig("", "{token: secret}");
  StartAgentTrusting(Path("certs"));
  ASSERT_TRUE(DaemonGets("first")) << "the system's authorities count alone: " << AgentLog();
  agent_.reset();

  std::ofstream(Path("ca.crt")) << TestAuthority().certificate();
  std::ofstream(Path("agent.log"), std::ios::trunc);
  // Counted after the agent's end, since it sends requests until then.
  const size_t before = api_.Requests().size();
  WriteKubeconfig(", certificate-authority: ca.crt", "{token: secret}");
  StartAgentTrusting(Path("certs"));
  ASSERT_TRUE(Eventually([this] {
    return TextOf(Path("agent.log")).find("SSL") != std::string::npos;
  })) << AgentLog();
  EXPECT_EQ(api_.Requests().size(), before);
}

TEST_F(AgentTlsTest, ARenewedAuthorityCountsWithoutARestart) {
  std::ofstream(Path("ca.crt")) << TestAuthority().certificate();
  WriteKubeconfig(", certificate-authority: ca.crt", "{token: secret}");
  StartAgent();
  ASSERT_TRUE(Eventually([this] {
    return TextOf(Path("agent.log")).find("SSL") != std::string::npos;
  })) << AgentLog();
  std::ofstream(Path("ca.crt")) << authority_.certificate();
  EXPECT_TRUE(DaemonGets("first")) << AgentLog();
}

// The number of one agent's requests, counted at the API server: a cluster has thousands of agents.

// The number that a token bucket lets through at once; then it is one in a second.
constexpr int kBurst = 10;

class AgentLoadTest : public AgentTest {
 protected:
  using Match = std::function<bool(const ApiServer::Request& request)>;

  int Count(const Match& match) const {
    const auto requests = api_.Requests();
    return static_cast<int>(std::ranges::count_if(requests, match));
  }
  int Writes() const {
    return Count([](const ApiServer::Request& request) { return request.method != "GET"; });
  }
  int Patches() const {
    return Count([](const ApiServer::Request& request) {
      return request.method == "PATCH" && request.path.starts_with(ApiServer::kNodes);
    });
  }
  int Lists() const {
    return Count([](const ApiServer::Request& request) {
      return request.method == "GET" && !request.IsWatch();
    });
  }
};

TEST_F(AgentLoadTest, AFlappingMapMakesFewReportsAndOneEvent) {
  const auto start = std::chrono::steady_clock::now();
  StartAll();
  for (int i = 0; i < 300; ++i) {
    const std::string policy = (i % 2 == 0 ? FakeConfigService::kBad : "good ") + std::to_string(i);
    SetPolicy(kNodeMap, policy);
    ASSERT_TRUE(DaemonGets(policy)) << AgentLog();
  }
  SetPolicy(kNodeMap, "bad: the last word");
  ASSERT_TRUE(Eventually([this] { return api_.Annotation(kNode, kError) == "the last word"; }))
      << AgentLog();
  const auto lasted = std::chrono::ceil<seconds>(std::chrono::steady_clock::now() - start);
  EXPECT_LE(Patches(), kBurst + lasted.count());
  EXPECT_LT(Patches(), 150) << "of 300 changes";
  ASSERT_TRUE(Eventually([this] { return !api_.Events().empty(); }));
  EXPECT_EQ(api_.Events().size(), 1u) << "one Event with a growing count";
}

TEST_F(AgentLoadTest, ARestartOfTheAgentWritesNothing) {
  SetPolicy(kDefaultMap, "bad: as before");
  daemon_.Start();
  StartAgent();
  ASSERT_TRUE(NodeSays(kStatus, "rejected")) << AgentLog();
  ASSERT_TRUE(Eventually([this] { return api_.Events().size() == 1; }));
  ASSERT_TRUE(IsWatching(3));
  const int writes = Writes();
  StartAgent();
  ASSERT_TRUE(Eventually([this] { return daemon_.received().size() == 2; })) << AgentLog();
  ASSERT_TRUE(IsWatching(3));
  // The next report comes after all reports of the start.
  SetPolicy(kNodeMap, "good");
  ASSERT_TRUE(NodeSays(kStatus, "accepted"));
  EXPECT_EQ(Writes(), writes + 1);
}

// A server that comes back serves lists at a cost that a watch from the last version does not have.
TEST_F(AgentLoadTest, AnOutageCostsNoList) {
  StartAll();
  const int lists = Lists();
  api_.Stop();
  // Several tries in vain of each watch.
  ASSERT_TRUE(Eventually([this] { return AgentLog().find("trying again") != std::string::npos; }));
  const auto later = std::chrono::steady_clock::now() + seconds(3);
  ASSERT_TRUE(Eventually([&] { return std::chrono::steady_clock::now() >= later; }));
  SetPolicy(kDefaultMap, "meanwhile");
  ASSERT_TRUE(api_.Start().ok());
  ASSERT_TRUE(DaemonGets("meanwhile")) << AgentLog();
  ASSERT_TRUE(IsWatching(3));
  EXPECT_EQ(Lists(), lists);
}

// A node's status is long and changes all the time; labels and annotations are enough.
TEST_F(AgentLoadTest, TheNodeComesWithItsMetadataAlone) {
  StartAll();
  int requests = 0;
  for (const ApiServer::Request& request : api_.Requests()) {
    if (request.path != ApiServer::kNodes) continue;
    ++requests;
    EXPECT_THAT(request.accept, HasSubstr("as=PartialObjectMetadata"));
  }
  EXPECT_EQ(requests, 2);
}

TEST_F(AgentLoadTest, ASharedMapIsReportedLaterThanANodesOwn) {
  SetPolicy(kDefaultMap, "first");
  daemon_.Start();
  StartAgent({"-report-spread=1h"});
  ASSERT_TRUE(NodeSays(kStatus, "accepted"))
      << AgentLog() << "what a new node has to say is urgent";
  SetPolicy(kDefaultMap, "bad: everywhere");
  ASSERT_TRUE(DaemonGets("bad: everywhere"));
  EXPECT_EQ(api_.Annotation(kNode, kStatus), "accepted");
  SetPolicy(kNodeMap, "bad: here");
  EXPECT_TRUE(Eventually([this] { return api_.Annotation(kNode, kError) == "here"; }))
      << AgentLog();
}

}  // namespace
}  // namespace resmgr::test
