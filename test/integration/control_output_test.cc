// SPDX-License-Identifier: Apache-2.0
// The output of cri-resmgr-ctl about a running daemon for people: the containers, the units, and
// never more than text.
#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"
#include "pkg/sys/unix_socket.h"
#include "test/integration/control_fixture.h"
#include "test/support/programs/programs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ControlOutputTest : public ControlTest {
 protected:
  Running RunIn(CriClient& client, const std::string& name_space, const std::string& pod,
                const std::string& app, int cpus) {
    cri::PodSandboxConfig config = cpus > 0 ? MakeGuaranteedPod(pod) : MakeBestEffortPod(pod);
    config.mutable_metadata()->set_namespace_(name_space);
    (*config.mutable_labels())["app"] = app;
    return Run(client, config,
               cpus > 0 ? MakeGuaranteedContainer("main", cpus) : MakeBestEffortContainer("main"));
  }

  std::vector<std::string> Pods(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"containers", "-o", "json"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Shown shown = Ctl(all);
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    std::vector<std::string> pods;
    for (const Json& container : shown.json())
      pods.push_back(container.at("pod"));
    return pods;
  }

  static void ExpectOnlyText(std::string_view text, std::string_view what) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const size_t length = Utf8Length(rest);
      ASSERT_GT(length, 0U) << what << ": no UTF-8 in\n" << text;
      if (rest[0] != '\n') {
        ASSERT_FALSE(IsControl(rest.substr(0, length))) << what << ":\n" << text;
      }
      rest.remove_prefix(length);
    }
  }
};

TEST_F(ControlOutputTest, WhateverNamesThereAreATerminalOnlyShowsThem) {
  CriClient client = Started();
  const std::string evil =
      "\x1b]0;x\x07\x7f\xc2\x9b"
      "2J\n\t\xe2\x80\xae";
  cri::PodSandboxConfig pod = MakeGuaranteedPod("pod" + evil);
  pod.mutable_metadata()->set_namespace_("ns" + evil);
  (*pod.mutable_annotations())["prefer-shared-cpus.cri-resource-manager.intel.com" + evil] = evil;
  cri::ContainerConfig container = MakeGuaranteedContainer("c" + evil, 1);
  Run(client, pod, container);
  Run(client, MakeBestEffortPod("other" + evil), MakeBestEffortContainer("main" + evil));

  const std::string next =
      WriteFile("next.yaml", "policy: {Active: static, AvailableResources: {CPU: 'cpuset:0-3'}}");
  const std::vector<std::vector<std::string>> commands = {{"status"},
                                                          {"policies"},
                                                          {"topology"},
                                                          {"pools"},
                                                          {"containers"},
                                                          {"explain", "pod" + evil},
                                                          {"explain", "-n", "ns" + evil},
                                                          {"explain", "-l", "!no"},
                                                          {"explain", "no" + evil},
                                                          {"rebalance"},
                                                          {"config", "show"},
                                                          {"config", "check", next},
                                                          {"log", "info" + evil},
                                                          {"containers", "-l", "a" + evil}};
  for (std::vector<std::string> command : commands) {
    for (const char* const form : {"table", "json", "yaml"}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"-o", form});
      const Shown shown = Ctl(arguments);
      ExpectOnlyText(shown.out, command[0] + " -o " + form);
      ExpectOnlyText(shown.err, command[0] + " -o " + form);
      EXPECT_FALSE(shown.out.empty() && shown.err.empty() && command[0] != "log") << command[0];
    }
  }
  // A name does not add a line to a table either.
  EXPECT_EQ(Split(Ctl({"containers"}).out, '\n').size(), 4U);
  EXPECT_EQ(Ctl({"containers", "-o", "json"}).json()[0].at("pod"), "pod" + evil);
  ExpectOnlyText(daemon_->Log(), "the daemon's log");
}

