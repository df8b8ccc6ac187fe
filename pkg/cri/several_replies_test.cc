// SPDX-License-Identifier: Apache-2.0
// Merged replies of two runtimes.
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/cri/testing/several_runtimes_fixture.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
namespace cri = ::runtime::v1;

class SeveralRepliesTest : public SeveralRuntimesTest {
 protected:
  cri::StatusResponse RuntimeStatus(bool verbose = false) {
    return RuntimeStatus(*client_, verbose);
  }
  static cri::StatusResponse RuntimeStatus(test::CriClient& client, bool verbose = false) {
    cri::StatusRequest request;
    request.set_verbose(verbose);
    cri::StatusResponse status;
    const grpc::Status result = client.Unary("Status", request, &status);
    EXPECT_TRUE(result.ok()) << result.error_message();
    return status;
  }
  static const cri::RuntimeCondition& RuntimeReady(const cri::StatusResponse& status) {
    for (const auto& condition : status.status().conditions()) {
      if (condition.type() == "RuntimeReady") return condition;
    }
    return cri::RuntimeCondition::default_instance();
  }
};

TEST_F(SeveralRepliesTest, R03RuntimeRejectsHandlerThatItDoesNotKnow) {
  const auto refused =
      grpc::Status(grpc::StatusCode::UNKNOWN, "no runtime for \"none\" is configured");
  first_.Script("RunPodSandbox", {.error = refused});
  EXPECT_THAT(client_->RunPod(test::MakeBestEffortPod("pod"), "none"),
              test::Fails(StatusCode::kUnknown, refused.error_message()));
  EXPECT_THAT(second_.Calls("RunPodSandbox"), SizeIs(0));
}

