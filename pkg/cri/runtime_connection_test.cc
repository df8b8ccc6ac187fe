// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_connection.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/cri_client/specs.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunUntil;
using test::FakeRuntime;
using test::IsOk;
using testing::HasSubstr;
using testing::SizeIs;

class RuntimeConnectionTest : public testing::Test {
 protected:
  void Start() {
    connection_.Start({.connected = [this] { ++connects_; },
                       .disconnected = [this] { ++disconnects_; },
                       .happened = [this](const ContainerEvent& event) { event_ = event; },
                       .listing = [this]() -> RuntimeAccess::Done<RuntimeAccess::Everything> {
                         return [this](const auto& everything) {
                           if (everything.ok()) ++shared_;
                         };
                       }});
  }
  void StartRuntime() { ASSERT_THAT(runtime_.Start(socket_), IsOk()); }
  StatusOr<RuntimeInventory> List() {
    std::optional<StatusOr<RuntimeInventory>> result;
    connection_.ListAll({}, [&](StatusOr<RuntimeInventory> list) { result = std::move(list); });
    EXPECT_TRUE(RunUntil(loop_, [&] { return result.has_value(); }));
    return *std::move(result);
  }
  Status Update(const ContainerId& id) {
    std::optional<Status> result;
    connection_.UpdateContainer(id, {.cpus = CpuSet{1}},
                                [&](const Status& status) { result = status; });
    EXPECT_TRUE(RunUntil(loop_, [&] { return result.has_value(); }));
    return *result;
  }
  // Creates a container at the runtime.
  ContainerId Create() {
    test::CriClient client(socket_);
    const auto pod = client.RunPod(test::MakeBestEffortPod("pod"));
    EXPECT_THAT(pod, IsOk());
    const auto container = client.CreateContainer(*pod, test::MakeBestEffortPod("pod"),
                                                  test::MakeBestEffortContainer("main"));
    EXPECT_THAT(container, IsOk());
    return ContainerId(container.value_or(""));
  }
  // Creates pods with a container each.
  void CreateMany(int count) {
    test::CriClient client(socket_);
    for (int i = 0; i < count; ++i) {
      const auto config = test::MakeBestEffortPod("pod" + std::to_string(i));
      const auto pod = client.RunPod(config);
      ASSERT_THAT(pod, IsOk());
      ASSERT_THAT(client.CreateContainer(*pod, config, test::MakeBestEffortContainer("main")),
                  IsOk());
    }
  }

  const TempDir directory_;
  const std::string socket_ = directory_.File("runtime.sock");
  FakeRuntime runtime_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  RuntimeConnection connection_{loop_, flushes_, socket_};
  int connects_ = 0;
  int disconnects_ = 0;
  int shared_ = 0;  // lists that another user got
  std::optional<ContainerEvent> event_;
};

TEST_F(RuntimeConnectionTest, ConnectsWhenTheRuntimeAppears) {
  Start();
  const Status status = connection_.EnsureConnected();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(Message(status), HasSubstr(socket_));
  EXPECT_EQ(connects_, 0);
  StartRuntime();
  EXPECT_TRUE(RunUntil(loop_, [this] { return connects_ == 1; })) << "by itself";
  EXPECT_THAT(connection_.EnsureConnected(), IsOk());
}

TEST_F(RuntimeConnectionTest, CallThatNeedsTheRuntimeDoesNotWaitForTheNextTry) {
  Start();
  StartRuntime();
  EXPECT_THAT(connection_.EnsureConnected(), IsOk());
  EXPECT_EQ(connects_, 1);
}

TEST_F(RuntimeConnectionTest, ReconnectsAfterALoss) {
  StartRuntime();
  Start();
  ASSERT_EQ(connects_, 1);
  ASSERT_THAT(List(), IsOk());
  runtime_.CutConnections();
  EXPECT_TRUE(RunUntil(loop_, [this] { return disconnects_ == 1 && connects_ == 2; }));
  EXPECT_THAT(List(), IsOk());
}

