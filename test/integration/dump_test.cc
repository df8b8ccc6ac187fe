// SPDX-License-Identifier: Apache-2.0
// -dump as a user sees it: the content of the file, which has no secrets.
#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/unique_fd.h"
#include "test/integration/daemon_fixture.h"

namespace resmgr::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DumpTest : public DaemonTest {
 protected:
  std::string DumpFile() const { return Path("calls.dump"); }
  void StartDumping(const std::vector<std::string>& more) {
    StartRuntime();
    std::vector<std::string> flags = Flags({"-dump-file", DumpFile()});
    flags.insert(flags.end(), more.begin(), more.end());
    StartDaemon(flags);
  }
  // The file once the daemon has ended in good order, so that nothing is still on its way.
  std::string Dump() {
    const auto code = daemon_->Terminate();
    EXPECT_THAT(code, IsOk());
    return TextOf(DumpFile());
  }
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    for (const std::string_view line : Split(text, '\n')) {
      if (!line.empty()) lines.emplace_back(line);
    }
    return lines;
  }
  void PullWithPassword(CriClient& client) {
    cri::PullImageRequest request;
    request.mutable_image()->set_image("docker.io/local/private:1");
    request.mutable_auth()->set_username("someone");
    request.mutable_auth()->set_password("pass-word-1");
    request.mutable_auth()->set_registry_token("token-2");
    cri::PullImageResponse response;
    ASSERT_TRUE(client.Unary("PullImage", request, &response).ok());
  }
  void CreateWithSecret(CriClient& client) {
    const std::string pod = Ok(client.RunPod(MakeBestEffortPod("p")));
    auto config = MakeBestEffortContainer("main");
    auto* env = config.add_envs();
    env->set_key("DB_PASSWORD");
    env->set_value("env-secret-3");
    ASSERT_THAT(client.CreateContainer(pod, MakeBestEffortPod("p"), config), IsOk());
  }
};

TEST_F(DumpTest, ShowsEveryCallInOrderUnderTheNullPolicy) {
  StartDumping({"-policy", "null", "-dump", "reset,full:.*"});
  CriClient client = Relayed();
  ASSERT_TRUE(client.Call(client.PathOf("Version"), {""}).status.ok());
  CreateWithSecret(client);
  EXPECT_FALSE(client.StartContainer("no-such-container").ok());
  const std::string dump = Dump();

  const std::regex line(
      R"(\[(\d{4}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{3}| *\+\d+\.\d{6})\] .*)");
  for (const std::string& text : Lines(dump))
    EXPECT_TRUE(std::regex_match(text, line)) << text;
  size_t at = 0;
  for (const char* next :
       {"(passthrough) REQUEST Version", "(passthrough) REPLY Version", "runtime_name: fake",
        "(passthrough) REQUEST RunPodSandbox", "(passthrough) REPLY RunPodSandbox",
        "(passthrough) REQUEST CreateContainer", "DB_PASSWORD",
        "(passthrough) REPLY CreateContainer", "(passthrough) REQUEST StartContainer",
        "no-such-container", "(passthrough) FAILED StartContainer", "not found"}) {
    const size_t found = dump.find(next, at);
    ASSERT_NE(found, std::string::npos) << next << " in\n" << dump;
    at = found;
  }
}

TEST_F(DumpTest, HidesSecretsUnlessAskedForThem) {
  const std::string secrets[] = {"someone", "pass-word-1", "token-2", "env-secret-3"};
  for (const bool show : {false, true}) {
    runtime_.Stop();
    runtime_.WithStore([](CriStore& store) { store.Clear(); });
    std::vector<std::string> flags = {"-policy", "static", "-reserved-resources",
                                      "CPU=1",   "-dump",  "reset,full:.*"};
    if (show) flags.push_back("-dump-secrets");
    StartDumping(flags);
    CriClient client = Relayed();
    PullWithPassword(client);
    CreateWithSecret(client);
    const std::string dump = Dump();
    EXPECT_THAT(dump, HasSubstr("private:1"));
    for (const std::string& secret : secrets) {
      EXPECT_EQ(dump.find(secret) != std::string::npos, show) << secret;
      if (!show) {
        EXPECT_THAT(daemon_->Log(), Not(HasSubstr(secret)));
      }
    }
  }
}

