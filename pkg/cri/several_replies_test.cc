// SPDX-License-Identifier: Apache-2.0
// Merged replies of two runtimes, and their images.
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/cri/testing/several_runtimes_fixture.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
namespace cri = ::runtime::v1;

constexpr const char* kNewImage = "docker.io/local/new:1";

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
  const auto result = EndOf(*status);
  ASSERT_THAT(result.messages, SizeIs(1));
  cri::StatusResponse reply;
  ASSERT_TRUE(reply.ParseFromString(result.messages.front()));
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

TEST_F(SeveralRepliesTest, ARuntimeThatLacksMetricsHasNone) {
  cri::ListPodSandboxMetricsResponse list;
  list.add_pod_metrics()->set_pod_sandbox_id("p1");
  first_.Script("ListPodSandboxMetrics", {.reply = {{list.SerializeAsString()}}});
  const grpc::Status lacks(grpc::StatusCode::UNIMPLEMENTED, "unknown method");
  second_.Script("ListPodSandboxMetrics", {.error = lacks});
  const auto ask = [this](cri::ListPodSandboxMetricsResponse& reply) {
    return client_->Unary("ListPodSandboxMetrics", cri::ListPodSandboxMetricsRequest(), &reply);
  };
  cri::ListPodSandboxMetricsResponse merged;
  ASSERT_TRUE(ask(merged).ok());
  EXPECT_THAT(merged.pod_metrics(), SizeIs(1));
  first_.Script("ListPodSandboxMetrics", {.error = lacks});
  EXPECT_EQ(ask(merged).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(SeveralRepliesTest, CallThatClientGivesUpIsGivenUpEverywhere) {
  second_.Script("Status", {.hold = true});
  const auto status = client_->Start("Status", cri::StatusRequest());
  ASSERT_TRUE(second_.WaitForHeld("Status", 1));
  status->Cancel();
  EXPECT_TRUE(second_.WaitForCancelled("Status", 1));
}

// Images of two runtimes, each with its own store.
class SeveralImagesTest : public SeveralRuntimesTest {
 protected:
  grpc::Status Pull(const cri::PullImageRequest& request) {
    cri::PullImageResponse reply;
    return client_->Unary("PullImage", request, &reply);
  }
  static cri::PullImageRequest PullFor(const std::string& pod) {
    cri::PullImageRequest request;
    request.mutable_image()->set_image(kNewImage);
    if (!pod.empty()) *request.mutable_sandbox_config() = test::MakeBestEffortPod(pod);
    return request;
  }
  // Whether the kubelet would consider the image present.
  bool Present(const std::string& handler = "") {
    cri::ImageStatusRequest request;
    request.mutable_image()->set_image(kNewImage);
    request.mutable_image()->set_runtime_handler(handler);
    cri::ImageStatusResponse reply;
    EXPECT_TRUE(client_->Unary("ImageStatus", request, &reply).ok());
    return reply.has_image();
  }
  int Images(const std::string& handler = "") {
    cri::ListImagesRequest request;
    request.mutable_filter()->mutable_image()->set_runtime_handler(handler);
    cri::ListImagesResponse reply;
    EXPECT_TRUE(client_->Unary("ListImages", request, &reply).ok());
    return reply.images_size();
  }
};

TEST_F(SeveralImagesTest, R07ImageIsPulledWhereItsPodRuns) {
  RunPod("here", "");
  RunPod("there", "kata");
  EXPECT_TRUE(Pull(PullFor("here")).ok());
  EXPECT_FALSE(Present()) << "the other runtime lacks it";
  EXPECT_TRUE(Pull(PullFor("there")).ok());
  EXPECT_THAT(first_.Calls("PullImage"), SizeIs(1));
  EXPECT_THAT(second_.Calls("PullImage"), SizeIs(1));
  EXPECT_TRUE(Present());
}

// The configuration moves a handler to another runtime, and the pod gets a new sandbox. The kubelet
// keeps the old one as long as it keeps a dead container in it.
TEST_F(SeveralImagesTest, R07ImageIsPulledWhereTheLastSandboxOfThePodRuns) {
  EXPECT_THAT(client_->StopPod(RunPod("moved", "kata")), test::IsOk());
  RunPod("moved", "");
  EXPECT_THAT(PodIds(), SizeIs(2));
  EXPECT_TRUE(Pull(PullFor("moved")).ok());
  EXPECT_THAT(first_.Calls("PullImage"), SizeIs(1));
  EXPECT_THAT(second_.Calls("PullImage"), SizeIs(0));
}

TEST_F(SeveralImagesTest, R07RuntimeWithoutPodsNeedsNoImage) {
  RunPod("here", "");
  EXPECT_TRUE(Pull(PullFor("here")).ok());
  EXPECT_FALSE(Present()) << "what the other one has is not known";
  EXPECT_THAT(PodIds(), SizeIs(1));
  EXPECT_TRUE(Present());
  const std::string there = RunPod("there", "kata");
  EXPECT_FALSE(Present()) << "its container may come next";
  EXPECT_THAT(client_->StopPod(there), test::IsOk());
  EXPECT_THAT(client_->RemovePod(there), test::IsOk());
  EXPECT_TRUE(Present());
}

TEST_F(SeveralImagesTest, R07PodOfPullIsLookedForWhereItIsNotKnown) {
  RunPod("there", "kata");
  ForgetIds();
  EXPECT_TRUE(Pull(PullFor("there")).ok());
  EXPECT_THAT(second_.Calls("PullImage"), SizeIs(1));
  EXPECT_TRUE(Pull(PullFor("no such pod")).ok());
  EXPECT_TRUE(Pull(PullFor("")).ok());
  EXPECT_THAT(first_.Calls("PullImage"), SizeIs(2)) << "the default";
}

TEST_F(SeveralImagesTest, R07PodsOfListsAreKnown) {
  RunPod("there", "kata");
  ForgetIds();
  EXPECT_THAT(PodIds(), SizeIs(1));
  const size_t lists = first_.Calls("ListContainers").size();
  EXPECT_TRUE(Pull(PullFor("there")).ok());
  EXPECT_THAT(second_.Calls("PullImage"), SizeIs(1));
  EXPECT_THAT(first_.Calls("ListContainers"), SizeIs(lists)) << "nothing was looked for";
}

TEST_F(SeveralImagesTest, R07HandlerOfImageChoosesItsRuntime) {
  cri::PullImageRequest pull = PullFor("");
  pull.mutable_image()->set_runtime_handler("kata");
  EXPECT_TRUE(Pull(pull).ok());
  EXPECT_THAT(first_.Calls("PullImage"), IsEmpty());
  EXPECT_TRUE(Present("kata"));
  EXPECT_FALSE(Present("runc"));
  EXPECT_FALSE(Present());
  EXPECT_EQ(Images("kata"), 3);
  EXPECT_EQ(Images("runc"), 2);
}

TEST_F(SeveralImagesTest, ImagesOfAllRuntimesAreListedOnceAndRemovedEverywhere) {
  cri::PullImageRequest pull = PullFor("");
  pull.mutable_image()->set_runtime_handler("kata");
  EXPECT_TRUE(Pull(pull).ok());
  EXPECT_EQ(Images(), 3) << "two are at both";
  EXPECT_TRUE(Pull(PullFor("")).ok());
  EXPECT_TRUE(Present());
  cri::RemoveImageRequest remove;
  remove.mutable_image()->set_image(kNewImage);
  cri::RemoveImageResponse removed;
  EXPECT_TRUE(client_->Unary("RemoveImage", remove, &removed).ok());
  EXPECT_FALSE(Present("runc"));
  EXPECT_FALSE(Present("kata"));
}

TEST_F(SeveralImagesTest, RuntimeThatIsAwayHoldsNoOtherOnesImages) {
  EXPECT_TRUE(Pull(PullFor("")).ok());
  cri::ImageFsInfoResponse file_systems;
  ASSERT_TRUE(client_->Unary("ImageFsInfo", cri::ImageFsInfoRequest(), &file_systems).ok());
  EXPECT_THAT(file_systems.image_filesystems(), SizeIs(2));
  second_.Stop();
  EXPECT_TRUE(Present()) << "the runtime that is away creates no container of it";
  ASSERT_TRUE(client_->Unary("ImageFsInfo", cri::ImageFsInfoRequest(), &file_systems).ok());
  EXPECT_THAT(file_systems.image_filesystems(), SizeIs(1));
  const grpc::Status list = Ask("ListImages");
  EXPECT_EQ(list.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(list.error_message(), HasSubstr("runtime kata: "));
  first_.Stop();
  EXPECT_THAT(Ask("ImageStatus").error_message(), HasSubstr("runtime default: "));
  EXPECT_THAT(Ask("ImageFsInfo").error_message(), HasSubstr("runtime default: "));
}

TEST_F(SeveralImagesTest, DefaultRuntimeMayHaveItsImagesElsewhere) {
  test::FakeRuntime images;
  ASSERT_THAT(images.Start(Path("images.sock")), test::IsOk());
  StopRelay();
  thread_.Do([this] {
    router_.reset();
    backends_ = std::make_unique<Backends>(std::vector<Backends::Backend>{
        {.name = "default", .socket = Path("first.sock"), .image_socket = Path("images.sock")},
        {.name = "kata", .socket = Path("second.sock"), .handlers = {"kata"}}});
    router_ = std::make_unique<BackendRouter>(thread_.loop(), thread_.flushes(), *backends_);
  });
  Serve();
  client_ = std::make_unique<test::CriClient>(RelaySocket());
  RunPod("here", "");
  EXPECT_TRUE(Pull(PullFor("here")).ok());
  EXPECT_EQ(Images(), 3);
  EXPECT_THAT(images.Calls("PullImage"), SizeIs(1));
  EXPECT_THAT(images.Calls("ListImages"), SizeIs(1));
  EXPECT_THAT(first_.Calls("ListImages"), IsEmpty());
  EXPECT_THAT(images.Calls("RunPodSandbox"), IsEmpty());
}

// A kubelet records an image's users under the id from PullImage and looks up the id from
// ImageStatus.
class ImageIdFormsTest : public SeveralImagesTest {
 protected:
  static std::string WithPrefix() { return "sha256:" + Digits(); }
  static std::string Digits() { return std::string(64, 'a'); }
  static cri::ContainerStatus StatusOfContainer(const std::string& id) {
    cri::ContainerStatus status;
    status.set_id(id);
    status.mutable_image()->set_image(kNewImage);
    status.set_image_ref(WithPrefix());
    status.set_image_id(WithPrefix());
    return status;
  }
  std::string Pulled(test::FakeRuntime& runtime, const std::string& handler,
                     const std::string& answer) {
    cri::PullImageResponse reply;
    reply.set_image_ref(answer);
    runtime.Script("PullImage", {.times = 1, .reply = {{reply.SerializeAsString()}}});
    cri::PullImageRequest request = PullFor("");
    request.mutable_image()->set_runtime_handler(handler);
    EXPECT_TRUE(client_->Unary("PullImage", request, &reply).ok());
    return reply.image_ref();
  }
};

TEST_F(ImageIdFormsTest, APullAnswersTheIdThatImagesAreShownBy) {
  EXPECT_EQ(Pulled(first_, "runc", WithPrefix()), WithPrefix()) << "the only form";
  EXPECT_EQ(Pulled(second_, "kata", Digits()), Digits());
  EXPECT_EQ(Pulled(first_, "runc", WithPrefix()), Digits()) << "known of pulls alone";
  const std::string by_digest = "docker.io/local/new@" + WithPrefix();
  EXPECT_EQ(Pulled(first_, "runc", by_digest), by_digest) << "no id";
}

TEST_F(ImageIdFormsTest, AContainerOfEachReplyHasTheIdThatImagesAreShownBy) {
  const std::string pod = RunPod("here", "");
  const std::string container = CreateContainer(pod);
  EXPECT_EQ(Pulled(second_, "kata", Digits()), Digits());
  cri::ContainerStatusResponse status;
  *status.mutable_status() = StatusOfContainer(container);
  first_.Script("ContainerStatus", {.reply = {{status.SerializeAsString()}}});
  cri::ContainerStatusRequest request;
  request.set_container_id(container);
  ASSERT_TRUE(client_->Unary("ContainerStatus", request, &status).ok());
  EXPECT_EQ(status.status().image_ref(), Digits());
  EXPECT_EQ(status.status().image_id(), Digits());
  EXPECT_EQ(status.status().image().image(), kNewImage);

  cri::PodSandboxStatusResponse of_pod;
  of_pod.mutable_status()->set_id(pod);
  *of_pod.add_containers_statuses() = StatusOfContainer(container);
  first_.Script("PodSandboxStatus", {.reply = {{of_pod.SerializeAsString()}}});
  cri::PodSandboxStatusRequest pod_request;
  pod_request.set_pod_sandbox_id(pod);
  ASSERT_TRUE(client_->Unary("PodSandboxStatus", pod_request, &of_pod).ok());
  EXPECT_EQ(of_pod.containers_statuses(0).image_ref(), Digits());
  EXPECT_EQ(of_pod.containers_statuses(0).image_id(), Digits());

  cri::ContainerEventResponse event;
  event.set_container_id(container);
  *event.add_containers_statuses() = StatusOfContainer(container);
  first_.Script("GetContainerEvents", {.reply = {{event.SerializeAsString()}}, .stall = true});
  const auto events = client_->Start(client_->PathOf("GetContainerEvents"), "");
  ASSERT_TRUE(events->WaitForMessages(1, kPatience));
  events->Cancel();
  const auto result = EndOf(*events);
  ASSERT_TRUE(event.ParseFromString(result.messages.at(0)));
  EXPECT_EQ(event.containers_statuses(0).image_ref(), Digits());
  EXPECT_EQ(event.containers_statuses(0).image_id(), Digits());
}

}  // namespace
}  // namespace resmgr
