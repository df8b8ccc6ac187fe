// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_clients.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/fake_runtime_client.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RuntimeClientsTest : public testing::Test {
 protected:
  static void Hold(test::FakeRuntimeClient& runtime, const std::string& name) {
    Pod pod;
    pod.id = PodSandboxId("pod-" + name);
    runtime.held.pods.push_back(pod);
    RuntimeContainer container;
    container.id = ContainerId(name);
    container.pod_id = pod.id;
    runtime.held.containers.push_back(container);
  }

  // Answers the lists of the runtimes whose status is OK.
  StatusOr<RuntimeInventory> List(const Status& first, const Status& second) {
    std::optional<StatusOr<RuntimeInventory>> result;
    clients_.ListAll({},
                     [&](StatusOr<RuntimeInventory> inventory) { result = std::move(inventory); });
    Answer(second_, second);
    EXPECT_FALSE(result.has_value()) << "not before all have answered";
    Answer(first_, first);
    return result.value_or(Internal("no answer"));
  }
  // Makes a list that only the first runtime answers; returns how long it took.
  std::chrono::steady_clock::duration ListFirst() {
    listed_.reset();
    clients_.ListAll({}, [this](StatusOr<RuntimeInventory> inventory) {
      listed_ = std::move(inventory);
      loop_.Stop();
    });
    Answer(first_, OkStatus());
    const auto begin = std::chrono::steady_clock::now();
    loop_.Run();
    return std::chrono::steady_clock::now() - begin;
  }
  static void Answer(test::FakeRuntimeClient& runtime, const Status& status) {
    if (status.ok()) {
      runtime.AnswerList();
    } else {
      runtime.FailList(status);
    }
  }

  void Connected(const std::vector<size_t>& clients) { clients_.OnConnected(clients); }

  EventLoop loop_;
  std::optional<StatusOr<RuntimeInventory>> listed_;  // by ListFirst
  Backends backends_{
      {{.name = "default", .socket = "/first"}, {.name = "kata", .socket = "/kata"}}};
  test::FakeRuntimeClient first_;
  test::FakeRuntimeClient second_;
  int connects_ = 0;
  int joins_ = 0;
  int disconnects_ = 0;
  RuntimeClients clients_{loop_,
                          backends_,
                          {&first_, &second_},
                          {.connected = [this] { ++connects_; },
                           .joined = [this] { ++joins_; },
                           .disconnected = [this] { ++disconnects_; }}};
};

TEST_F(RuntimeClientsTest, ListsAllAndUpdatesTheOwner) {
  Hold(first_, "a");
  Hold(second_, "b");
  const auto inventory = Must(List(OkStatus(), OkStatus()));
  EXPECT_THAT(inventory.pods, SizeIs(2));
  EXPECT_THAT(inventory.containers, SizeIs(2));
  EXPECT_TRUE(inventory.unclear.why.ok());
  clients_.UpdateContainer(ContainerId("b"), {}, [](const Status&) {});
  EXPECT_THAT(first_.updates, IsEmpty());
  EXPECT_THAT(second_.updates, SizeIs(1));
}

TEST_F(RuntimeClientsTest, RuntimeThatIsAwayKeepsWhatItHas) {
  Hold(first_, "a");
  Hold(second_, "b");
  ASSERT_TRUE(List(OkStatus(), OkStatus()).ok());
  // Learned after the list, from a reply that passed.
  backends_.owners().Add(IdOwners::Kind::kContainer, "c", 1);
  const auto inventory = Must(List(OkStatus(), Unavailable("no runtime")));
  EXPECT_THAT(inventory.containers, SizeIs(1));
  EXPECT_THAT(inventory.unclear.containers, ElementsAre(ContainerId("b"), ContainerId("c")));
  EXPECT_THAT(inventory.unclear.pods, ElementsAre(PodSandboxId("pod-b")));
  EXPECT_THAT(Message(inventory.unclear.why), HasSubstr("runtime kata"));
  EXPECT_THAT(inventory.unclear.runtimes, ElementsAre("kata"));
}

TEST_F(RuntimeClientsTest, RuntimeThatWasNeverThereHoldsUpNoOther) {
  Hold(first_, "a");
  const auto inventory = Must(List(OkStatus(), Unavailable("no runtime")));
  EXPECT_THAT(inventory.containers, SizeIs(1));
  EXPECT_THAT(Message(inventory.unclear.why), HasSubstr("runtime kata"));
}