TEST_F(ControlOutputTest, ChoosesContainersByNamespaceAndLabels) {
  StartBoth();
  EXPECT_EQ(Ctl({"containers"}).out, "No containers.\n");
  CriClient client = Relayed();
  RunIn(client, "shop", "web-1", "web", 2);
  RunIn(client, "shop", "db-1", "db", 1);
  RunIn(client, "batch", "job-1", "web", 0);
  using Names = std::vector<std::string>;
  EXPECT_EQ(Pods({"-n", "shop"}), (Names{"web-1", "db-1"}));
  EXPECT_EQ(Pods({"-l", "app=web"}), (Names{"web-1", "job-1"}));
  EXPECT_EQ(Pods({"-l", "app notin (web)", "-n", "shop"}), (Names{"db-1"}));
  EXPECT_EQ(Pods({"-l", "!app"}), Names{});
  EXPECT_EQ(Pods({"-sort-by", "pod"}), (Names{"db-1", "job-1", "web-1"}));
  EXPECT_EQ(Pods({"--sort-by=exclusive"}).back(), "job-1") << "those without come last";
  EXPECT_EQ(Ctl({"containers", "-n", "none"}).out, "No containers.\n");
  EXPECT_THAT(Ctl({"containers", "-l", "a in b"}).err, HasSubstr("label selector: \"a in b\""));
  EXPECT_THAT(Ctl({"containers", "-sort-by", "size"}).err, HasSubstr("-sort-by: \"size\" is not"));
  EXPECT_EQ(Ctl({"explain", "-n", "shop", "-o", "json"}).json().size(), 2U);
  // The refused container is among them as long as its pod exists.
  cri::PodSandboxConfig large = MakeGuaranteedPod("large");
  large.mutable_metadata()->set_namespace_("shop");
  (*large.mutable_labels())["app"] = "web";
  const std::string pod = Ok(client.RunPod(large));
  EXPECT_FALSE(client.CreateContainer(pod, large, MakeGuaranteedContainer("main", 20)).ok());
  const std::string refused = "\nshop/large/main ";
  EXPECT_THAT(Ctl({"explain", "-n", "shop"}).out,
              AllOf(HasSubstr(refused), HasSubstr("needs 20 exclusive CPUs")));
  EXPECT_THAT(Ctl({"explain", "-l", "app=web"}).out, HasSubstr(refused));
  EXPECT_THAT(Ctl({"explain", "-l", "app=db"}).out, Not(HasSubstr("shop/large")));
  EXPECT_THAT(Ctl({"explain", "large", "-n", "shop"}).out, HasSubstr("needs 20 exclusive CPUs"));
  EXPECT_EQ(Ctl({"explain", "large", "-n", "batch"}).exit_code, 1);
  EXPECT_THAT(client.StopPod(pod), IsOk());
  EXPECT_THAT(client.RemovePod(pod), IsOk());
  EXPECT_THAT(Ctl({"explain", "-n", "shop"}).out, Not(HasSubstr("shop/large")));
  EXPECT_THAT(Ctl({"explain", "large", "-n", "shop"}).out, HasSubstr("needs 20 exclusive CPUs"));
  EXPECT_EQ(Ctl({"explain", "web-1", "-n", "batch"}).exit_code, 1);
}

TEST_F(ControlOutputTest, ShowsWhoMayRunOnACpu) {
  CriClient client = Started();
  RunIn(client, "shop", "web-1", "web", 2);
  RunIn(client, "batch", "job-1", "job", 0);
  using Names = std::vector<std::string>;
  const std::string own = Ctl({"containers", "-o", "json"}).json()[0].at("exclusive");
  EXPECT_EQ(Pods({"-cpu", own}), (Names{"web-1"}));
  EXPECT_EQ(Pods({"-cpu", "0"}), (Names{"job-1"}));
  EXPECT_EQ(Pods({"-pool", "shared"}), (Names{"job-1"}));
  EXPECT_EQ(Pods({"-node", "0"}), (Names{"web-1", "job-1"}));
  EXPECT_THAT(Ctl({"containers", "-cpu", "99"}).err, HasSubstr("the machine has no CPU 99"));
  EXPECT_THAT(Ctl({"containers", "-o", "wide"}).out, HasSubstr("REASON"));
  EXPECT_EQ(Ctl({"complete", "pods"}).out, "batch/job-1\nshop/web-1\n");
  EXPECT_THAT(Ctl({"version"}).out, Not(HasSubstr("not reached")));
  const Shown unknown = Ctl({"log", "debug", "resmgt"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean resmgr?"));
  EXPECT_EQ(Ctl({"log", "debug", "resmgr"}).exit_code, 0);
}

TEST_F(ControlOutputTest, ARefusalTellsAllAndOutlivesARestart) {
  CriClient client = Started();
  RunIn(client, "shop", "web-1", "web", 2);
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("large")));
  const auto refused =
      client.CreateContainer(pod, MakeGuaranteedPod("large"), MakeGuaranteedContainer("main", 20));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(Message(refused.status())),
              AllOf(HasSubstr("; never on this node: change the request; container "
                              "default/large/main: change what its pod asks for")));
  EXPECT_THAT(Ctl({"explain", "lar"}).out,
              AllOf(StartsWith("default/large/main\n"), HasSubstr("asks for   20 CPUs, limit 20"),
                    HasSubstr("never on this node"), HasSubstr("\n    exclusive  ")));
  EXPECT_THAT(Ctl({"explain", "web-2"}).err,
              HasSubstr("no container is called web-2; did you mean web-1?"));
  EXPECT_EQ(Ctl({"history", "-pod", "default/large", "-o", "json"}).json().size(), 1U);
  EXPECT_EQ(
      Ctl({"history", "-pod", "large", "-n", "1", "-since", "1h", "-o", "json"}).json().size(), 1U);
  EXPECT_EQ(Ctl({"history", "-since", "2100-01-01", "-o", "json"}).json().size(), 0U);
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  StartDaemon(StaticFlags());
  ASSERT_TRUE(Eventually([this] {
    return Ctl({"explain", "large"}).out.find("asks for   20 CPUs") != std::string::npos;
  })) << Ctl({"explain", "large"}).err;
}

