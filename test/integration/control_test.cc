// SPDX-License-Identifier: Apache-2.0
// cri-resmgr-ctl asks a daemon in front of a fake runtime for the values in force.
#include <chrono>
#include <future>
#include <string>

#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(ControlTest, ShowsWhatTheDaemonHolds) {
  CriClient client = Started();
  const Running exclusive = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  Run(client, MakeBurstablePod("b"), MakeBurstableContainer("side", {300}));

  const Json status = Ctl({"status", "-o", "json"}).json();
  EXPECT_EQ(status.value("policy", ""), "static");
  EXPECT_EQ(status.value("runtime", ""), "connected");
  EXPECT_EQ(status.value("containers", 0), 2);

  const Json containers = Ctl({"containers", "-o", "json"}).json();
  ASSERT_EQ(containers.size(), 2u);
  const Json& first = containers[0];
  EXPECT_EQ(first.at("id"), exclusive.container);
  EXPECT_EQ(first.at("pod"), "g");
  EXPECT_EQ(first.at("namespace"), "default");
  EXPECT_EQ(first.at("name"), "main");
  EXPECT_EQ(first.at("qos"), "Guaranteed");
  EXPECT_EQ(first.at("state"), "running");
  EXPECT_EQ(first.at("cpus"), CpusAtRuntime(exclusive.container).ToString());
  EXPECT_EQ(first.at("exclusive"), first.at("cpus"));
  EXPECT_EQ(first.at("shared"), "");
  EXPECT_EQ(first.at("quota"), -1);
  EXPECT_EQ(first.at("pool"), "exclusive");
  EXPECT_EQ(first.at("policy"), "static");
  EXPECT_EQ(containers[1].at("shares"), 307);
  EXPECT_EQ(containers[1].at("quota"), -1) << "without a limit, as simulate tells it";

  const Json pools = Ctl({"pools", "-o", "json"}).json();
  EXPECT_EQ(pools[0].at("name"), "shared");
  EXPECT_EQ(pools[0].at("containers"), Json({"default/b/side"}));

  for (const char* what : {"g", "g/main", "default/g", "default/g/main"}) {
    const Json explained = Ctl({"explain", what, "-o", "json"}).json();
    ASSERT_EQ(explained.size(), 1u) << what;
    EXPECT_EQ(explained[0].at("id"), exclusive.container);
    EXPECT_EQ(explained[0].at("request"), 2000);
    EXPECT_EQ(explained[0].at("settled"), true);
  }
  EXPECT_EQ(Ctl({"explain", exclusive.container.substr(0, 8)}).exit_code, 0);
  EXPECT_EQ(Ctl({"explain", "nobody"}).exit_code, 1);
  EXPECT_THAT(Ctl({"policies"}).out, HasSubstr("*  static"));
  EXPECT_THAT(Ctl({"containers"}).out, HasSubstr("NAMESPACE"));
  EXPECT_THAT(Ctl({"pools"}).out, HasSubstr("default/b/side"));
  EXPECT_THAT(Ctl({"explain", "g"}).out, HasSubstr("Guaranteed pod with 2 whole CPUs"));
  EXPECT_THAT(Ctl({"config", "show"}).out, HasSubstr("Active: static"));
}

TEST_F(ControlTest, QuestionsDuringTheFirstLookAtTheRuntimeWaitForIt) {
  CriClient client = Started();
  Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", 2));
  const std::string before = Ctl({"containers"}).out;
  EXPECT_THAT(before, HasSubstr("main"));
  DuringFirstLook(StaticFlags(), [&](const std::function<bool()>& in_time) {
    EXPECT_EQ(Ctl({"status"}).exit_code, 0) << "it does not wait";
    auto asked = std::async(std::launch::async, [this] { return Ctl({"containers"}).out; });
    const bool waits =
        asked.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout;
    runtime_.Release("ListPodSandbox");
    const std::string answer = asked.get();
    if (!in_time()) return false;
    EXPECT_TRUE(waits);
    EXPECT_EQ(answer, before);
    return true;
  });
}

