// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/pod_trace.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/nri.pb.h"
#include "pkg/api/runtime_v1.pb.h"
#include "pkg/dump/dump_fixture.h"

namespace resmgr::dump {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kService = "/runtime.v1.RuntimeService/";

class PodTraceTest : public DumpFixture {
 protected:
  // A call with one reply, of which an event each is reported.
  void Call(std::string_view method, const std::string& request, const std::string& reply,
            int code = 0) {
    const std::string path = std::string(kService).append(method);
    const CallRef call = {.id = ++last_call_, .path = path};
    if (dumper_->WantsMethod(path) == Interest::kNone) return;
    dumper_->OnRequest(call, Payload(request));
    if (code == 0) dumper_->OnReply(call, Payload(reply));
    dumper_->OnEnd(call, code, code == 0 ? "" : "broken");
  }
  // The same of the Docker API, without a reply.
  void DockerCall(std::string_view method, const std::string& request,
                  const std::string& reply = "") {
    const std::string path = std::string("/docker/").append(method);
    const CallRef call = {.id = ++last_call_, .path = path};
    Payload payload(request);
    payload.encoding = "json";
    dumper_->OnRequest(call, std::move(payload));
    Payload answer(reply);
    answer.encoding = "json";
    if (!reply.empty()) dumper_->OnReply(call, std::move(answer));
    dumper_->OnEnd(call, 0, "");
  }
  static std::string Labels(const std::string& name_space, const std::string& pod) {
    return R"({"Image":"i", "Labels" : { "io.kubernetes.pod.namespace" : ")" + name_space +
           R"(", "io.kubernetes.pod.name": ")" + pod + R"("}})";
  }
  static std::string RunPod(const std::string& name_space, const std::string& pod) {
    runtime::v1::RunPodSandboxRequest request;
    auto* const metadata = request.mutable_config()->mutable_metadata();
    metadata->set_name(pod);
    metadata->set_namespace_(name_space);
    metadata->set_uid("11111111-2222");
    return request.SerializeAsString();
  }
  static std::string Start(const std::string& id) {
    runtime::v1::StartContainerRequest request;
    request.set_container_id(id);
    return request.SerializeAsString();
  }
  // A trace of the pod shop/web, whose calls are from now on in it.
  std::shared_ptr<PodTrace> Trace(std::vector<std::string> ids = {}) {
    auto trace = std::make_shared<PodTrace>("shop", "web", std::move(ids));
    EXPECT_TRUE(DumpFixture::Start({}).ok());
    EXPECT_TRUE(dumper_->Trace(trace).ok());
    return trace;
  }
  // All that was traced, once the dumper has written it.
  std::string Text(PodTrace& trace) {
    EXPECT_TRUE(dumper_->Trace(nullptr).ok());
    EXPECT_TRUE(dumper_->Close(std::chrono::seconds(30)));
    return trace.TakeText().text;
  }

  uint64_t last_call_ = 0;
};

TEST_F(PodTraceTest, HasTheCallsAboutThePodAlone) {
  ASSERT_TRUE(DumpFixture::Start({}).ok());
  const auto trace =
      std::make_shared<PodTrace>("shop", "web", std::vector<std::string>{"c0ffee00c0ffee"});
  Call("RunPodSandbox", RunPod("shop", "web"), "");
  EXPECT_TRUE(dumper_->Trace(trace).ok());
  runtime::v1::RunPodSandboxResponse made;
  made.set_pod_sandbox_id("5a4db0c55a4db0c5");
  Call("RunPodSandbox", RunPod("shop", "web"), made.SerializeAsString());
  Call("RunPodSandbox", RunPod("shop", "web-2"), "");
  Call("RunPodSandbox", RunPod("other", "web"), "");
  Call("Version", "", "");
  Call("StartContainer", Start("c0ffee00c0ffee"), "", 5);
  runtime::v1::StopPodSandboxRequest stop;
  stop.set_pod_sandbox_id("5a4db0c55a4db0c5");
  Call("StopPodSandbox", stop.SerializeAsString(), "");
  const std::string text = Text(*trace);
  EXPECT_THAT(text, Not(HasSubstr("#1 "))) << "before it began";
  EXPECT_THAT(text, HasSubstr("#2 (passthrough) REQUEST RunPodSandbox"));
  EXPECT_THAT(text, HasSubstr("#2 (passthrough) REPLY RunPodSandbox <= pod_sandbox_id: 5a4d"));
  EXPECT_THAT(text, HasSubstr("#6 (passthrough) FAILED StartContainer"));
  EXPECT_THAT(text, HasSubstr("#7 (passthrough) REQUEST StopPodSandbox")) << "by the learned id";
  for (const char* const other : {"#3 ", "#4 ", "#5 "})
    EXPECT_THAT(text, Not(HasSubstr(other)));
  EXPECT_THAT(LogSoFar(), IsEmpty()) << "the rules say nothing";
}