TEST_F(ControlOutputTest, FollowsTheHistoryUntilItIsEnded) {
  CriClient client = Started();
  RunIn(client, "shop", "web-1", "web", 2);
  const auto follow = Must(ChildProcess::Start(
      {Program("cri-resmgr-ctl"), "-socket", Path("admin.sock"), "history", "-f"},
      Path("followed")));
  EXPECT_TRUE(FileHas("followed", "shop/web-1"));
  RunIn(client, "shop", "db-1", "db", 1);
  EXPECT_TRUE(FileHas("followed", "shop/db-1"));
  const std::string text = TextOf(Path("followed"));
  EXPECT_EQ(text.find("TIME"), text.rfind("TIME")) << "one header\n" << text;
  EXPECT_EQ(text.find("shop/web-1"), text.rfind("shop/web-1")) << "each once\n" << text;
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  EXPECT_TRUE(FileHas("followed", "waiting: "));
  StartDaemon(StaticFlags());
  CriClient again = Relayed();
  RunIn(again, "shop", "cache-1", "cache", 1);
  EXPECT_TRUE(FileHas("followed", "shop/cache-1"));
  ::kill(follow->pid(), SIGINT);
  EXPECT_TRUE(follow->Wait(kPatience).ok());
}

TEST_F(ControlOutputTest, OnePodsCallsAreDumped) {
  CriClient client = Started();
  const auto dump =
      Must(ChildProcess::Start({Program("cri-resmgr-ctl"), "-socket", Path("admin.sock"), "dump",
                                "-pod", "shop/web-1", "-for", "10m", "-o", Path("dumped")},
                               Path("said")));
  // The dump has begun once it has a call about the pod.
  cri::PodSandboxConfig web = MakeBestEffortPod("web-1");
  web.mutable_metadata()->set_namespace_("shop");
  uint32_t attempt = 0;
  ASSERT_TRUE(Eventually([&] {
    web.mutable_metadata()->set_attempt(++attempt);
    EXPECT_THAT(client.RunPod(web), IsOk());
    return TextOf(Path("dumped")).find("REQUEST RunPodSandbox") != std::string::npos;
  }));
  EXPECT_THAT(Ctl({"dump", "-pod", "a/b", "-for", "1s"}).err, HasSubstr("is under way"));
  RunIn(client, "shop", "db-1", "db", 1);
  RunIn(client, "shop", "web-1", "web", 2);
  EXPECT_TRUE(FileHas("dumped", "REPLY StartContainer"));
  const std::string text = TextOf(Path("dumped"));
  EXPECT_THAT(text, AllOf(HasSubstr("REQUEST RunPodSandbox"), HasSubstr("CHANGED CreateContainer"),
                          HasSubstr("name: web-1"), Not(HasSubstr("db-1"))));
  struct stat info = {};
  ASSERT_EQ(::stat(Path("dumped").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U) << "it is for its owner alone";
  ::kill(dump->pid(), SIGKILL);
}

TEST_F(ControlOutputTest, FlagsStandBeforeOrBehindTheCommand) {
  CriClient client = Started();
  RunIn(client, "containers", "web-1", "web", 2);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"-n", "containers", "-o", "json", "containers"},
        std::vector<std::string>{"-o=json", "containers", "-n", "containers"},
        std::vector<std::string>{"containers", "-o", "json", "-n=containers"}}) {
    const Shown shown = Ctl(arguments);
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_EQ(shown.json().size(), 1U);
  }
  EXPECT_THAT(Ctl({"-x", "containers"}).err, HasSubstr("unknown flag -x"));
  EXPECT_THAT(Ctl({"-n", "containers"}).err, HasSubstr("-n"));
}