TEST_F(RuntimeClientsTest, StoppedPodsOfAllAreStopped) {
  Hold(second_, "b");
  second_.held.stopped_pods = {PodSandboxId("pod-b")};
  EXPECT_THAT(List(OkStatus(), OkStatus())->stopped_pods, ElementsAre(PodSandboxId("pod-b")));
}

TEST_F(RuntimeClientsTest, APodIsWhereItsSandboxRuns) {
  Hold(first_, "new");
  Hold(second_, "old");
  first_.held.pods[0].uid = second_.held.pods[0].uid = PodUid("uid");
  second_.held.stopped_pods = {PodSandboxId("pod-old")};
  ASSERT_TRUE(List(OkStatus(), OkStatus()).ok());
  EXPECT_EQ(backends_.owners().Find(IdOwners::Kind::kPodUid, "uid").value(), 0u);
  first_.held.stopped_pods = {PodSandboxId("pod-new")};
  second_.held.stopped_pods.clear();
  ASSERT_TRUE(List(OkStatus(), OkStatus()).ok());
  EXPECT_EQ(backends_.owners().Find(IdOwners::Kind::kPodUid, "uid").value(), 1u);
}

TEST_F(RuntimeClientsTest, EachConnectionIsListedWithEverythingOnce) {
  Hold(first_, "a");
  Hold(second_, "b");
  const Known all{.pod = [](const Pod&) { return true; },
                  .container = [](const RuntimeContainer&) { return true; }};
  const auto brief = [&] {
    std::set<ContainerId> ids;
    clients_.ListAll(all, [&](const StatusOr<RuntimeInventory>& inventory) {
      ids = inventory->brief.containers;
    });
    Answer(first_, OkStatus());
    Answer(second_, OkStatus());
    return ids;
  };
  Connected({0});
  Connected({1});
  EXPECT_THAT(brief(), IsEmpty());
  EXPECT_THAT(brief(), SizeIs(2));
  clients_.OnDisconnected(1);
  Connected({1});
  EXPECT_THAT(brief(), ElementsAre(ContainerId("a"))) << "the other one is asked anew";
  EXPECT_THAT(brief(), SizeIs(2));
}

TEST_F(RuntimeClientsTest, RuntimeThatHangsIsWaitedForOnce) {
  Hold(first_, "a");
  Hold(second_, "b");
  ASSERT_TRUE(List(OkStatus(), OkStatus()).ok());
  ASSERT_TRUE(List(OkStatus(), DeadlineExceeded("no answer")).ok());
  for (int i = 0; i < 2; ++i) {
    ListFirst();
    ASSERT_TRUE(listed_->ok());
    EXPECT_THAT((*listed_)->unclear.containers, ElementsAre(ContainerId("b")));
  }
  ASSERT_THAT(second_.lists, SizeIs(1)) << "one question is left to it, for which nothing waits";
  Answer(second_, DeadlineExceeded("no answer"));
  ListFirst();
  Answer(second_, OkStatus());
  EXPECT_EQ(joins_, 1);
  EXPECT_THAT(List(OkStatus(), OkStatus())->containers, SizeIs(2));
}

// If two runtimes have the same id, lists and events leave out the second one's.
TEST_F(RuntimeClientsTest, B5TheFirstOfTwoWithTheSameIdKeepsIt) {
  Hold(first_, "a");
  Hold(second_, "a");
  Hold(second_, "b");
  // The container's own id is unique, but its pod's is not.
  RuntimeContainer in_others_pod;
  in_others_pod.id = ContainerId("c");
  in_others_pod.pod_id = PodSandboxId("pod-a");
  second_.held.containers.push_back(in_others_pod);
  second_.held.stopped_pods = {PodSandboxId("pod-a")};
  for (int round = 0; round < 2; ++round) {
    const auto inventory = Must(List(OkStatus(), OkStatus()));
    std::vector<std::string> ids;
    for (const RuntimeContainer& container : inventory.containers)
      ids.emplace_back(container.id.value());
    EXPECT_THAT(ids, ElementsAre("a", "b"));
    EXPECT_THAT(inventory.pods, SizeIs(2));
    EXPECT_THAT(inventory.stopped_pods, IsEmpty());
  }
  clients_.UpdateContainer(ContainerId("a"), {}, [](const Status&) {});
  EXPECT_THAT(first_.updates, SizeIs(1));
  EXPECT_THAT(second_.updates, IsEmpty());
  EXPECT_EQ(backends_.calls(1).refused_claims, 1U) << "of the pod: what is in it is not looked at";
  EXPECT_EQ(backends_.calls(0).refused_claims, 0U);
  // The owner is away, and keeps its objects.
  const auto without = Must(List(Unavailable("no runtime"), OkStatus()));
  EXPECT_THAT(without.containers, SizeIs(1));
  EXPECT_THAT(without.unclear.containers, ElementsAre(ContainerId("a")));
  // The first runtime gives the id up.
  first_.held = {};
  ASSERT_TRUE(List(OkStatus(), OkStatus()).ok());
  const auto inventory = List(OkStatus(), OkStatus());
  EXPECT_THAT(inventory->containers, SizeIs(3));
}