// Later lists, such as those of an audit, would cost it time and have no news.
TEST_F(RuntimeConnectionTest, AnotherUserGetsTheFirstListOfAConnection) {
  StartRuntime();
  Start();
  runtime_.Script("ListContainers",
                  {.times = 1, .error = grpc::Status(grpc::StatusCode::UNKNOWN, "the disk")});
  ASSERT_FALSE(List().ok());
  EXPECT_EQ(shared_, 0);
  ASSERT_THAT(List(), IsOk());
  ASSERT_THAT(List(), IsOk());
  EXPECT_EQ(shared_, 1);
  runtime_.CutConnections();
  EXPECT_TRUE(RunUntil(loop_, [this] { return connects_ == 2; }));
  ASSERT_THAT(List(), IsOk());
  EXPECT_EQ(shared_, 2);
}

TEST_F(RuntimeConnectionTest, ListsPodsAndContainersWithTheirStatus) {
  StartRuntime();
  const ContainerId container = Create();
  Start();
  const auto list = List();
  ASSERT_THAT(list, IsOk());
  EXPECT_THAT(list->pods, SizeIs(1));
  ASSERT_THAT(list->containers, SizeIs(1));
  EXPECT_EQ(list->containers[0].id, container);
  EXPECT_TRUE(list->unclear.why.ok());
}

TEST_F(RuntimeConnectionTest, AListAsksNothingMoreOnceItsConnectionIsLost) {
  StartRuntime();
  CreateMany(50);
  runtime_.Script("PodSandboxStatus", {.times = 1, .cut = true});
  Start();
  EXPECT_EQ(List().status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(runtime_.Calls("ContainerStatus"), SizeIs(0)) << "they come after the pods";
}

TEST_F(RuntimeConnectionTest, StatusThatFailsLeavesItsContainerUnclear) {
  StartRuntime();
  const ContainerId container = Create();
  runtime_.Script("ContainerStatus",
                  {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "the shim hangs")});
  Start();
  const auto list = List();
  ASSERT_THAT(list, IsOk());
  EXPECT_THAT(list->unclear.containers, testing::ElementsAre(container));
  EXPECT_THAT(Message(list->unclear.why), HasSubstr("the shim hangs"));
}

TEST_F(RuntimeConnectionTest, SpeaksV1Alpha2ToARuntimeThatKnowsNoOther) {
  StartRuntime();
  runtime_.Script("/runtime.v1.RuntimeService/ListPodSandbox",
                  {.error = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "unknown service")});
  Start();
  EXPECT_THAT(List(), IsOk());
  EXPECT_THAT(runtime_.Calls("/runtime.v1alpha2.RuntimeService/ListContainers"), SizeIs(1));
}

TEST_F(RuntimeConnectionTest, UpdatesTellHowTheyEnded) {
  StartRuntime();
  const ContainerId container = Create();
  Start();
  EXPECT_THAT(Update(container), IsOk());
  EXPECT_EQ(runtime_.FindContainer(std::string(container.value()))->resources.cpuset_cpus(), "1");
  EXPECT_EQ(Update(ContainerId("none")).code(), StatusCode::kNotFound);
  runtime_.Stop();
  EXPECT_EQ(Update(container).code(), StatusCode::kUnavailable);
}

TEST_F(RuntimeConnectionTest, TellsEventsUnlessAClientListens) {
  StartRuntime();
  Start();
  ASSERT_TRUE(RunUntil(loop_, [this] {
    return runtime_.WaitForCalls("GetContainerEvents", 1, std::chrono::milliseconds(0));
  }));
  const ContainerId container = Create();
  EXPECT_TRUE(RunUntil(loop_, [this] { return event_.has_value(); }));
  EXPECT_EQ(event_->id, container.value());
  connection_.LeaveEventsToClient(true);
  EXPECT_TRUE(RunUntil(loop_, [this] {
    return runtime_.WaitForCancelled("GetContainerEvents", 1, std::chrono::milliseconds(0));
  }));
}

}  // namespace
}  // namespace resmgr
