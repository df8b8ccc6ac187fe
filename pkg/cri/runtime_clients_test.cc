// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_clients.h"

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/fake_runtime_client.h"

namespace resmgr {
namespace {

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

  // Answers the lists of those for which there is no failure.
  StatusOr<RuntimeInventory> List(const Status& first, const Status& second) {
    std::optional<StatusOr<RuntimeInventory>> result;
    clients_.ListAll({},
                     [&](StatusOr<RuntimeInventory> inventory) { result = std::move(inventory); });
    Answer(second_, second);
    EXPECT_FALSE(result.has_value()) << "not before all have answered";
    Answer(first_, first);
    return result.value_or(Internal("no answer"));
  }
  static void Answer(test::FakeRuntimeClient& runtime, const Status& status) {
    if (status.ok()) {
      runtime.AnswerList();
    } else {
      runtime.FailList(status);
    }
  }

  EventLoop loop_;
  Backends backends_{
      {{.name = "default", .socket = "/first"}, {.name = "kata", .socket = "/kata"}}};
  test::FakeRuntimeClient first_;
  test::FakeRuntimeClient second_;
  int connects_ = 0;
  int disconnects_ = 0;
  RuntimeClients clients_{
      loop_,
      backends_,
      {&first_, &second_},
      {.connected = [this] { ++connects_; }, .disconnected = [this] { ++disconnects_; }}};
};

TEST_F(RuntimeClientsTest, ListsAllAndUpdatesTheOwner) {
  Hold(first_, "a");
  Hold(second_, "b");
  const auto inventory = List(OkStatus(), OkStatus());
  ASSERT_TRUE(inventory.ok()) << Describe(inventory.status());
  EXPECT_THAT(inventory->pods, SizeIs(2));
  EXPECT_THAT(inventory->containers, SizeIs(2));
  EXPECT_TRUE(inventory->unclear.why.ok());
  clients_.UpdateContainer(ContainerId("b"), {}, [](const Status&) {});
  EXPECT_THAT(first_.updates, IsEmpty());
  EXPECT_THAT(second_.updates, SizeIs(1));
}

TEST_F(RuntimeClientsTest, RuntimeThatIsAwayKeepsWhatItHas) {
  Hold(first_, "a");
  Hold(second_, "b");
  ASSERT_TRUE(List(OkStatus(), OkStatus()).ok());
  // Learned from a reply that passed, after the list.
  backends_.owners().Add(IdOwners::Kind::kContainer, "c", 1);
  const auto inventory = List(OkStatus(), Unavailable("no runtime"));
  ASSERT_TRUE(inventory.ok()) << Describe(inventory.status());
  EXPECT_THAT(inventory->containers, SizeIs(1));
  EXPECT_THAT(inventory->unclear.containers, ElementsAre(ContainerId("b"), ContainerId("c")));
  EXPECT_THAT(inventory->unclear.pods, ElementsAre(PodSandboxId("pod-b")));
  EXPECT_THAT(Message(inventory->unclear.why), HasSubstr("runtime kata"));
}

TEST_F(RuntimeClientsTest, RuntimeThatWasNeverListedFailsTheList) {
  Hold(first_, "a");
  const auto inventory = List(OkStatus(), Unavailable("no runtime"));
  EXPECT_EQ(inventory.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(Message(inventory.status()), HasSubstr("runtime kata"));
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
  clients_.OnConnected(0);
  clients_.OnConnected(1);
  EXPECT_EQ(connects_, 2) << "the second one's containers are to be listed, too";
  clients_.OnDisconnected(0);
  EXPECT_TRUE(clients_.connected());
  EXPECT_EQ(disconnects_, 0);
  clients_.OnDisconnected(1);
  EXPECT_EQ(disconnects_, 1);
  EXPECT_FALSE(clients_.connected());
}

}  // namespace
}  // namespace resmgr
