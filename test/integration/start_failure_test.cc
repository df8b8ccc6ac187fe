// SPDX-License-Identifier: Apache-2.0
// A container that may start only when another one has left its CPUs, and that one does not.
#include <chrono>
#include <stdexcept>
#include <string>

#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class StartFailureTest : public ControlTest {
 protected:
  // Creates a container that wants CPUs of others exclusively, without starting it.
  std::string CreateExclusive(CriClient& client) {
    const auto pod = client.RunPod(MakeGuaranteedPod("g"));
    EXPECT_THAT(pod, IsOk());
    const auto id =
        client.CreateContainer(*pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
    EXPECT_THAT(id, IsOk());
    return id.value_or("");
  }
  bool CountsNotUpdated(int containers) {
    const std::string line = fmt::format("not_updated_containers {}\n", containers);
    return Counts().find(line) != std::string::npos;
  }
};

// Each caller of a fixture would else go on without a daemon, and crash.
TEST_F(StartFailureTest, ADaemonThatDoesNotStartEndsTheTestWithItsLog) {
  std::string told;
  try {
    StartDaemon(Flags({"-policy", "no-such-policy"}));
  } catch (const std::runtime_error& error) {
    told = error.what();
  }
  EXPECT_THAT(told, AllOf(HasSubstr("cri-resmgr ended"), HasSubstr("no-such-policy")));
  EXPECT_EQ(daemon_, nullptr);
}

TEST_F(StartFailureTest, IsRefusedUntilTheConfigurationLetsItThrough) {
  StartWithMetrics({});
  CriClient client = Relayed();
  const Running stubborn = Run(client, MakeBestEffortPod("stubborn"), MakeBestEffortContainer("s"));
  runtime_.Script("UpdateContainerResources", {.hold = true});
  const std::string id = CreateExclusive(client);
  const size_t starts = runtime_.Calls("StartContainer").size();
  const Status refused = client.StartContainer(id);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)),
              AllOf(testing::StartsWith("cri-resmgr (static): cannot start: after 10000 ms "),
                    HasSubstr("container default/stubborn/s may still")));
  EXPECT_EQ(runtime_.Calls("StartContainer").size(), starts);
  EXPECT_THAT(Counts(), AllOf(HasSubstr("held_starts_total{result=\"refused\"} 1"),
                              HasSubstr("held_starts_total{result=\"let_through\"} 0")));

  EXPECT_THAT(SetConfig({{"policy", "StartFailurePolicy: perhaps"}}),
              HasSubstr("agent key policy:1: policy.StartFailurePolicy: \"perhaps\" is not"));
  ASSERT_EQ(SetConfig({{"policy", "StartFailurePolicy: ignore"}}), "");
  EXPECT_THAT(Ctl({"config", "show"}).out, HasSubstr("StartFailurePolicy: ignore"));
  EXPECT_THAT(client.StartContainer(id), IsOk());
  EXPECT_EQ(runtime_.Calls("StartContainer").size(), starts + 1);
  EXPECT_TRUE(Logged("container default/g/main is started anyway"));
  EXPECT_THAT(Counts(), AllOf(HasSubstr("held_starts_total{result=\"refused\"} 1"),
                              HasSubstr("held_starts_total{result=\"let_through\"} 1")));

  // The other one is moved as soon as the runtime can.
  runtime_.Release("UpdateContainerResources");
  EXPECT_TRUE(
      Eventually([&] { return !CpusAtRuntime(stubborn.container).Intersects(CpusAtRuntime(id)); }));
}

