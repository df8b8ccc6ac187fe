// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/node_json.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/admin/history_json.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using resmgr::test::Must;
using resmgr::test::TestNode;
using testing::HasSubstr;
using testing::MatchesRegex;

using enum QosClass;

class NodeJsonTest : public testing::Test {
 protected:
  OrderedJson Explain(std::string_view what) {
    StatusOr<OrderedJson> list = ExplainJson(node_.manager(), what);
    EXPECT_TRUE(list.ok()) << list.status();
    return list.ok() ? *std::move(list) : OrderedJson();
  }

  TestNode node_{test::S1Ht(), test::FirstFit};
};

TEST_F(NodeJsonTest, TellsOfContainersWhatTheContractNames) {
  node_.Run("web", kGuaranteed, 2000);
  const OrderedJson list = ContainersJson(node_.manager().snapshot(), "first-fit");
  ASSERT_EQ(list.size(), 1U);
  std::vector<std::string> names;
  for (const auto& [name, value] : list[0].items())
    names.push_back(name);
  EXPECT_THAT(names, testing::ElementsAre("id", "pod", "namespace", "name", "qos", "state", "cpus",
                                          "mems", "exclusive", "shared", "shares", "quota",
                                          "period", "memoryLimit", "pool", "policy", "reason"));
  EXPECT_EQ(list[0]["qos"], "Guaranteed");
  EXPECT_EQ(list[0]["policy"], "first-fit");
}