// A former daemon's notes have precedence over the order of the runtimes.
TEST_F(RuntimeClientsTest, B5AnOwnerThatIsKnownKeepsItAtTheFirstList) {
  Hold(first_, "a");
  Hold(second_, "a");
  backends_.owners().Add(IdOwners::Kind::kPodSandbox, "pod-a", 1);
  backends_.owners().Add(IdOwners::Kind::kContainer, "a", 1);
  const auto inventory = List(OkStatus(), OkStatus());
  EXPECT_THAT(inventory->containers, SizeIs(1));
  clients_.UpdateContainer(ContainerId("a"), {}, [](const Status&) {});
  EXPECT_THAT(second_.updates, SizeIs(1));
}

TEST_F(RuntimeClientsTest, C12RuntimeThatDoesNotAnswerIsNotWaitedForLong) {
  Hold(first_, "a");
  Hold(second_, "b");
  Connected({0, 1});
  // The longer grace at the start.
  EXPECT_GE(ListFirst(), RuntimeClients::kFirstGrace);
  ASSERT_TRUE(listed_->ok());
  EXPECT_THAT((*listed_)->containers, SizeIs(1));
  EXPECT_THAT((*listed_)->unclear.runtimes, ElementsAre("kata"));
  EXPECT_THAT(second_.lists, SizeIs(1));
  ListFirst();
  EXPECT_THAT(second_.lists, SizeIs(1)) << "nobody waits for it again, and it is not asked again";
  // Its answer arrives: it must be listed completely, and that list waits for it.
  Answer(second_, OkStatus());
  EXPECT_EQ(joins_, 1);
  EXPECT_THAT(List(OkStatus(), OkStatus())->containers, SizeIs(2));
  // The shorter grace later; a busy machine may make it longer, and less so the best of some.
  auto took = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5 && took >= RuntimeClients::kFirstGrace; ++i) {
    if (i > 0) {
      Answer(second_, OkStatus());
      ASSERT_TRUE(List(OkStatus(), OkStatus()).ok());
    }
    took = std::min(took, ListFirst());
    EXPECT_GE(took, RuntimeClients::kGrace);
  }
  EXPECT_LT(took, RuntimeClients::kFirstGrace);
  ASSERT_TRUE(listed_->ok());
  EXPECT_THAT((*listed_)->unclear.containers, ElementsAre(ContainerId("b")));
  const int joins = joins_;
  Answer(second_, DeadlineExceeded("no answer"));
  EXPECT_EQ(joins_, joins);
}

TEST_F(RuntimeClientsTest, NoRuntimeFailsTheList) {
  ASSERT_TRUE(List(OkStatus(), OkStatus()).ok());
  EXPECT_FALSE(List(Unavailable("gone"), Unavailable("gone")).ok());
}

TEST_F(RuntimeClientsTest, UpdateOfUnknownContainerIsUnavailable) {
  std::optional<Status> result;
  clients_.UpdateContainer(ContainerId("none"), {}, [&](const Status& status) {
    result = status;
    loop_.Stop();
  });
  EXPECT_FALSE(result.has_value()) << "not within the call";
  loop_.Run();
  EXPECT_EQ(result->code(), StatusCode::kUnavailable);
}

TEST_F(RuntimeClientsTest, IsDisconnectedWhenTheLastOneGoes) {
  Connected({0});
  Connected({1});
  EXPECT_EQ(connects_, 1);
  EXPECT_EQ(joins_, 1) << "the second one's containers are to be listed, too";
  clients_.OnDisconnected(0);
  EXPECT_TRUE(clients_.connected());
  EXPECT_EQ(disconnects_, 0);
  clients_.OnDisconnected(1);
  EXPECT_EQ(disconnects_, 1);
  EXPECT_FALSE(clients_.connected());
}

TEST_F(RuntimeClientsTest, ThoseThatCameTogetherAreToldTogether) {
  Connected({0, 1});
  EXPECT_EQ(connects_, 1);
  EXPECT_EQ(joins_, 0) << "the list that follows shows both";
  clients_.OnDisconnected(0);
  EXPECT_EQ(disconnects_, 0);
}

}  // namespace
}  // namespace resmgr