TEST_F(DumpTest, MarksInterceptedCalls) {
  StartDumping({"-policy", "static", "-reserved-resources", "CPU=1", "-dump", "reset,full:.*"});
  CriClient client = Relayed();
  ASSERT_TRUE(client.Call(client.PathOf("Version"), {""}).status.ok());
  CreateWithSecret(client);
  EXPECT_THAT(Dump(), AllOf(HasSubstr("(passthrough) REQUEST Version"),
                            HasSubstr("(intercepted) REQUEST CreateContainer"),
                            HasSubstr("(intercepted) REPLY CreateContainer")));
}

TEST_F(DumpTest, ShowsWhatIsChangedUnderTheIdOfTheCall) {
  StartDumping({"-policy", "static", "-reserved-resources", "CPU=1", "-dump", "reset,full:.*"});
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  const std::string cpus = CpusAtRuntime(running.container).ToString();
  const std::string dump = Dump();
  const std::regex changed(
      R"re(#(\d+) \(intercepted\) CHANGED CreateContainer: linux\.resources\.cpuset_cpus "" -> ")re" +
      cpus + "\"");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(dump, match, changed)) << dump;
  EXPECT_THAT(dump, AllOf(HasSubstr("#" + match.str(1) + " (intercepted) REQUEST CreateContainer"),
                          HasSubstr("#" + match.str(1) + " (intercepted) REPLY CreateContainer")));
}

TEST_F(DumpTest, DefaultRulesLeaveOutWhatIsPolled) {
  StartDumping({"-policy", "null"});
  CriClient client = Relayed();
  ASSERT_TRUE(client.Call(client.PathOf("Version"), {""}).status.ok());
  ASSERT_TRUE(client.Call(client.PathOf("ListContainers"), {""}).status.ok());
  CreateWithSecret(client);
  EXPECT_THAT(Dump(), AllOf(HasSubstr("CreateContainer"), Not(HasSubstr("Version")),
                            Not(HasSubstr("ListContainers"))));
}

TEST_F(DumpTest, FileIsTruncatedAtStart) {
  StartDumping({"-policy", "null", "-dump", "reset,name:.*"});
  ASSERT_TRUE(Relayed().Call("/runtime.v1.RuntimeService/Version", {""}).status.ok());
  EXPECT_THAT(Dump(), HasSubstr("(passthrough) REQUEST Version"));
  StartDaemon(Flags({"-policy", "null", "-dump-file", DumpFile()}));
  EXPECT_EQ(Dump(), "");
}

TEST_F(DumpTest, CallsGoOnWhenTheFileCannotBeWritten) {
  // The daemon must not open a pipe: its reader would get the calls.
  ASSERT_EQ(::mkfifo(DumpFile().c_str(), 0600), 0);
  const UniqueFd reader(::open(DumpFile().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(reader.valid());
  StartDumping({"-policy", "null", "-dump", "reset,full:.*"});
  CriClient client = Relayed();
  for (int i = 0; i < 200; ++i) {
    const CallResult result =
        client.Call("/runtime.v1.RuntimeService/ListContainers", {""}, {.timeout = kPatience});
    ASSERT_TRUE(result.status.ok()) << result.status.error_message();
    ASSERT_TRUE(client.Call("/test.Echo/Unary", {std::string(20'000, 'x')}).status.ok());
  }
  EXPECT_TRUE(Logged("not a regular file"));
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0) << "no process writes to it";
}

TEST_F(DumpTest, RecordsInterceptedCalls) {
  const std::string record = Path("calls.record");
  StartDumping({"-policy", "static", "-reserved-resources", "CPU=1", "-dump", "record:" + record});
  CriClient client = Relayed();
  Run(client, MakeGuaranteedPod("recorded-pod"), MakeGuaranteedContainer("main", 2));
  Dump();
  EXPECT_THAT(TextOf(record), AllOf(HasSubstr("RunPodSandbox"), HasSubstr("CreateContainer"),
                                    HasSubstr("StartContainer"), HasSubstr("recorded-pod")));
}

}  // namespace
}  // namespace resmgr::test