TEST_F(StartFailureTest, IsLetThroughWhenTheRuntimeRefusesToMoveTheOther) {
  StartWithMetrics({"-start-failure-policy", "ignore"});
  CriClient client = Relayed();
  const Running stubborn = Run(client, MakeBestEffortPod("stubborn"), MakeBestEffortContainer("s"));
  runtime_.Script("UpdateContainerResources",
                  {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "the runtime will not")});
  const std::string id = CreateExclusive(client);
  EXPECT_THAT(client.StartContainer(id), IsOk());
  EXPECT_TRUE(CpusAtRuntime(stubborn.container).Intersects(CpusAtRuntime(id)));
  ASSERT_TRUE(Logged("container default/g/main is started anyway"));
  EXPECT_THAT(daemon_->Log(), AllOf(HasSubstr("container default/g/main is started anyway"),
                                    HasSubstr("container default/stubborn/s may still run on its "
                                              "exclusive CPUs " +
                                              CpusAtRuntime(id).ToString()),
                                    HasSubstr("the runtime will not")));
  EXPECT_THAT(Counts(), AllOf(HasSubstr("held_starts_total{result=\"refused\"} 0"),
                              HasSubstr("held_starts_total{result=\"let_through\"} 1")));
  EXPECT_TRUE(Eventually([&] { return CountsNotUpdated(1); }));
  runtime_.ClearScripts();
  EXPECT_TRUE(
      Eventually([&] { return !CpusAtRuntime(stubborn.container).Intersects(CpusAtRuntime(id)); }));
  EXPECT_TRUE(Eventually([&] { return CountsNotUpdated(0); }));
  EXPECT_TRUE(Logged("the runtime updates container default/stubborn/s again"));
}

// A container that the runtime can never update must not stop the node.
TEST_F(StartFailureTest, OneStartIsRefusedForAContainerThatTheRuntimeRefusesToMove) {
  StartWithMetrics({});
  CriClient client = Relayed();
  Run(client, MakeBestEffortPod("stubborn"), MakeBestEffortContainer("s"));
  runtime_.Script(
      "UpdateContainerResources",
      {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "write cpu.weight: invalid argument")});
  const std::string id = CreateExclusive(client);
  const Status refused = client.StartContainer(id);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)),
              AllOf(HasSubstr("container default/stubborn/s may still"),
                    HasSubstr("if cpu.idle is 1 in its cgroup, set it to 0; or delete pod "
                              "default/stubborn")));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(client.StartContainer(id), IsOk());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10))
      << "a start that is held is held so long";
  EXPECT_THAT(Ctl({"status"}).out,
              AllOf(HasSubstr("does not update default/stubborn/s"), HasSubstr("cpu.idle")));
  EXPECT_THAT(Ctl({"explain", "stubborn"}).out, HasSubstr("not updated"));
  EXPECT_THAT(Ctl({"history"}).out, HasSubstr("let through"));
}

// The containers of this runtime have no cgroups.
TEST_F(StartFailureTest, RefusedUpdatesAreWrittenOnceTheConfigurationSaysSo) {
  StartWithMetrics({});
  CriClient client = Relayed();
  Run(client, MakeBestEffortPod("stubborn"), MakeBestEffortContainer("s"));
  runtime_.Script("UpdateContainerResources",
                  {.error = grpc::Status(grpc::StatusCode::UNKNOWN, "it will not")});
  CreateExclusive(client);
  EXPECT_TRUE(Logged("cannot update container default/stubborn/s"));
  EXPECT_THAT(Ctl({"status"}).out, Not(HasSubstr("its cpuset cannot be written")));

  EXPECT_THAT(SetConfig({{"policy", "RefusedUpdates: perhaps"}}),
              HasSubstr("agent key policy:1: policy.RefusedUpdates: \"perhaps\" is not one of"));
  ASSERT_EQ(SetConfig({{"policy", "RefusedUpdates: write"}}), "");
  EXPECT_THAT(Ctl({"config", "show"}).out, HasSubstr("RefusedUpdates: write"));
  EXPECT_TRUE(Logged("it will not; its cpuset cannot be written either: there is no cgroup of"));
  EXPECT_THAT(Ctl({"explain", "stubborn"}).out, HasSubstr("its cpuset cannot be written either"));
}

}  // namespace
}  // namespace resmgr::test