TEST_F(ControlOutputTest, AmountsAreForPeople) {
  CriClient client = Started();
  cri::ContainerConfig container = MakeGuaranteedContainer("main", 2);
  container.mutable_linux()->mutable_resources()->set_memory_limit_in_bytes(32 << 20);
  Run(client, MakeGuaranteedPod("g"), container);
  Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  EXPECT_THAT(Ctl({"explain", "g"}).out,
              AllOf(HasSubstr("2 CPUs, limit 2; "), HasSubstr("limit 32 MiB"),
                    HasSubstr("all of its own"), Not(HasSubstr("0.0"))));
  EXPECT_THAT(Ctl({"explain", "s"}).out,
              AllOf(HasSubstr("0 CPUs, limit none; memory 0, limit none"), HasSubstr(", shared")));
  EXPECT_THAT(Ctl({"explain", "-l", "!none"}).out,
              AllOf(StartsWith("CONTAINER"), HasSubstr("\ndefault/g/main"),
                    HasSubstr("\ndefault/s/main"), HasSubstr("Guaranteed pod with 2 whole CPUs")));
  EXPECT_THAT(Ctl({"containers", "-o", "yaml"}).out,
              AllOf(StartsWith("- cpus: "), HasSubstr("\n  pod: g\n")));

  const Json status = Ctl({"status", "-o", "json"}).json();
  EXPECT_EQ(status.at("reserved"), "0");
  EXPECT_EQ(CpuSet::Parse(status.at("exclusive").get<std::string>())->size(), 2);
  EXPECT_EQ(status.at("unsettled"), 0);
  EXPECT_EQ(status.at("problems"), Json::array());
  EXPECT_THAT(Ctl({"status"}).out,
              AllOf(HasSubstr("  exclusive    2 ("), HasSubstr("  reserved     1 (0)"),
                    HasSubstr("problems       none")));
}

TEST_F(ControlOutputTest, StatusNamesWhatIsNotAsItShouldBe) {
  CriClient client = Started();
  Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  runtime_.Script("UpdateContainerResources",
                  {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "disk on fire")});
  // The container is not started, since the start would wait.
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  ASSERT_THAT(client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("m", 2)),
              IsOk());
  EXPECT_TRUE(Eventually([this] {
    return Ctl({"status"}).out.find("does not update default/s/main: disk on fire") !=
           std::string::npos;
  })) << Ctl({"status"}).out;
  const Json status = Ctl({"status", "-o", "json"}).json();
  EXPECT_EQ(status.at("unsettled"), 1);
  EXPECT_EQ(status.at("state"), "saved");

  runtime_.Stop();
  EXPECT_TRUE(Eventually([this] {
    return Ctl({"status"}).out.find("the runtime is not connected") != std::string::npos;
  }));
}

TEST_F(ControlOutputTest, WatchesUntilItIsEnded) {
  CriClient client = Started();
  const auto watch = Must(ChildProcess::Start(
      {Program("cri-resmgr-ctl"), "-socket", Path("admin.sock"), "containers", "-w"},
      Path("watched")));
  EXPECT_TRUE(Eventually([this] { return TextOf(Path("watched")) == "No containers.\n"; }));
  RunIn(client, "shop", "web-1", "web", 2);
  EXPECT_TRUE(FileHas("watched", "running")) << TextOf(Path("watched"));
  EXPECT_THAT(TextOf(Path("watched")), StartsWith("No containers.\n\nNAMESPACE  POD"));
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  EXPECT_TRUE(FileHas("watched", "waiting: "));
  StartDaemon(StaticFlags());
  EXPECT_TRUE(Eventually([this] {
    const std::string text = TextOf(Path("watched"));
    const size_t back = text.find("the daemon answers again");
    return back != std::string::npos && text.find("running", back) != std::string::npos;
  })) << TextOf(Path("watched"));
  ::kill(watch->pid(), SIGINT);
  EXPECT_TRUE(watch->Wait(kPatience).ok());
}

TEST_F(ControlOutputTest, SaysOfAnotherSocketThatItIsNotTheDaemons) {
  StartBoth();
  const auto ask = [this](const std::string& socket) { return Ctl({"status", "-socket", socket}); };
  for (const char* const name : {"runtime.sock", "relay.sock", "config.sock"}) {
    const Shown shown = ask(Path(name));
    EXPECT_EQ(shown.exit_code, 2) << name;
    EXPECT_THAT(shown.err, HasSubstr(Path(name) + " is not a cri-resmgr admin socket")) << name;
  }
  // One that speaks something else.
  auto other = ListeningSocket::Create(Path("other.sock"));
  ASSERT_TRUE(other.ok());
  std::thread server([&other] {
    for (int i = 0; i < 2; ++i) {
      pollfd waiting{other->fd(), POLLIN, 0};
      ::poll(&waiting, 1, static_cast<int>(kPatience.count()));
      const int client = ::accept(other->fd(), nullptr, nullptr);
      constexpr std::string_view kAnswer = "HTTP/1.1 400 Bad Request\r\n\r\n";
      EXPECT_EQ(::send(client, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(kAnswer.size()));
      ::close(client);
    }
  });
  EXPECT_THAT(ask(Path("other.sock")).err, HasSubstr("is not a cri-resmgr admin socket"));
  server.join();
}

}  // namespace
}  // namespace resmgr::test
