// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_connection.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/acceptor.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/cri_client/specs.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/raw_http2/raw_http2.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using test::FakeRuntime;
using test::IsOk;
using test::Must;
using test::RunUntil;
using testing::HasSubstr;
using testing::SizeIs;

// A runtime, and the loop of a connection to it.
class WithRuntime : public testing::Test {
 protected:
  void StartRuntime() { ASSERT_THAT(runtime_.Start(socket_), IsOk()); }
  // Creates a pod with a container at the runtime.
  void CreatePod(const std::string& name = "pod") {
    test::CriClient client(socket_);
    const auto config = test::MakeBestEffortPod(name);
    const auto pod = client.RunPod(config);
    ASSERT_THAT(pod, IsOk());
    pod_ = *pod;
    const auto container =
        client.CreateContainer(pod_, config, test::MakeBestEffortContainer("main"));
    ASSERT_THAT(container, IsOk());
    container_ = *container;
  }

  const TempDir directory_;
  const std::string socket_ = directory_.File("runtime.sock");
  FakeRuntime runtime_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  std::string pod_;  // the last one that was created, and its container
  std::string container_;
};

class RuntimeConnectionTest : public WithRuntime {
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
  ContainerId Create() {
    CreatePod();
    return ContainerId(container_);
  }

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

// A proxy does this, too, while its own runtime is away.
TEST_F(RuntimeConnectionTest, ARuntimeThatHangsUpAtOnceIsTriedWithPauses) {
  auto listener = Must(ListeningSocket::Create(socket_));
  Acceptor acceptor(loop_, {.take = [](const UniqueFd&) {}, .failed = [](const Status&) {}});
  acceptor.Listen(std::move(listener));
  Start();
  test::RunFor(loop_, std::chrono::seconds(1));
  EXPECT_GE(connects_, 2);
  EXPECT_LE(connects_, 6);
  acceptor.Stop();
  ASSERT_TRUE(RunUntil(loop_, [this] { return connects_ == disconnects_; }));
  StartRuntime();
  EXPECT_THAT(connection_.EnsureConnected(), IsOk());
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
  const auto list = Must(List());
  EXPECT_THAT(list.pods, SizeIs(1));
  ASSERT_THAT(list.containers, SizeIs(1));
  EXPECT_EQ(list.containers[0].id, container);
  EXPECT_TRUE(list.unclear.why.ok());
}

TEST_F(RuntimeConnectionTest, AListAsksNothingMoreOnceItsConnectionIsLost) {
  StartRuntime();
  for (int i = 0; i < 50; ++i)
    CreatePod("pod" + std::to_string(i));
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
  const auto list = Must(List());
  EXPECT_THAT(list.unclear.containers, testing::ElementsAre(container));
  EXPECT_THAT(Message(list.unclear.why), HasSubstr("the shim hangs"));
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

// A runtime that ends in peace waits until its last call has ended.
TEST_F(RuntimeConnectionTest, EventsDoNotKeepAnEndingRuntime) {
  constexpr uint8_t kGoAway = 7;
  auto runtime = test::RawRuntime::Start(
      socket_, {.answer =
                    [](uint32_t stream, const std::string&) {
                      return test::Frame(1, 4, stream, test::Fields({{":status", "200"}})) +
                             test::Frame(kGoAway, 0, 0, test::Number(stream) + test::Number(0));
                    },
                .greeting = test::Frame(4, 0, 0, "")});
  ASSERT_THAT(runtime, IsOk());
  Start();
  EXPECT_TRUE(RunUntil(
      loop_, [this] { return disconnects_ == 1; }, std::chrono::milliseconds(5'000)));
  EXPECT_TRUE(RunUntil(loop_, [this] { return connects_ == 2; }));
}

// The stages' questions to one runtime: a connection without Start.
class RuntimeAccessTest : public WithRuntime {
 protected:
  // The answer that `ask` passes to the given function.
  template <typename Answer, typename Ask>
  Answer Await(Ask ask) {
    std::optional<Answer> answer;
    const auto deadline = loop_.After(std::chrono::seconds(20), [this] { loop_.Stop(); });
    bool asking = true;
    ask([&](Answer told) {
      EXPECT_FALSE(asking) << "answered inside the call";
      answer = std::move(told);
      loop_.Stop();
    });
    asking = false;
    loop_.Run();
    EXPECT_TRUE(answer.has_value());
    return answer ? *std::move(answer) : Answer(Unavailable("the test waited in vain"));
  }
  StatusOr<RuntimeAccess::Version> Version() {
    return Await<StatusOr<RuntimeAccess::Version>>(
        [this](auto done) { connection_->AskVersion(std::move(done)); });
  }
  StatusOr<RuntimeAccess::Everything> All() {
    return Await<StatusOr<RuntimeAccess::Everything>>(
        [this](auto done) { connection_->InspectAll(std::move(done)); });
  }
  StatusOr<ContainerFacts> Container(const std::string& id) {
    return Await<StatusOr<ContainerFacts>>(
        [&](auto done) { connection_->InspectContainer(ContainerId(id), std::move(done)); });
  }
  StatusOr<SandboxFacts> Sandbox(const std::string& id) {
    return Await<StatusOr<SandboxFacts>>(
        [&](auto done) { connection_->InspectSandbox(PodSandboxId(id), std::move(done)); });
  }
  void FailVersion1(std::string_view method) {
    runtime_.Script("/runtime.v1.RuntimeService/" + std::string(method),
                    {.error = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "unknown service")});
  }

  std::unique_ptr<RuntimeConnection> connection_ =
      std::make_unique<RuntimeConnection>(loop_, flushes_, socket_, socket_);
};

TEST_F(RuntimeAccessTest, TellsWhichRuntimeItIs) {
  EXPECT_EQ(Version().status().code(), StatusCode::kUnavailable) << "not there yet";
  StartRuntime();
  const auto version = Must(Version());
  EXPECT_EQ(version.name, "fake");
  EXPECT_EQ(version.version, "1.0.0");
}

TEST_F(RuntimeAccessTest, ConnectsAnewAfterALoss) {
  StartRuntime();
  ASSERT_THAT(Version(), IsOk());
  runtime_.Stop();
  EXPECT_EQ(Version().status().code(), StatusCode::kUnavailable);
  StartRuntime();
  EXPECT_THAT(Version(), IsOk());
}

TEST_F(RuntimeAccessTest, InspectsSandboxAndContainer) {
  StartRuntime();
  CreatePod();
  const auto sandbox = Must(Sandbox(pod_));
  EXPECT_EQ(sandbox.pod.id.value(), pod_);
  EXPECT_TRUE(sandbox.ready);
  EXPECT_EQ(sandbox.pid, 1U);
  const auto container = Must(Container(container_));
  EXPECT_EQ(container.container.pod_id.value(), pod_);
  EXPECT_EQ(container.container.state, ContainerState::kCreated);
  EXPECT_THAT(container.cgroups_path, HasSubstr(container_));
  EXPECT_EQ(Container("none").status().code(), StatusCode::kNotFound);
}

TEST_F(RuntimeAccessTest, InspectsEverythingButWhatEndsMeanwhile) {
  StartRuntime();
  const auto nothing = Must(All());
  EXPECT_THAT(nothing.sandboxes, SizeIs(0));
  CreatePod();
  const auto everything = Must(All());
  ASSERT_THAT(everything.sandboxes, SizeIs(1));
  ASSERT_THAT(everything.containers, SizeIs(1));
  EXPECT_EQ(everything.sandboxes[0].pid, 1U);
  EXPECT_EQ(everything.containers[0].container.pod_id.value(), pod_);
  EXPECT_GT(everything.containers[0].created_at, 0);
  runtime_.Script("ContainerStatus",
                  {.error = grpc::Status(grpc::StatusCode::NOT_FOUND, "no container")});
  const auto without = Must(All());
  EXPECT_THAT(without.sandboxes, SizeIs(1));
  EXPECT_THAT(without.containers, SizeIs(0));
}

TEST_F(RuntimeAccessTest, TellsWhatIsListedWhereAStatusFails) {
  StartRuntime();
  CreatePod();
  runtime_.Script("ContainerStatus",
                  {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "the shim hangs")});
  const auto everything = Must(All());
  ASSERT_THAT(everything.containers, SizeIs(1));
  EXPECT_EQ(everything.containers[0].container.id.value(), container_);
  EXPECT_EQ(everything.containers[0].container.name, "main");
  EXPECT_TRUE(everything.containers[0].status_missing);
  ASSERT_THAT(everything.sandboxes, SizeIs(1));
  EXPECT_FALSE(everything.sandboxes[0].status_missing);
  runtime_.ClearScripts();
  runtime_.Script("PodSandboxStatus",
                  {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "the shim hangs")});
  const auto without_pod = Must(All());
  ASSERT_THAT(without_pod.sandboxes, SizeIs(1));
  EXPECT_TRUE(without_pod.sandboxes[0].status_missing);
  runtime_.ClearScripts();
  const auto later = Must(All());
  ASSERT_THAT(later.containers, SizeIs(1));
  EXPECT_FALSE(later.containers[0].status_missing);
}

TEST_F(RuntimeAccessTest, TellsNothingWhenTheRuntimeIsLostInBetween) {
  StartRuntime();
  CreatePod();
  runtime_.Script("ContainerStatus", {.cut = true});
  EXPECT_EQ(All().status().code(), StatusCode::kUnavailable);
}

TEST_F(RuntimeAccessTest, AsksForMoreThanFitAtOnce) {
  StartRuntime();
  test::CriClient client(socket_);
  for (int i = 0; i < 80; ++i) {
    ASSERT_THAT(client.RunPod(test::MakeBestEffortPod("pod-" + std::to_string(i))), IsOk());
  }
  const auto everything = Must(All());
  EXPECT_THAT(everything.sandboxes, SizeIs(80));
}

TEST_F(RuntimeAccessTest, SpeaksV1Alpha2ToARuntimeThatKnowsNoOther) {
  StartRuntime();
  FailVersion1("Version");
  EXPECT_THAT(Version(), IsOk());
  EXPECT_THAT(All(), IsOk());
  EXPECT_THAT(runtime_.Calls("/runtime.v1alpha2.RuntimeService/ListContainers"), SizeIs(1));
}

TEST_F(RuntimeAccessTest, MethodThatNoVersionHasLeavesTheVersion) {
  StartRuntime();
  runtime_.Script("Version", {.error = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not here")});
  EXPECT_EQ(Version().status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(All(), IsOk());
  EXPECT_THAT(runtime_.Calls("/runtime.v1.RuntimeService/ListContainers"), SizeIs(1));
}

TEST_F(RuntimeAccessTest, ChangesWhatRuns) {
  StartRuntime();
  CreatePod();
  ResourceChange change;
  change.resources.cpu_shares = 512;
  const auto update = [&](const std::string& id) {
    return Await<Status>(
        [&](auto done) { connection_->UpdateContainer(ContainerId(id), change, std::move(done)); });
  };
  EXPECT_THAT(update(container_), IsOk());
  EXPECT_EQ(runtime_.FindContainer(container_)->resources.cpu_shares(), 512);
  EXPECT_EQ(update("none").code(), StatusCode::kNotFound);
  EXPECT_THAT(Await<Status>([&](auto done) {
                connection_->StopContainer(ContainerId(container_), std::chrono::seconds(3),
                                           std::move(done));
              }),
              IsOk());
  test::cri::StopContainerRequest stop;
  ASSERT_TRUE(stop.ParseFromString(runtime_.Calls("StopContainer").at(0).messages.at(0)));
  EXPECT_EQ(stop.timeout(), 3);
  EXPECT_THAT(Await<Status>([&](auto done) {
                connection_->StopSandbox(PodSandboxId(pod_), std::move(done));
              }),
              IsOk());
  EXPECT_FALSE(Sandbox(pod_)->ready);
  EXPECT_THAT(Await<Status>([&](auto done) {
                connection_->RemoveSandbox(PodSandboxId(pod_), std::move(done));
              }),
              IsOk());
  EXPECT_EQ(Sandbox(pod_).status().code(), StatusCode::kNotFound);
}

TEST_F(RuntimeAccessTest, AsksTheImageServiceOnItsOwnSocket) {
  const std::string image_socket = directory_.File("images.sock");
  FakeRuntime images;
  ASSERT_THAT(images.Start(image_socket), IsOk());
  connection_ = std::make_unique<RuntimeConnection>(loop_, flushes_, socket_, image_socket);
  const auto ask = [this] {
    return Await<StatusOr<ImageFacts>>([this](auto done) {
      connection_->InspectImage(PodSandboxId("pod"), "web:1", std::move(done));
    });
  };
  EXPECT_EQ(ask().status().code(), StatusCode::kNotFound);
  test::cri::ImageStatusResponse reply;
  reply.mutable_image()->add_repo_digests("web@sha256:1");
  images.Script("ImageStatus", {.reply = {{reply.SerializeAsString()}}});
  const auto facts = Must(ask());
  EXPECT_EQ(facts.digest, "web@sha256:1");
}

TEST_F(RuntimeAccessTest, TellsNothingAfterItsEnd) {
  StartRuntime();
  CreatePod();
  runtime_.Script("ContainerStatus", {.hold = true});
  bool told = false;
  connection_->InspectAll([&](const auto&) { told = true; });
  EventLoop::HandlePtr later;
  connection_->AskVersion([&](const auto&) {
    connection_.reset();
    later = loop_.After(std::chrono::milliseconds(1), [this] { loop_.Stop(); });
  });
  loop_.Run();
  EXPECT_EQ(connection_, nullptr);
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace resmgr