TEST_F(PodTraceTest, AtTheDockerApiLabelsAndNamesSayWhichPod) {
  const auto trace = Trace({"c0ffee00c0ffee"});
  DockerCall("ContainerCreate", Labels("shop", "web"), R"({"Id":"5a4db0c55a4db0c5"})");  // 1
  DockerCall("ContainerCreate", Labels("shop", "web-2"), R"({"Id":"0000000000000000"})");
  DockerCall("ContainerCreate", Labels("other", "web"));
  DockerCall("ContainerStart", R"({"path":"/containers/5a4db0c55a4db0c5/start"})");  // 4
  DockerCall("ContainerStart", R"({"path":"/containers/0000000000000000/start"})");
  DockerCall("GetContainers", R"({"path":"/containers/c0ffee00c0ffee/json"})");      // 6
  DockerCall("ContainerStop", R"({"path":"/containers/k8s_c_web_shop_u_0/stop"})");  // 7
  DockerCall("ContainerStop", R"({"path":"/containers/k8s_c_my-web_shop_u_0/stop"})");
  DockerCall("ContainerCreate", R"({"Labels":["io.kubernetes.pod.name","web","shop"]})");
  DockerCall("ContainerCreate", R"({"Labels":{"io.kubernetes.pod.name":"web")");
  const std::string text = Text(*trace);
  for (const char* const its :
       {"#1 (passthrough) REQUEST ContainerCreate",
        "#1 (passthrough) REPLY ContainerCreate <= Id: 5a4d",
        "#4 (passthrough) REQUEST ContainerStart", "#6 (passthrough) REQUEST GetContainers",
        "#7 (passthrough) REQUEST ContainerStop"})
    EXPECT_THAT(text, HasSubstr(its));
  for (const char* const other : {"#2 ", "#3 ", "#5 ", "#8 ", "#9 ", "#10 "})
    EXPECT_THAT(text, Not(HasSubstr(other)));
}

// Updates that the daemon asks the runtime for have the container's id only.
TEST_F(PodTraceTest, ObjectsOfNriAreKnownByTheIdsOfTheirEvents) {
  const auto trace = Trace();
  const auto call = [this](const std::string& path, const std::string& request,
                           const std::string& reply) {
    const CallRef made = {.id = ++last_call_, .path = path};
    dumper_->OnRequest(made, Payload(request));
    dumper_->OnReply(made, Payload(reply));
    dumper_->OnEnd(made, 0, "");
  };
  nri::pkg::api::v1alpha1::CreateContainerRequest create;
  create.mutable_pod()->set_id("5a4db0c55a4db0c5");
  create.mutable_pod()->set_name("web");
  create.mutable_pod()->set_namespace_("shop");
  create.mutable_container()->set_id("c0ffee00c0ffee");
  nri::pkg::api::v1alpha1::CreateContainerResponse created;
  (*created.mutable_adjust()->mutable_annotations())["eight-bytes"] = "long";
  call("/nri.pkg.api.v1alpha1.Plugin/CreateContainer", create.SerializeAsString(),
       created.SerializeAsString());
  nri::pkg::api::v1alpha1::UpdateContainersRequest update;
  update.add_update()->set_container_id("c0ffee00c0ffee");
  call("/nri.pkg.api.v1alpha1.Runtime/UpdateContainers", update.SerializeAsString(), "");
  EXPECT_THAT(Text(*trace), HasSubstr("#2 (passthrough) REQUEST UpdateContainers"));
}