TEST_F(NodeJsonTest, ContainersAreChosenByWhereTheyMayRun) {
  node_.Run("dsp", kGuaranteed, 2000);
  node_.Run("web", kBurstable, 100);
  const auto chosen = [this](const ContainerChoice& choice) {
    std::vector<std::string> pods;
    for (const OrderedJson& each : ContainersJson(node_.manager().snapshot(), "first-fit", choice))
      pods.push_back(each["pod"]);
    return pods;
  };
  ContainerChoice choice;
  choice.cpus = {1};
  EXPECT_THAT(chosen(choice), testing::ElementsAre("dsp"));
  choice.cpus = {7};
  EXPECT_THAT(chosen(choice), testing::ElementsAre("web"));
  choice = {};
  choice.node = {.id = 0, .cpus = CpuSet{0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_THAT(chosen(choice), testing::ElementsAre("dsp", "web"));
  choice.pool = "nowhere";
  EXPECT_THAT(chosen(choice), testing::IsEmpty());
}

TEST_F(NodeJsonTest, PodsWithoutContainersAreCounted) {
  node_.Run("web", kBurstable, 100);
  node_.AddPod("idle", kBurstable);
  EXPECT_EQ(HeldJson(node_.manager())["pods"], 2);
  EXPECT_EQ(HeldJson(node_.manager())["containers"], 1);
}

TEST_F(NodeJsonTest, ClaimsAreShownAsWhatHoldsTheirCpus) {
  const Claim claim{.uid = "u-1",
                    .namespace_name = "shop",
                    .name = "fast",
                    .parts = {{.device = "cpu", .cpus = 2}}};
  const ClaimGrant grant = Must(node_.Reserve(claim));
  OrderedJson explained = Explain("shop/fast");
  ASSERT_EQ(explained.size(), 1U);
  EXPECT_EQ(explained[0]["claim"], "u-1");
  EXPECT_EQ(explained[0]["state"], "claim");
  EXPECT_EQ(explained[0]["exclusive"], grant.All().ToString());
  EXPECT_EQ(explained[0]["settled"], true);
  EXPECT_TRUE(explained[0]["carriers"].empty());
  EXPECT_TRUE(explained[0]["reservedFor"].empty());
  EXPECT_EQ(HeldJson(node_.manager())["exclusive"], grant.All().ToString());
}

TEST_F(NodeJsonTest, AClaimNamesThePodsThatItIsReservedFor) {
  node_.Run("web", kBurstable, 100);
  const Claim claim{.uid = "u-1",
                    .namespace_name = "shop",
                    .name = "fast",
                    .parts = {{.device = "cpu", .cpus = 2}},
                    .pods = {"uid-elsewhere", "uid-web"}};
  ASSERT_TRUE(node_.Reserve(claim).ok());
  OrderedJson explained = Explain("shop/fast");
  ASSERT_EQ(explained.size(), 1U);
  EXPECT_EQ(explained[0]["reservedFor"].dump(),
            R"([{"uid":"uid-elsewhere"},{"uid":"uid-web","pod":"ns/web"}])");
}

TEST_F(NodeJsonTest, AClaimIsFoundByItsUidToo) {
  const Claim claim{.uid = "8ec6fd12-bb08",
                    .namespace_name = "shop",
                    .name = "fast",
                    .parts = {{.device = "cpu-numa-0", .node = 0, .cpus = 2},
                              {.device = "cpu-numa-0", .node = 0, .cpus = 1}},
                    .options = {.whole_cores = false, .share_within_pod = true}};
  const ClaimGrant grant = Must(node_.Reserve(claim));
  for (const char* const what : {"8ec6fd12-bb08", "8ec6fd", "shop/fast", "fast"}) {
    const OrderedJson parts = Explain(what);
    ASSERT_EQ(parts.size(), 2U) << what;
    EXPECT_EQ(parts[0]["exclusive"], grant.cpus[0].ToString());
    EXPECT_EQ(parts[0]["claimState"], "held");
    EXPECT_EQ(parts[0]["device"], "cpu-numa-0");
    EXPECT_EQ(parts[0]["numaNode"], 0);
    EXPECT_EQ(parts[0]["wholeCores"], false);
    EXPECT_EQ(parts[1]["sharedWithinPod"], true);
    EXPECT_EQ(parts[1]["exclusive"], grant.cpus[1].ToString());
  }
  EXPECT_FALSE(ExplainJson(node_.manager(), "8ec6").ok()) << "too short";
}

TEST(NamesTest, ABeginningNamesItWhereItIsAskedFor) {
  constexpr std::string_view kFull = "shop/orders-db-0/main";
  for (const char* const what : {"orders-db-0", "shop/orders-db-0", "orders-db-0/main"})
    EXPECT_TRUE(NamesFull(kFull, what)) << what;
  for (const char* const what : {"orders", "shop/ord", "orders-db-0/m"}) {
    EXPECT_FALSE(NamesFull(kFull, what)) << what;
    EXPECT_TRUE(NamesFull(kFull, what, NameMatch::kBeginning)) << what;
  }
  EXPECT_FALSE(NamesFull(kFull, "main", NameMatch::kBeginning));
}

TEST(NamesTest, WhatIsNotFoundSuggestsWhatIsNear) {
  const auto message = [](std::string_view what) {
    return std::string(Message(NoSuchContainer(what, {"shop/orders-db/main", "shop/web/nginx"})));
  };
  EXPECT_EQ(message("order-db"), "no container is called order-db; did you mean orders-db?");
  EXPECT_EQ(message("shop/wep"), "no container is called shop/wep; did you mean shop/web?");
  EXPECT_EQ(message("quite-different"), "no container is called quite-different");
}

TEST_F(NodeJsonTest, ShowsTheNumbersInForceAndWhoSetThem) {
  const ContainerId id = node_.Run("app", kGuaranteed, 2000);
  const auto shown = [this] { return Explain("app").at(0); };
  EXPECT_EQ(shown()["shares"], 2048);
  EXPECT_EQ(shown()["quota"], -1) << "the policy lifts it";
  const OrderedJson quota = {
      {"field", "cpu_quota"}, {"key", ""}, {"stage", "policy"}, {"plugin", ""}, {"value", "none"}};
  EXPECT_THAT(shown()["owners"], testing::Contains(quota));
  // Sets values as a hook server or a plugin does.
  node_.manager().set_later().SetByStage(
      id, {.cpu_shares = 512, .cpu_quota = 60'000, .cpu_period = 50'000},
      /*accepted=*/true);
  EXPECT_EQ(shown()["shares"], 512);
  EXPECT_EQ(shown()["quota"], 60'000);
  EXPECT_EQ(shown()["period"], 50'000);
}

TEST_F(NodeJsonTest, ExplainsWhatElseAContainerHas) {
  Pod pod;
  pod.id = PodSandboxId("s-1");
  pod.name = "db";
  pod.namespace_name = "shop";
  pod.qos = kBurstable;
  pod.overhead.cpu_shares = 256;
  pod.annotations.Set("intel.com/resources",
                      R"({"initContainers":{"proxy":{"requests":{"cpu":"1"}}},
          "containers":{"db":{"limits":{"cpu":"1","example.com/nic":2}}}})");
  node_.manager().PodCreated(pod);
  for (const char* const name : {"proxy", "db", "debugger"}) {
    CreateRequest request = test::TestNode::Request(pod.id, name, 1000);
    request.resources.hugepage_limits = {{"2MB", 4096}};
    ASSERT_TRUE(node_.Create(request).ok());
  }
  LinuxResources overhead;
  overhead.memory_limit = 1 << 20;
  LinuxResources resources;
  resources.cpu_quota = 50'000;
  node_.manager().PodResourcesChanged(pod.id, overhead, resources);
  node_.manager().PodResourcesChanged(PodSandboxId("unknown"), overhead, resources);

  EXPECT_EQ(node_.manager().snapshot().Overheads().shown, (Overhead{{250}, {1 << 20}}));
  const OrderedJson db = Explain("shop/db/db").at(0);
  EXPECT_EQ(db["role"], "regular");
  EXPECT_EQ(db["otherResources"], OrderedJson({{"example.com/nic", 2}}));
  EXPECT_EQ(db["podOverhead"], OrderedJson({{"shares", 256}, {"memoryLimit", 1 << 20}}))
      << "what an update leaves out stays";
  EXPECT_EQ(db["podResources"], OrderedJson({{"quota", 50'000}}));
  EXPECT_EQ(Explain("shop/db/proxy").at(0)["role"], "sidecar");
  const OrderedJson debugger = Explain("shop/db/debugger").at(0);
  EXPECT_EQ(debugger["role"], "");
  EXPECT_EQ(debugger["otherResources"], OrderedJson({{"hugepages-2Mi", 4096}}));
}

class HistoryJsonTest : public testing::Test {
 protected:
  StatusOr<OrderedJson> Explain(std::string_view what) {
    return WithRefusals(ExplainJson(node_.manager(), what), history_, node_.manager().snapshot(),
                        what);
  }

  History history_{
      16, [] {
        return std::chrono::system_clock::time_point(std::chrono::milliseconds(1'700'000'000'042));
      }};
  // CPUs 0-7.
  TestNode node_{test::S1Ht(), test::FirstFit, TestNode::Observed(history_)};
};

TEST_F(HistoryJsonTest, HasTheContractsMembers) {
  node_.Run("web", kBurstable, 100);
  node_.Run("db", kBurstable, 100);
  node_.Run("dsp", kGuaranteed, 1000);
  EXPECT_FALSE(node_.Create("large", kGuaranteed, 8000).ok());
  const OrderedJson list = HistoryJson(history_, 3);
  EXPECT_EQ(list[0].dump(),
            R"({"time":"2023-11-14T22:13:20.042Z","event":"placed","container":"ns/dsp/dsp",)"
            R"("cpus":"1","mems":"","exclusive":"1","reason":"","error":""})");
  EXPECT_EQ(
      list[1].dump(),
      R"({"time":"2023-11-14T22:13:20.042Z","event":"moved","container":"ns/web/web and 1 more",)"
      R"("cpus":"0,2-7","mems":"","exclusive":"","reason":"for the sake of ns/dsp/dsp","error":""})");
  EXPECT_EQ(list[2]["event"], "refused");
  EXPECT_THAT(list[2]["error"].get<std::string>(), HasSubstr("needs 8 CPUs, 6 are free"));
  EXPECT_EQ(HistoryJson(history_, 100).size(), 5U);
}

TEST_F(HistoryJsonTest, ARefusedContainerIsExplained) {
  EXPECT_FALSE(node_.Create("large", kGuaranteed, 8000).ok());
  for (const char* const what : {"large", "ns/large", "large/large", "ns/large/large"}) {
    const StatusOr<OrderedJson> explained = Explain(what);
    ASSERT_TRUE(explained.ok()) << what << ": " << explained.status();
    ASSERT_EQ(explained->size(), 1U);
    const OrderedJson& object = explained->front();
    EXPECT_EQ(object["state"], "refused");
    EXPECT_EQ(object["namespace"], "ns");
    EXPECT_EQ(object["pod"], "large");
    EXPECT_THAT(object["reason"].get<std::string>(), HasSubstr("needs 8 CPUs, 7 are free"));
    EXPECT_THAT(object["refused"].get<std::string>(),
                testing::StartsWith(object["reason"].get<std::string>() + "; refused at 20"));
    EXPECT_EQ(object["request"], 8000);
    EXPECT_EQ(object["qos"], "Guaranteed");
  }
  EXPECT_EQ(Explain("small").status().code(), StatusCode::kNotFound);
}

TEST_F(HistoryJsonTest, AContainerThatAPluginRefusedIsExplained) {
  CreateRequest request = TestNode::Request(node_.AddPod("app", kGuaranteed), "app", 1000);
  const auto admission = Must(node_.manager().AdmitCreate(std::move(request)));
  node_.manager().CreateFailed(admission.key,
                               FailedPrecondition("plugin \"10-a\" wants to set OciHooks /h"));
  const OrderedJson list = HistoryJson(history_, 1);
  EXPECT_EQ(list[0]["event"], "refused");
  EXPECT_EQ(list[0]["error"], "plugin \"10-a\" wants to set OciHooks /h");
  EXPECT_EQ(list[0]["cpus"], "");
  const OrderedJson explained = Must(Explain("app"));
  EXPECT_EQ(explained.front()["state"], "refused");
}

// Only the API server bounds names; other clients of the relay need not.
TEST_F(HistoryJsonTest, ARefusedContainerOfALongNameIsExplained) {
  EXPECT_FALSE(node_.Create(std::string(5'000, 'x'), kGuaranteed, 8000).ok());
  const OrderedJson explained = Must(Explain(""));
  ASSERT_EQ(explained.size(), 1U);
  const OrderedJson& object = explained.front();
  EXPECT_EQ(object["namespace"], "ns");
  EXPECT_THAT(object["pod"].get<std::string>(), MatchesRegex("x+"));
  EXPECT_EQ(object["name"], object["pod"]);
}

TEST_F(HistoryJsonTest, ARefusalIsOverOnceTheContainerIsPlaced) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 7000);
  EXPECT_FALSE(node_.Create("app", kGuaranteed, 2000).ok());
  node_.Stop(dsp);
  node_.Run("app", kGuaranteed, 2000);
  const OrderedJson explained = Must(Explain("app"));
  ASSERT_EQ(explained.size(), 1U);
  EXPECT_EQ(explained.front()["state"], "running");
  EXPECT_FALSE(explained.front().contains("refused"));
}

TEST_F(HistoryJsonTest, ARefusedUpdateIsToldOfTheContainerThatIsThere) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  EXPECT_FALSE(node_.manager().AdmitUpdate(app, TestNode::Resources(9000)).ok());
  const OrderedJson explained = Must(Explain("app"));
  ASSERT_EQ(explained.size(), 1U);
  EXPECT_EQ(explained.front()["state"], "running");
  EXPECT_THAT(explained.front()["refused"].get<std::string>(),
              testing::AllOf(HasSubstr("an update: "), HasSubstr("; refused at ")));
}

// As the page asks.
TEST_F(HistoryJsonTest, AnIdTellsOfARefusalAsTheNameDoes) {
  const ContainerId app = node_.Run("application", kGuaranteed, 2000);
  EXPECT_FALSE(node_.manager().AdmitUpdate(app, TestNode::Resources(9000)).ok());
  const OrderedJson explained = Must(Explain(app.value()));
  ASSERT_EQ(explained.size(), 1U);
  EXPECT_TRUE(explained.front().contains("refused"));
}

TEST_F(HistoryJsonTest, ARestartOfTheDaemonUndoesNoRefusedUpdate) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  EXPECT_FALSE(node_.manager().AdmitUpdate(app, TestNode::Resources(9000)).ok());
  node_.Restart();
  EXPECT_EQ(HistoryJson(history_, 1)[0]["event"], "adopted");
  const OrderedJson explained = Must(Explain("app"));
  ASSERT_EQ(explained.size(), 1U);
  EXPECT_TRUE(explained.front().contains("refused"));
}

}  // namespace
}  // namespace resmgr