TEST_F(SeveralRepliesTest, R05StatusTellsRuntimeThatIsAway) {
  EXPECT_TRUE(RuntimeReady(RuntimeStatus()).status());
  EXPECT_EQ(RuntimeStatus(true).info().size(), 2U);
  second_.Stop();
  const cri::StatusResponse status = RuntimeStatus();
  EXPECT_FALSE(RuntimeReady(status).status());
  EXPECT_THAT(RuntimeReady(status).message(), HasSubstr("runtime kata: no runtime: "));
  EXPECT_THAT(RuntimeReady(status).message(), testing::Not(HasSubstr("runtime default")));

  first_.Stop();
  const grpc::Status none = Ask("Status");
  EXPECT_EQ(none.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(none.error_message(), HasSubstr("runtime default: "));

  for (auto* runtime : {&first_, &second_}) {
    ASSERT_THAT(runtime->Start(Path(runtime == &first_ ? "first.sock" : "second.sock")),
                test::IsOk());
  }
  EXPECT_TRUE(RuntimeReady(RuntimeStatus()).status());
}

TEST_F(SeveralRepliesTest, R05StatusTellsRuntimeThatBreaksOrFails) {
  second_.Script("Status", {.times = 1, .cut = true});
  EXPECT_THAT(RuntimeReady(RuntimeStatus()).message(), HasSubstr("runtime kata: "));
  second_.Script("Status", {.error = grpc::Status(grpc::StatusCode::INTERNAL, "the disk is gone")});
  EXPECT_EQ(RuntimeReady(RuntimeStatus()).message(), "runtime kata: the disk is gone");
}

TEST_F(SeveralRepliesTest, R05StatusTellsRuntimeThatHangs) {
  second_.Script("Status", {.hold = true});
  const auto status = client_->Start("Status", cri::StatusRequest());
  ASSERT_TRUE(second_.WaitForHeld("Status", 1));
  const auto result = status->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  ASSERT_THAT(result->messages, SizeIs(1));
  cri::StatusResponse reply;
  ASSERT_TRUE(reply.ParseFromString(result->messages.front()));
  EXPECT_EQ(RuntimeReady(reply).message(), "runtime kata: no answer within 10000 ms");
  EXPECT_TRUE(second_.WaitForCancelled("Status", 1));
}

TEST_F(SeveralRepliesTest, R06StatusOfEitherVersionHasHandlersOfAll) {
  for (const auto version : {test::ApiVersion::kV1, test::ApiVersion::kV1Alpha2}) {
    cri::StatusResponse reply;
    reply.add_runtime_handlers()->set_name("");
    first_.Script("Status", {.reply = {{reply.SerializeAsString()}}});
    reply.add_runtime_handlers()->set_name("kata");
    second_.Script("Status", {.reply = {{reply.SerializeAsString()}}});
    test::CriClient client(RelaySocket(), version);
    const cri::StatusResponse status = RuntimeStatus(client);
    ASSERT_THAT(status.runtime_handlers(), SizeIs(2));
    EXPECT_EQ(status.runtime_handlers(0).name(), "");
    EXPECT_EQ(status.runtime_handlers(1).name(), "kata");
  }
}

TEST_F(SeveralRepliesTest, CgroupDriverIsThatOfAllRuntimes) {
  cri::RuntimeConfigResponse config;
  ASSERT_TRUE(client_->Unary("RuntimeConfig", cri::RuntimeConfigRequest(), &config).ok());
  EXPECT_EQ(config.linux().cgroup_driver(), cri::CGROUPFS);
  config.mutable_linux()->set_cgroup_driver(cri::SYSTEMD);
  second_.Script("RuntimeConfig", {.reply = {{config.SerializeAsString()}}});
  EXPECT_EQ(Ask("RuntimeConfig").error_message(),
            "runtimes have different cgroup drivers: default has cgroupfs, kata has systemd");
}

// A kubelet that gets no driver does not start.
TEST_F(SeveralRepliesTest, CgroupDriverIsThatOfTheRuntimesThatAreThere) {
  cri::RuntimeConfigResponse config;
  for (auto* const away : {&second_, &first_}) {
    away->Stop();
    ASSERT_TRUE(client_->Unary("RuntimeConfig", cri::RuntimeConfigRequest(), &config).ok());
    EXPECT_EQ(config.linux().cgroup_driver(), cri::CGROUPFS);
    ASSERT_THAT(away->Start(Path(away == &first_ ? "first.sock" : "second.sock")), test::IsOk());
  }
  first_.Stop();
  second_.Stop();
  EXPECT_EQ(Ask("RuntimeConfig").error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(SeveralRepliesTest, UpdateOfRuntimeConfigReachesAllThatAreThere) {
  EXPECT_TRUE(Ask("UpdateRuntimeConfig").ok());
  first_.Stop();
  const grpc::Status status = Ask("UpdateRuntimeConfig");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("runtime default: "));
  EXPECT_THAT(second_.Calls("UpdateRuntimeConfig"), SizeIs(2));
}

TEST_F(SeveralRepliesTest, MetricDescriptorsOfAllRuntimesHaveUniqueNames) {
  cri::ListMetricDescriptorsResponse list;
  list.add_descriptors()->set_name("container_cpu");
  first_.Script("ListMetricDescriptors", {.reply = {{list.SerializeAsString()}}});
  list.add_descriptors()->set_name("vm_memory");
  second_.Script("ListMetricDescriptors", {.reply = {{list.SerializeAsString()}}});
  cri::ListMetricDescriptorsResponse merged;
  ASSERT_TRUE(
      client_->Unary("ListMetricDescriptors", cri::ListMetricDescriptorsRequest(), &merged).ok());
  EXPECT_THAT(merged.descriptors(), SizeIs(2));
}

TEST_F(SeveralRepliesTest, CallThatClientGivesUpIsGivenUpEverywhere) {
  second_.Script("Status", {.hold = true});
  const auto status = client_->Start("Status", cri::StatusRequest());
  ASSERT_TRUE(second_.WaitForHeld("Status", 1));
  status->Cancel();
  EXPECT_TRUE(second_.WaitForCancelled("Status", 1));
}

}  // namespace
}  // namespace resmgr
