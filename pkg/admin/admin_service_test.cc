// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/admin_service.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/admin/testing/served_node.h"
#include "pkg/admin/uninstall.h"
#include "pkg/node/host_claims.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/temp_dir.h"
#include "policies/null/null_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

class PolicyWithPools final : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::unique_ptr<Policy> Clone() const override {
    return std::make_unique<PolicyWithPools>(*this);
  }
  std::vector<Zone> Zones(const Snapshot&) const override {
    return {{.name = "spare"}, {.name = "shared"}};
  }
};

class AdminServiceTest : public test::ServedNode {
 protected:
  Answer Ask(std::string_view method, std::string message) {
    return Call(methods_, fmt::format("/cri_resmgr.v1.Admin/{}", method), std::move(message));
  }
  Json AnswerTo(std::string_view method, const Json& request) {
    const Answer answer = Ask(method, request.dump());
    EXPECT_EQ(answer.status(), OkStatus());
    return answer.ok() ? Json::parse(*answer) : Json();
  }
  StatusCode CodeOf(std::string_view method, const Json& request) {
    return Ask(method, request.dump()).status().code();
  }
  std::string ErrorOf(std::string_view method, const Json& request) {
    return std::string(Message(Ask(method, request.dump()).status()));
  }
  Json Explained(const NodeView& view, const std::string& what) {
    const Json request = {{"what", what}};
    const Answer answer = Call(AdminMethods(view), "/cri_resmgr.v1.Admin/Explain", request.dump());
    EXPECT_EQ(answer.status(), OkStatus());
    return answer.ok() ? Json::parse(*answer).at(0) : Json();
  }
  static Json Delivery(const std::string& text) { return {{"name", "test.yaml"}, {"text", text}}; }

  // A move by which a container loses its exclusive CPU.
  static ResourceManager::Move Loss() {
    ResourceManager::Move move;
    move.container = "default/dsp/main";
    move.from.cpus = move.from.exclusive = CpuSet{1};
    move.to.cpus = CpuSet{0, 1};
    return move;
  }
  // The problem that `status` has, which is the only one.
  Json OnlyProblem() {
    const Json problems = AnswerTo("Status", Json::object())["problems"];
    EXPECT_EQ(problems.size(), 1U) << problems;
    return problems.empty() ? Json::object() : problems[0];
  }

  const Claim claim_{.uid = "u-1",
                     .namespace_name = "shop",
                     .name = "fast",
                     .parts = {{.device = "cpu", .cpus = 1}}};
  const UnaryServer::Methods methods_ = AdminMethods(View());
};

TEST_F(AdminServiceTest, ARequestIsAJsonObject) {
  for (const auto& [path, method] : methods_) {
    for (const char* message : {"", "[]", "7", "{", "\xff"})
      EXPECT_EQ(Call(methods_, path, message).status().code(), StatusCode::kInvalidArgument)
          << path;
  }
}

TEST_F(AdminServiceTest, StatusTellsWhatRuns) {
  const Json status = AnswerTo("Status", Json::object());
  EXPECT_EQ(status["version"], "1.2");
  EXPECT_EQ(status["policy"], "null");
  EXPECT_EQ(status["config"], "the command line");
  EXPECT_EQ(status["relaySocket"], "/relay.sock");
  EXPECT_EQ(status["runtimeSocket"], "/runtime.sock");
  EXPECT_EQ(status["runtime"], "not used");
  EXPECT_EQ(status["online"], "0-3");
  EXPECT_EQ(status["state"], "saved");
  EXPECT_EQ(status["dumpLost"], 0);
  EXPECT_EQ(status["problems"], Json::array()) << "under null no runtime is needed";
}

TEST_F(AdminServiceTest, TheTopologyHasCpusThatWentOffline) {
  const auto topology = [this](const char* form) {
    return Ask("Topology", Json({{"form", form}}).dump()).value_or("");
  };
  const Json before = Json::parse(topology("json"));
  const std::string table = topology("table");
  EXPECT_THAT(table, AllOf(HasSubstr("4 CPUs online (0-3)"), Not(HasSubstr("offline"))));
  offline_ = CpuSet{2};
  Json expected = before;
  expected["cpus"][2]["online"] = false;
  EXPECT_EQ(Json::parse(topology("json")), expected) << "its core and its node stay";
  EXPECT_THAT(topology("table"), AllOf(HasSubstr("3 CPUs online (0-1,3)"),
                                       HasSubstr("\noffline: 2\n"), HasSubstr("  0-1,3\n")));
  offline_ = CpuSet();
  EXPECT_EQ(topology("table"), table);
}