// The runtime may hang for long.
TEST_F(ControlTest, QuestionsDoNotWaitForLongForTheFirstLook) {
  StartRuntime();
  runtime_.Script("ListPodSandbox", {.hold = true});
  StartDaemon(StaticFlags());
  EXPECT_THAT(Ctl({"containers"}).out,
              HasSubstr("No containers are known: the daemon is still reading"));
  runtime_.Release("ListPodSandbox");
}

TEST_F(ControlTest, SaysWhyNoContainersAreKnown) {
  StartDaemon(StaticFlags());  // without a runtime
  const std::string none = "No containers are known: the runtime is not connected (";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"containers"},
                                                  {"containers", "-n", "shop"},
                                                  {"pools"},
                                                  {"top"},
                                                  {"top", "cpus"},
                                                  {"cpus"}}) {
    EXPECT_THAT(Ctl(command).out, HasSubstr(none)) << command.front();
  }
  EXPECT_THAT(Ctl({"top", "nodes"}).out, Not(HasSubstr("No containers")));
  EXPECT_THAT(Ctl({"explain", "web"}).err, HasSubstr("the runtime is not connected ("));
  const Shown json = Ctl({"containers", "-o", "json"});
  EXPECT_EQ(json.json(), Json::array());
  EXPECT_THAT(json.err, HasSubstr(none));
  StartRuntime();
  ASSERT_TRUE(Eventually([this] { return Ctl({"containers"}).out == "No containers.\n"; }));
  EXPECT_THAT(Ctl({"pools"}).out, Not(HasSubstr("No containers")));
}

TEST_F(ControlTest, TakesTheSocketBehindTheCommandToo) {
  StartBoth();
  const std::string socket = Path("admin.sock");
  EXPECT_EQ(Ctl({"status", "-socket", socket}).exit_code, 0);
  EXPECT_EQ(Ctl({"status", "-socket", Path("none.sock")}).exit_code, 2) << "the last one counts";
}

TEST_F(ControlTest, ChecksAFileOfOptions) {
  StartBoth();
  const Shown shown = Ctl({"config", "check", WriteFile("c", "policy static\nrelay-dir /d\n")});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(Ctl({"config", "check", WriteFile("c", "polcy static\n")}).exit_code, 1);
}

TEST_F(ControlTest, SaysThatNoDaemonIsThere) {
  const Shown shown = Ctl({"status"});
  EXPECT_EQ(shown.exit_code, 2);
  EXPECT_THAT(shown.err, HasSubstr("admin.sock"));
}

TEST_F(ControlTest, UnderTheNullPolicyListsAreEmpty) {
  StartRuntime();
  StartDaemon(Flags({}));
  EXPECT_EQ(PolicyInForce(), "null");
  for (const char* command : {"containers", "pools"}) {
    const Shown shown = Ctl({command, "-o", "json"});
    EXPECT_EQ(shown.exit_code, 0);
    EXPECT_EQ(shown.json(), Json::array()) << command;
    EXPECT_EQ(Ctl({command}).exit_code, 0) << command;
  }
  EXPECT_EQ(Ctl({"containers"}).out,
            "No containers are known: the null policy is active, which places none.\n");
  const Shown explained = Ctl({"explain", "any"});
  EXPECT_EQ(explained.exit_code, 1);
  EXPECT_THAT(explained.err, HasSubstr("null policy"));
}

TEST_F(ControlTest, ShowsTheDaemonsMachine) {
  StartRuntime();
  StartDaemon(Flags({"-topology", "synthetic:package:2 core:3 pu:2"}));
  const Json machine = Ctl({"topology", "-o", "json"}).json();
  EXPECT_EQ(machine.at("cpus").size(), 12u);
  EXPECT_EQ(Ctl({"topology", "-topology", "synthetic:core:3 pu:1", "-o", "json"})
                .json()
                .at("cpus")
                .size(),
            3u);
  EXPECT_EQ(Ctl({"topology"}).out,
            Ctl({"topology", "-topology", "synthetic:package:2 core:3 pu:2"}).out);
}

TEST_F(ControlTest, ANamedSocketWithoutADaemonIsNotThisMachine) {
  const Shown shown = Ctl({"topology"});
  EXPECT_EQ(shown.exit_code, 2);
  EXPECT_THAT(shown.err, HasSubstr("admin.sock"));
}

}  // namespace
}  // namespace resmgr::test