TEST_F(PodTraceTest, CallsWithoutRoomAreCounted) {
  const auto trace = Trace();
  dumper_->GiveUp({.id = ++last_call_, .path = std::string(kService) + "ListContainers"}, false);
  EXPECT_EQ(trace->TakeText().lost_calls, 1U);
  EXPECT_EQ(trace->TakeText().lost_calls, 0U);
}

TEST_F(PodTraceTest, NothingIsReportedOnceItIsOver) {
  const auto trace = Trace();
  EXPECT_EQ(dumper_->WantsMethod("/runtime.v1.RuntimeService/Version"), Interest::kMessages);
  EXPECT_TRUE(dumper_->Trace(nullptr).ok());
  EXPECT_EQ(dumper_->WantsMethod("/runtime.v1.RuntimeService/Version"), Interest::kNone);
}

TEST_F(PodTraceTest, WhatWaitsForItsReaderIsBounded) {
  const auto trace = Trace();
  runtime::v1::RunPodSandboxRequest request;
  ASSERT_TRUE(request.ParseFromString(RunPod("shop", "web")));
  for (int i = 0; i < 1000; ++i)
    (*request.mutable_config()->mutable_labels())[std::to_string(i)] = std::string(100, 'x');
  const std::string bytes = request.SerializeAsString();
  for (int i = 0; i < 50; ++i)
    Call("RunPodSandbox", bytes, "");
  EXPECT_TRUE(dumper_->Trace(nullptr).ok());
  ASSERT_TRUE(dumper_->Close(std::chrono::seconds(30)));
  const PodTrace::Piece piece = trace->TakeText();
  EXPECT_LE(piece.text.size(), PodTrace::kMostText);
  EXPECT_GT(piece.text.size(), PodTrace::kMostText / 2);
  EXPECT_GT(piece.lost_lines, 0U);
  EXPECT_THAT(trace->TakeText().text, IsEmpty());
}

TEST_F(PodTraceTest, TheTextIsTakenInPiecesOfWholeLines) {
  const auto trace = Trace();
  for (int i = 0; i < 20; ++i)
    Call("RunPodSandbox", RunPod("shop", "web"), "");
  EXPECT_TRUE(dumper_->Trace(nullptr).ok());
  ASSERT_TRUE(dumper_->Close(std::chrono::seconds(30)));
  constexpr size_t kMost = 500;
  int pieces = 0;
  for (PodTrace::Piece piece; pieces == 0 || piece.more; ++pieces) {
    piece = trace->TakeText(kMost);
    EXPECT_THAT(piece.text, EndsWith("\n"));
    EXPECT_LE(piece.text.size(), kMost);
  }
  EXPECT_GT(pieces, 3);
  EXPECT_THAT(trace->TakeText(kMost).text, IsEmpty());
}

// Their ends may have been dropped for want of room.
TEST_F(PodTraceTest, CallsThatNeverEndKeepNoLaterOneOut) {
  PodTrace trace("shop", "web", {});
  const auto plan = std::make_shared<MethodPlan>(MethodPlan{
      .name = "RunPodSandbox", .types = FindMethodTypes(std::string(kService) + "RunPodSandbox")});
  const auto begin = [&](uint64_t call) {
    Event event{.call = call, .plan = plan, .payload = Payload(RunPod("shop", "web"))};
    trace.Take(event);
    return trace.TakeText().text;
  };
  for (uint64_t call = 1; call <= PodTrace::kMostCalls; ++call)
    begin(call);
  EXPECT_THAT(begin(PodTrace::kMostCalls + 1), HasSubstr("REQUEST RunPodSandbox"));
}

TEST_F(PodTraceTest, ALineThatIsLongerThanAPieceComesAlone) {
  const auto trace = Trace();
  Call("RunPodSandbox", RunPod("shop", "web"), "");
  EXPECT_TRUE(dumper_->Trace(nullptr).ok());
  ASSERT_TRUE(dumper_->Close(std::chrono::seconds(30)));
  const PodTrace::Piece piece = trace->TakeText(1);
  EXPECT_EQ(std::ranges::count(piece.text, '\n'), 1);
  EXPECT_TRUE(piece.more);
}

}  // namespace
}  // namespace resmgr::dump