TEST_F(AdminServiceTest, ACriThatIsNeededAndNotReachedIsAProblem) {
  EXPECT_FALSE(AnswerTo("Status", Json::object()).contains("criSocket"));
  AnswerTo("ConfigSet", Delivery("policy: {Active: first-fit}"));
  other_socket_ = {.path = "/cri.sock", .reachable = Unavailable("/cri.sock: nobody listens")};
  Json status = AnswerTo("Status", Json::object());
  EXPECT_EQ(status["criSocket"], "/cri.sock");
  EXPECT_EQ(status["cri"], "not used");
  EXPECT_EQ(status["problems"], Json::array());
  other_socket_->used = true;
  status = AnswerTo("Status", Json::object());
  EXPECT_EQ(status["cri"], "unreachable");
  EXPECT_THAT(status["problems"].dump(),
              testing::AllOf(HasSubstr("/cri.sock: nobody listens"),
                             HasSubstr(R"("next":"set -runtime-socket)")));
  other_socket_->reachable = OkStatus();
  status = AnswerTo("Status", Json::object());
  EXPECT_EQ(status["cri"], "reachable");
  EXPECT_EQ(status["problems"], Json::array());
}

TEST_F(AdminServiceTest, AStateThatIsNotSavedIsAProblem) {
  state_saved_ = false;
  const Json status = AnswerTo("Status", Json::object());
  EXPECT_EQ(status["state"], "not saved");
  EXPECT_THAT(status["problems"].dump(), HasSubstr("the state cannot be saved"));
}

TEST_F(AdminServiceTest, PluginsThatDoNotServeAndALossyDumpAreProblems) {
  plugins_ = {{.kind = "nri", .name = "good", .index = "10", .state = PluginView::State::kReady},
              {.kind = "nri",
               .name = "logger",
               .index = "20",
               .state = PluginView::State::kFailed,
               .last_error = "exit status 1"},
              {.kind = "hook", .name = "koordlet"}};
  dump_lost_ = 3;
  const Json status = AnswerTo("Status", Json::object());
  EXPECT_EQ(status["dumpLost"], 3);
  const Json& problems = status["problems"];
  ASSERT_EQ(problems.size(), 3U) << problems;
  EXPECT_EQ(problems[0]["kind"], "plugin");
  EXPECT_EQ(problems[0]["message"], "the nri plugin 20-logger is failed: exit status 1");
  EXPECT_EQ(problems[1]["objects"], Json::array({"koordlet"}));
  EXPECT_EQ(problems[2]["kind"], "dump");
  EXPECT_EQ(problems[2]["message"], "the dump lacks 3 calls since the daemon was started");
}

TEST_F(AdminServiceTest, ADumpThatIsWrittenAgainIsNoProblem) {
  dump_lost_ = 3;
  dump_losing_ = false;
  Json status = AnswerTo("Status", Json::object());
  EXPECT_EQ(status["dumpLost"], 3);
  EXPECT_EQ(status["problems"], Json::array());
  dump_failing_ = true;
  status = AnswerTo("Status", Json::object());
  ASSERT_EQ(status["problems"].size(), 1U);
  EXPECT_EQ(status["problems"][0]["kind"], "dump");
}

TEST_F(AdminServiceTest, AConfigurationThatIsRefusedIsAProblemUntilAnotherOneIsInForce) {
  EXPECT_EQ(CodeOf("ConfigSet", Delivery("policy: {Active: nosuch}")),
            StatusCode::kInvalidArgument);
  const Json problem = OnlyProblem();
  EXPECT_EQ(problem["kind"], "config-rejected");
  EXPECT_THAT(problem["message"].get<std::string>(),
              testing::AllOf(HasSubstr("from cri-resmgr-ctl is refused"), HasSubstr("nosuch")));
  EXPECT_EQ(CodeOf("ConfigCheck", Delivery("policy: {Active: nosuch}")),
            StatusCode::kInvalidArgument);
  AnswerTo("ConfigSet", Delivery("policy: {Active: first-fit}"));
  EXPECT_EQ(AnswerTo("Status", Json::object())["problems"], Json::array());
  EXPECT_EQ(CodeOf("ConfigCheck", Delivery("policy: {Active: nosuch}")),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(AnswerTo("Status", Json::object())["problems"], Json::array()) << "asked only";
}

// Has a pool with more requests than CPUs, one with fewer, and one whose policy counts its free
// CPUs otherwise.
class CrowdedPolicy final : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::vector<Zone> Zones(const Snapshot&) const override {
    return {{.name = "shared", .shared = {1, 2}, .shared_request = MilliCpu{2500}},
            {.name = "full", .shared = {3, 4}, .shared_request = MilliCpu{2001}, .containers = 1},
            {.name = "grows", .shared = {5}, .shared_request = MilliCpu{5000}, .free = MilliCpu{0}},
            {.name = "empty"}};
  }
};

TEST_F(AdminServiceTest, SharedContainersThatAskForMoreThanThereIsAreAProblem) {
  test::TestNode node(test::S1Ht(), [](const Machine& machine) {
    return std::make_unique<CrowdedPolicy>(machine);
  });
  host_.brain = &node.manager();
  runtime_state_ = "connected";
  const Json problem = OnlyProblem();
  EXPECT_EQ(problem["kind"], "overcommit");
  EXPECT_THAT(problem["message"].get<std::string>(),
              HasSubstr("pool shared ask for 0.5 CPUs more than its 2 CPUs (1-2)"));
  EXPECT_EQ(problem["objects"], Json::array({"pool shared"}));
  EXPECT_EQ(problem["next"], "cri-resmgr-ctl pools");
}

TEST_F(AdminServiceTest, ExplainHasTheProblemsOfAContainer) {
  test::TestNode node(test::S1Ht(), test::FirstFit);
  host_.brain = &node.manager();
  runtime_state_ = "connected";
  node.Run("a", QosClass::kGuaranteed, 2000);
  node.Run("b", QosClass::kGuaranteed, 2000);
  own_problems_ = {{.kind = "refused", .message = "m", .objects = {"ns/x/x", "ns/a/a"}}};
  const Json a = AnswerTo("Explain", {{"what", "ns/a/a"}})[0];
  ASSERT_EQ(a["problems"].size(), 1U);
  EXPECT_EQ(a["problems"][0]["kind"], "refused");
  EXPECT_FALSE(AnswerTo("Explain", {{"what", "ns/b/b"}})[0].contains("problems"));
}

TEST_F(AdminServiceTest, ExplainHasTheMistypedAnnotationsOfAContainersPod) {
  test::TestNode node(test::S1Ht(), test::FirstFit);
  host_.brain = &node.manager();
  Pod pod;
  pod.id = PodSandboxId("sandbox-of-web");
  pod.name = "web";
  pod.namespace_name = "ns";
  pod.annotations = {{"aligment.resource-policy.nri.io", "l3"},
                     {"alignment.resource-policy.nri.io/container.mian", "l3"}};
  node.runtime.held.pods.push_back(pod);
  node.manager().PodCreated(pod);
  ASSERT_TRUE(node.Create(test::TestNode::Request(pod.id, "main", 500)).ok());
  node.Run("b", QosClass::kGuaranteed, 2000);
  EXPECT_THAT(AnswerTo("Explain", {{"what", "ns/web/main"}})[0]["mistyped"],
              ElementsAre(HasSubstr("did you mean alignment?"), HasSubstr("did you mean main?")));
  EXPECT_FALSE(AnswerTo("Explain", {{"what", "ns/b/b"}})[0].contains("mistyped"));
  host_.brain = nullptr;
}

TEST_F(AdminServiceTest, ExplainSaysThatNothingWasReadOfTheRuntime) {
  test::TestNode node(test::S1Ht(), test::FirstFit);
  host_.brain = &node.manager();
  runtime_state_ = "connect: No such file";
  EXPECT_THAT(ErrorOf("Explain", {{"what", "ns/a/a"}}),
              AllOf(HasSubstr("ns/a/a"), HasSubstr("the runtime is not connected (connect: No")));
  node.Run("a", QosClass::kGuaranteed, 2000);
  EXPECT_THAT(ErrorOf("Explain", {{"what", "ns/b/b"}}), Not(HasSubstr("not connected")))
      << "what it knew before counts";
  runtime_state_ = "connected";
  EXPECT_THAT(ErrorOf("Explain", {{"what", "ns/b/b"}}), Not(HasSubstr("not connected")));
}

class SeveralRuntimesTest : public test::ServedNode {
 protected:
  SeveralRuntimesTest() : ServedNode(Two()) {}
  static Config Two() {
    Config config;
    config.runtimes.runtimes["kata"].socket = "/k.sock";
    return config;
  }
};

TEST_F(SeveralRuntimesTest, OneBesidesTheDefaultOneThatIsAwayIsAProblem) {
  runtimes_ = {{.name = "default", .socket = "/a.sock"},
               {.name = "kata",
                .socket = "/k.sock",
                .state = RuntimeView::State::kHanging,
                .last_error = "no answer"}};
  const Answer status = Call(AdminMethods(View()), "/cri_resmgr.v1.Admin/Status", "{}");
  ASSERT_TRUE(status.ok()) << status.status();
  const Json problems = Json::parse(*status)["problems"];
  ASSERT_EQ(problems.size(), 1U) << problems;
  EXPECT_EQ(problems[0]["kind"], "runtime");
  EXPECT_EQ(problems[0]["message"], "the runtime kata is hanging: no answer");
}

TEST_F(AdminServiceTest, ProblemsOfTheMachineAreToldWhileAPolicyPlaces) {
  machine_problems_ = {{.kind = "drift", .message = "the cgroup of pods may not use CPU 1"}};
  EXPECT_EQ(AnswerTo("Status", Json::object())["problems"], Json::array());
  AnswerTo("ConfigSet", Delivery("policy: {Active: first-fit}"));
  const Json problem = OnlyProblem();
  EXPECT_EQ(problem["kind"], "drift");
  EXPECT_EQ(problem["message"], machine_problems_[0].message);
  EXPECT_EQ(problem["objects"], Json::array());
  EXPECT_EQ(problem["next"], "");
  EXPECT_EQ(AnswerTo("Status", Json::object())["problems"][0]["since"], problem["since"])
      << "since it was listed first";
}

TEST_F(AdminServiceTest, TellsWhichCpusAreOffline) {
  EXPECT_EQ(AnswerTo("Status", Json::object())["offline"], "");
  offline_ = {1};
  const Json status = AnswerTo("Status", Json::object());
  EXPECT_EQ(status["online"], "0,2-3");
  EXPECT_EQ(status["offline"], "1");
}

TEST_F(AdminServiceTest, MarksTheActivePolicy) {
  EXPECT_EQ(AnswerTo("Policies", Json::object()),
            Json({{{"name", "null"}, {"description", "nothing"}, {"active", true}},
                  {{"name", "first-fit"}, {"description", "the lowest CPUs"}, {"active", false}}}));
}

TEST_F(AdminServiceTest, ListsThePluginsOfTheFrontDoor) {
  EXPECT_EQ(AnswerTo("Plugins", Json::object()), Json::array());
  plugins_ = {{.kind = "nri", .name = "a"}, {.kind = "nri", .name = "b"}};
  const Json plugins = AnswerTo("Plugins", Json::object());
  ASSERT_EQ(plugins.size(), 2U);
  EXPECT_EQ(plugins[1]["name"], "b");
}

TEST_F(AdminServiceTest, TellsOfTheRuntimes) {
  EXPECT_EQ(AnswerTo("Runtimes", Json::object()), Json::array());
  runtimes_ = {{.name = "default", .socket = "/a.sock"},
               {.name = "kata",
                .socket = "/k.sock",
                .version = "containerd 2.0",
                .state = RuntimeView::State::kHanging,
                .since = std::chrono::system_clock::time_point(std::chrono::milliseconds(1500)),
                .handlers = {"kata"},
                .pods = 3,
                .containers = 4,
                .calls = 5,
                .errors = 1,
                .last_error = "no answer"}};
  const Json runtimes = AnswerTo("Runtimes", Json::object());
  ASSERT_EQ(runtimes.size(), 2U);
  EXPECT_EQ(runtimes[0]["state"], "away");
  EXPECT_EQ(runtimes[0]["since"], nullptr);
  EXPECT_EQ(runtimes[0]["pods"], nullptr);
  EXPECT_EQ(runtimes[1], Json({{"name", "kata"},
                               {"socket", "/k.sock"},
                               {"version", "containerd 2.0"},
                               {"state", "hanging"},
                               {"since", "1970-01-01T00:00:01.500Z"},
                               {"handlers", {"kata"}},
                               {"pods", 3},
                               {"containers", 4},
                               {"calls", 5},
                               {"errors", 1},
                               {"lastError", "no answer"}}));
}

TEST_F(AdminServiceTest, UnderTheNullPolicyListsAreEmptyAndDecisionsCannotBeExplained) {
  EXPECT_EQ(AnswerTo("Containers", Json::object()), Json::array());
  EXPECT_EQ(AnswerTo("Pools", Json::object()), Json::array());
  EXPECT_EQ(AnswerTo("History", Json::object()), Json::array());
  EXPECT_EQ(CodeOf("Explain", {{"what", "pod"}}), StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf("Rebalance", {{"apply", true}}), StatusCode::kFailedPrecondition);
}

TEST_F(AdminServiceTest, ARebalanceByUseNeedsSamples) {
  EXPECT_EQ(CodeOf("RebalanceByUse", {{"apply", true}}), StatusCode::kUnavailable);
  for (const int wrong : {-1, 101})
    EXPECT_EQ(CodeOf("RebalanceByUse", {{"moves", wrong}}), StatusCode::kInvalidArgument);
}

TEST_F(AdminServiceTest, ExplainsWhatMemoryLiesElsewhere) {
  test::TestNode brain{test::S1Ht(), [](const Machine& machine) {
                         auto policy = std::make_unique<test::FirstFitPolicy>(machine);
                         policy->spoil = [](Plan& plan) {
                           for (PlacementChange& change : plan.changes)
                             change.placement.mems = NodeSet{0};
                         };
                         return policy;
                       }};
  const ContainerId id = brain.Run("app", QosClass::kGuaranteed, 1000);
  host_.brain = &brain.manager();
  const TempDir mount;
  for (const char* const controller : {"cpuset", "memory"})
    std::filesystem::create_directories(
        mount.File(fmt::format("{}/pods/{}", controller, id.value())));
  const std::string file = mount.File(fmt::format("memory/pods/{}/memory.numa_stat", id.value()));
  std::ofstream(file) << "anon=2000 N0=0 N1=2000\n";
  NodeView view = View();
  view.cgroup_mount = mount.path();
  const auto explain = [&] { return Explained(view, "app"); };
  EXPECT_THAT(explain().value("memoryElsewhere", ""), HasSubstr("on memory node 1 stays there"));
  std::filesystem::remove(file);
  EXPECT_FALSE(explain().contains("memoryElsewhere"));
  host_.brain = nullptr;
}

TEST_F(AdminServiceTest, AClaimIsReleasedByOrder) {
  test::TestNode brain{test::S1Ht(), test::FirstFit};
  ASSERT_TRUE(brain.Reserve(claim_).ok());
  host_.brain = &brain.manager();
  LostClaims lost({.loop = brain.loop(),
                   .manager = [&brain] { return &brain.manager(); },
                   .holder = brain.manager().claims(),
                   .get = [](const auto&, const auto&) {}});
  NodeView view = View();
  view.lost_claims = &lost;
  const UnaryServer::Methods methods = AdminMethods(view);
  const auto release = [&](const std::string& request) {
    return Call(methods, "/cri_resmgr.v1.Admin/ReleaseClaim", request);
  };
  EXPECT_EQ(release(R"({"force":true})").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(release(R"({"claim":"shop/fast"})").status().code(), StatusCode::kFailedPrecondition);
  const std::string cpus = brain.manager().held_claims().Cpus().ToString();
  const Answer released = release(R"({"claim":"shop/fast","force":true})");
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_EQ(*released, R"({"uid":"u-1","cpus":")" + cpus + R"("})");
  EXPECT_TRUE(brain.manager().held_claims().empty());
  host_.brain = nullptr;
}

TEST_F(AdminServiceTest, ExplainTellsOfAClaimsFile) {
  test::TestNode brain{test::S1Ht(), test::FirstFit};
  ASSERT_TRUE(brain.Reserve(claim_).ok());
  host_.brain = &brain.manager();
  const TempDir cdi;
  const std::string file = cdi.File("cri-resmgr.intel.com-cpu_claim-u-1.json");
  std::ofstream(file) << "{}";
  NodeView view = View();
  view.cdi_directory = cdi.path();
  const auto explain = [&] { return Explained(view, "shop/fast"); };
  const Json found = explain();
  EXPECT_EQ(found["cdiFile"], file);
  EXPECT_THAT(found.value("since", ""), HasSubstr("T"));
  std::filesystem::remove(file);
  EXPECT_THAT(explain().value("cdiFile", ""), HasSubstr("none in " + cdi.path()));
  EXPECT_FALSE(explain().contains("since"));
  host_.brain = nullptr;
}

// `explain -w` goes on when the daemon and its runtime are started again.
TEST_F(AdminServiceTest, BeforeTheRuntimeIsReadItIsNotKnownWhetherAContainerExists) {
  test::TestNode node(test::S1Ht(), test::FirstFit);
  ResourceManager starting(node.loop(), node.machine(), test::FirstFit(node.machine()),
                           node.runtime, nullptr, test::TestNode::FastOptions());
  host_.brain = &starting;
  const Status unknown = Ask("Explain", R"({"what":"web"})").status();
  host_.brain = nullptr;
  EXPECT_EQ(unknown.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(unknown)),
              AllOf(HasSubstr("no container is called web"), HasSubstr("no containers are known")));
}

TEST_F(AdminServiceTest, UnderTheNullPolicyWhatHookServersChangedIsExplained) {
  SeenContainer seen;
  seen.pod.name = "web";
  seen.container.id = ContainerId("c1");
  seen.container.name = "main";
  seen_ = {seen};
  const Json explained = AnswerTo("Explain", {{"what", "web"}});
  ASSERT_EQ(explained.size(), 1U);
  EXPECT_EQ(explained[0]["id"], "c1");
  EXPECT_EQ(explained[0]["policy"], "null");
  EXPECT_EQ(CodeOf("Explain", {{"what", "db"}}), StatusCode::kNotFound);
}

// A former policy bound them. The change itself is not refused where the runtime was away.
TEST_F(AdminServiceTest, UnderTheNullPolicyContainersThatAreNotReleasedAreNamed) {
  test::TestNode node(test::S1Ht(), test::FirstFit);
  node.Run("b", QosClass::kGuaranteed, 2000);
  const ContainerId stuck = node.Run("a", QosClass::kBurstable, 100);
  node.runtime.AnswerAll();
  node.manager().RuntimeDisconnected();
  node.manager().policy_changes().Set(std::make_unique<NullPolicy>(), [](const Status&) {});
  node.manager().RuntimeConnected();
  node.runtime.AnswerList();
  while (!node.runtime.updates.empty()) {
    const bool refused = node.runtime.updates[0].id == stuck;
    node.runtime.Answer(0, refused ? Internal("disk on fire") : OkStatus());
  }
  host_.releasing = &node.manager();
  SeenContainer seen;
  seen.pod.namespace_name = "ns";
  seen.pod.name = "b";
  seen.container.id = ContainerId("id-of-b");
  seen.container.name = "b";
  seen_ = {seen};

  const Json status = AnswerTo("Status", Json::object());
  EXPECT_EQ(status["containers"], 0);
  EXPECT_EQ(status["stillBound"], 1);
  const Json problem = OnlyProblem();
  EXPECT_EQ(problem["kind"], "runtime");
  EXPECT_EQ(problem["message"], "the runtime does not update ns/a/a: disk on fire");
  const Json a = AnswerTo("Explain", {{"what", "a"}});
  ASSERT_EQ(a.size(), 1U);
  EXPECT_EQ(a[0]["policy"], "null");
  EXPECT_EQ(a[0]["settled"], false);
  EXPECT_THAT(a[0].value("notUpdated", ""), HasSubstr("disk on fire"));
  EXPECT_EQ(a[0]["problems"].size(), 1U);
  const Json all = AnswerTo("Explain", {{"what", ""}});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["name"], "a");
  EXPECT_EQ(all[1]["id"], "id-of-b");
  EXPECT_FALSE(all[1].contains("settled")) << "it is released";

  host_.releasing = nullptr;
  EXPECT_FALSE(AnswerTo("Status", Json::object()).contains("stillBound"));
  EXPECT_EQ(CodeOf("Explain", {{"what", "a"}}), StatusCode::kNotFound);
}

TEST_F(AdminServiceTest, UnderTheNullPolicyWithPluginsTheRuntimeIsUsed) {
  test::FunctionStage plugins({.name = "nri", .operations = {Operation::kCreateContainer}});
  pipeline_.Add(plugins);
  SeenContainer seen;
  seen.pod.id = PodSandboxId("p1");
  seen_ = {seen, seen};
  const Json status = AnswerTo("Status", Json::object());
  EXPECT_EQ(status["runtime"], "used without a policy");
  EXPECT_EQ(status["pods"], 1);
  EXPECT_EQ(status["containers"], 2);
  seen_.clear();
  const Status why = Ask("Explain", Json({{"what", "pod"}}).dump()).status();
  EXPECT_THAT(std::string(Message(why)), testing::Not(HasSubstr("pass unread")));
  pipeline_.Remove(plugins);
}

TEST_F(AdminServiceTest, MembersOfAnotherTypeAreRefused) {
  EXPECT_EQ(CodeOf("Containers", {{"namespace", 7}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("Containers", {{"selector", "a in ("}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("History", {{"count", -1}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("Log", {{"level", "loud"}, {"source", ""}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("Log", {{"level", "info"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("ConfigSet", {{"name", "x"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("Containers", {{"cpus", "x"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("Containers", {{"cpus", "999"}}), StatusCode::kNotFound);
  EXPECT_EQ(CodeOf("Containers", {{"node", "7"}}), StatusCode::kNotFound);
}

// A pool without containers is not a mistake; one that the policy does not have is.
TEST_F(AdminServiceTest, ContainersOfAPoolThatThereIsNotAreAskedForInVain) {
  test::TestNode brain{test::S1Ht(), [](const Machine& machine) {
                         return std::make_unique<PolicyWithPools>(machine);
                       }};
  host_.brain = &brain.manager();
  EXPECT_EQ(AnswerTo("Containers", {{"pool", "spare"}}), Json::array());
  EXPECT_EQ(CodeOf("Containers", {{"pool", "sare"}}), StatusCode::kNotFound);
  EXPECT_EQ(ErrorOf("Containers", {{"pool", "sare"}}),
            "the policy first-fit has no pool sare; did you mean spare? There are: spare, shared");
}

TEST_F(AdminServiceTest, TheLevelOfASourceThatThereIsNotIsRefused) {
  GetLogger("nri/host");
  EXPECT_EQ(CodeOf("Log", {{"level", "info"}, {"source", "nosuch"}}), StatusCode::kNotFound);
  EXPECT_EQ(AnswerTo("Log", {{"level", "info"}, {"source", "nri/host"}}), Json::object());
  const Json sources = AnswerTo("LogSources", Json::object());
  EXPECT_THAT(sources.get<std::vector<std::string>>(), testing::Contains("nri/host"));
}

TEST_F(AdminServiceTest, OnePodsCallsAreDumpedForAWhile) {
  NodeView view = View();
  view.dumper = dumper_.get();
  const UnaryServer::Methods methods = AdminMethods(view);
  const auto ask = [&](std::string_view method, const Json& request) {
    return Call(methods, fmt::format("/cri_resmgr.v1.Admin/{}", method), request.dump());
  };
  for (const char* const pod : {"web", "/web", "shop/web/main"}) {
    EXPECT_EQ(ask("DumpPod", {{"pod", pod}, {"seconds", 2}}).status().code(),
              StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(ask("DumpPod", {{"pod", "shop/web"}, {"seconds", 0}}).status().code(),
            StatusCode::kInvalidArgument);
  const Answer begun = ask("DumpPod", {{"pod", "shop/web"}, {"seconds", 1}});
  ASSERT_TRUE(begun.ok()) << begun.status();
  const Json trace = Json::parse(*begun);
  EXPECT_EQ(ask("DumpPod", {{"pod", "shop/web"}, {"seconds", 1}}).status().code(),
            StatusCode::kFailedPrecondition)
      << "one at a time";
  const Answer of_another =
      Call(AdminMethods(view), "/cri_resmgr.v1.Admin/DumpPodNext", trace.dump());
  EXPECT_EQ(of_another.status().code(), StatusCode::kNotFound);
  constexpr std::string_view kVersion = "/runtime.v1.RuntimeService/Version";
  EXPECT_EQ(dumper_->WantsMethod(kVersion), dump::Interest::kMessages);
  const Answer piece = ask("DumpPodNext", trace);
  ASSERT_TRUE(piece.ok());
  EXPECT_FALSE(Json::parse(*piece)["over"]);
  // The dump ends by itself.
  const auto later = loop_.After(std::chrono::milliseconds(1'200), [this] { loop_.Stop(); });
  RunLoop();
  EXPECT_EQ(dumper_->WantsMethod(kVersion), dump::Interest::kNone);
  EXPECT_TRUE(Json::parse(*ask("DumpPodNext", trace))["over"]);
  EXPECT_EQ(ask("DumpPodNext", trace).status().code(), StatusCode::kNotFound);
}

TEST_F(AdminServiceTest, AConfigurationIsShownAsItWasSet) {
  EXPECT_EQ(AnswerTo("ConfigSet", Delivery("logger: {Level: error}"))["policy"], "null");
  const Json shown = AnswerTo("ConfigShow", Json::object());
  EXPECT_EQ(shown["source"], "test.yaml");
  EXPECT_THAT(shown["yaml"].get<std::string>(), HasSubstr("Level: error"));
}

TEST_F(AdminServiceTest, AConfigurationThatIsInForceAndCannotBeSavedIsTold) {
  saved_ = Unavailable("no space left");
  Json answer = AnswerTo("ConfigSet", Delivery("logger: {Level: error}"));
  EXPECT_EQ(answer["policy"], "null");
  EXPECT_EQ(answer["notSaved"], "no space left");
  saved_ = OkStatus();
  answer = AnswerTo("ConfigForce", Delivery("logger: {Level: error}"));
  EXPECT_FALSE(answer.contains("notSaved"));
}

// The first print is for those that asked before it began, the second for the rest.
TEST_F(AdminServiceTest, EveryCallThatWaitsForAPrintIsAnswered) {
  int answers = 0;
  const auto& show = methods_.at("/cri_resmgr.v1.Admin/ConfigShow");
  for (int i = 0; i < 50; ++i) {
    show("{}", [&](const Answer& answer) {
      EXPECT_EQ(answer.status(), OkStatus());
      if (++answers == 50) loop_.Stop();
    });
  }
  RunLoop();
  EXPECT_EQ(answers, 50);
}

TEST_F(AdminServiceTest, ACheckTellsMovesAndLossesAndChangesNothing) {
  host_.moves = {Loss()};
  const Json checked = AnswerTo("ConfigCheck", Delivery("policy: {Active: first-fit}"));
  EXPECT_EQ(checked["policy"], "first-fit");
  EXPECT_EQ(checked["moves"].size(), 1u);
  EXPECT_EQ(checked["losses"], checked["moves"]);
  EXPECT_EQ(checked["movesKnown"], false) << "the null policy knows no containers";
  EXPECT_EQ(host_.changes, 0);
}

TEST_F(AdminServiceTest, OnlyConfigForceTakesExclusiveCpusAway) {
  host_.moves = {Loss()};
  const Json delivery = Delivery("policy: {Active: first-fit}");
  const Answer refused = Ask("ConfigSet", delivery.dump());
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("default/dsp/main"));
  EXPECT_EQ(AnswerTo("ConfigForce", delivery)["policy"], "first-fit");
}

TEST_F(AdminServiceTest, AMessageThatIsTooLongIsRefusedUnread) {
  const std::string message(size_t{4} << 20, ' ');
  for (const char* method : {"ConfigSet", "ConfigForce", "ConfigCheck"})
    EXPECT_EQ(Ask(method, message).status().code(), StatusCode::kResourceExhausted) << method;
}

TEST_F(AdminServiceTest, ANameIsShortAndPrintable) {
  const std::string name = "\x1b]0;" + std::string(1000, 'x');
  AnswerTo("ConfigSet", {{"name", name}, {"text", "logger: {Level: error}"}});
  EXPECT_LE(configurator_.source().size(), 300u);
  EXPECT_EQ(configurator_.source().find('\x1b'), std::string::npos);
}

TEST_F(AdminServiceTest, AnAuditNeedsAPolicy) {
  EXPECT_EQ(CodeOf("Audit", Json::object()), StatusCode::kFailedPrecondition);
}

TEST_F(AdminServiceTest, UninstallTellsWhatWouldChange) {
  host_.moves.push_back({.container = "ns/pod/main", .from = {}, .to = {}});
  const Json told = AnswerTo("Uninstall", Json::object());
  EXPECT_EQ(told["moves"][0]["container"], "ns/pod/main");
  EXPECT_EQ(told["done"], false);
  EXPECT_EQ(host_.changes, 0);
}

TEST_F(AdminServiceTest, UninstallWaitsUntilAllIsLetGo) {
  host_.let_go = false;
  const auto later = loop_.After(std::chrono::milliseconds(120), [this] { host_.let_go = true; });
  EXPECT_EQ(AnswerTo("Uninstall", {{"apply", true}})["done"], true);
  EXPECT_EQ(CodeOf("ConfigSet", Delivery("policy: {Active: first-fit}")),
            StatusCode::kFailedPrecondition);
}

TEST_F(AdminServiceTest, UninstallDoesNotWaitForEver) {
  host_.let_go = false;
  std::optional<Answer> answer;
  const NodeView view = View();
  Uninstall(
      view, true,
      [&](Answer given) {
        answer = std::move(given);
        loop_.Stop();
      },
      std::chrono::milliseconds(100));
  RunLoop();
  ASSERT_TRUE(answer.has_value() && answer->ok());
  EXPECT_EQ(Json::parse(**answer)["done"], false);
}

}  // namespace
}  // namespace resmgr
