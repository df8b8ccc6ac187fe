// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/messages.h"

#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/wire.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;
using google::protobuf::util::MessageDifferencer;
using test::Must;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

v1::CreateContainerRequest FullRequest() {
  v1::CreateContainerRequest request;
  request.set_pod_sandbox_id("sandbox");
  auto& config = *request.mutable_config();
  config.mutable_metadata()->set_name("app");
  config.mutable_metadata()->set_attempt(3);
  (*config.mutable_labels())["l"] = "1";
  (*config.mutable_annotations())["a"] = "2";
  config.add_command("/bin/app");
  auto& resources = *config.mutable_linux()->mutable_resources();
  resources.set_cpu_period(100'000);
  resources.set_cpu_quota(-1);
  resources.set_cpu_shares(2048);
  resources.set_memory_limit_in_bytes(1 << 30);
  resources.set_oom_score_adj(-997);
  resources.set_cpuset_cpus("0-1");
  auto& limit = *resources.add_hugepage_limits();
  limit.set_page_size("2MB");
  limit.set_limit(4096);
  auto& sandbox = *request.mutable_sandbox_config();
  sandbox.mutable_metadata()->set_name("pod");
  sandbox.mutable_metadata()->set_uid("uid");
  sandbox.mutable_metadata()->set_namespace_("ns");
  sandbox.mutable_linux()->set_cgroup_parent("/kubepods/poduid");
  sandbox.mutable_linux()->mutable_resources()->set_cpu_shares(4096);
  sandbox.mutable_linux()->mutable_resources()->set_memory_limit_in_bytes(1 << 30);
  return request;
}

struct DecodedCreate {
  CreateRequest request;
  CreateParts parts;
};

StatusOr<DecodedCreate> DecodeCreate(std::string_view bytes) {
  DecodedCreate decoded;
  RESMGR_RETURN_IF_ERROR(DecodeCreateContainer(bytes, decoded.request, decoded.parts));
  return decoded;
}

TEST(MessagesTest, ASandboxThatCannotBeReadSaysNothingOfItsPod) {
  v1::CreateContainerRequest request = FullRequest();
  request.clear_sandbox_config();
  EXPECT_EQ(DecodeCreate(request.SerializeAsString())->request.pod_resources, std::nullopt);
  std::string bytes = request.SerializeAsString();
  FieldWriter(bytes).Bytes(3, "\x42\x02\x2a\x09");  // resources of nine missing bytes
  const auto decoded = Must(DecodeCreate(bytes));
  EXPECT_EQ(decoded.request.pod_resources, std::nullopt);
  EXPECT_EQ(decoded.request.name, "app");
}

TEST(MessagesTest, ReadsWhatADecisionNeeds) {
  const std::string bytes = FullRequest().SerializeAsString();
  const auto decoded = Must(DecodeCreate(bytes));
  const CreateRequest& request = decoded.request;
  EXPECT_EQ(request.pod_id.value(), "sandbox");
  EXPECT_EQ(request.name, "app");
  EXPECT_EQ(request.attempt, 3U);
  EXPECT_THAT(request.labels, UnorderedElementsAre(Pair("l", "1")));
  EXPECT_THAT(request.annotations, UnorderedElementsAre(Pair("a", "2")));
  EXPECT_TRUE(request.has_resources);
  EXPECT_EQ(request.resources.cpu_period, 100'000);
  EXPECT_EQ(request.resources.cpu_quota, -1);
  EXPECT_EQ(request.resources.cpu_shares, 2048);
  EXPECT_EQ(request.resources.memory_limit, 1 << 30);
  EXPECT_EQ(request.resources.oom_score_adj, -997);
  EXPECT_EQ(request.resources.cpuset_cpus, "0-1");
  EXPECT_EQ(request.resources.cpuset_mems, std::nullopt);
  EXPECT_THAT(request.resources.hugepage_limits, UnorderedElementsAre(Pair("2MB", 4096)));
  ASSERT_TRUE(request.pod_resources.has_value());
  EXPECT_EQ(request.pod_resources->cpu_shares, 4096);
  EXPECT_EQ(request.pod_resources->memory_limit, 1 << 30);

  const auto pod = Must(DecodeSandboxConfig(decoded.parts.sandbox_config));
  EXPECT_EQ(pod.name, "pod");
  EXPECT_EQ(pod.uid.value(), "uid");
  EXPECT_EQ(pod.namespace_name, "ns");
  EXPECT_EQ(pod.qos, QosClass::kGuaranteed);
}

TEST(MessagesTest, ReadsWhatAPodHasAsAWhole) {
  v1::RunPodSandboxRequest request;
  auto& config = *request.mutable_config();
  (*config.mutable_labels())["io.kubernetes.pod.name"] = "web";
  (*config.mutable_labels())["io.kubernetes.pod.namespace"] = "shop";
  config.mutable_linux()->set_cgroup_parent("/kubepods/burstable/podu-1");
  config.mutable_linux()->mutable_overhead()->set_cpu_shares(256);
  config.mutable_linux()->mutable_resources()->set_cpu_quota(150'000);
  const auto decoded = Must(DecodeRunPodSandbox(request.SerializeAsString()));
  const Pod& pod = decoded;
  EXPECT_EQ(pod.name, "web") << "from the label, without metadata";
  EXPECT_EQ(pod.namespace_name, "shop");
  EXPECT_EQ(pod.uid.value(), "u-1") << "from the cgroup";
  EXPECT_EQ(pod.overhead.cpu_shares, 256);
  EXPECT_EQ(pod.overhead.cpu_quota, std::nullopt);
  EXPECT_EQ(pod.resources.cpu_quota, 150'000);

  v1::UpdatePodSandboxResourcesRequest update;
  update.set_pod_sandbox_id("sandbox");
  update.mutable_overhead()->set_memory_limit_in_bytes(4096);
  update.mutable_resources()->set_cpu_shares(512);
  const auto changed = Must(DecodeUpdatePodSandboxResources(update.SerializeAsString()));
  EXPECT_EQ(changed.id.value(), "sandbox");
  EXPECT_EQ(changed.update.overhead.memory_limit, 4096);
  EXPECT_EQ(changed.update.resources.cpu_shares, 512);
  EXPECT_FALSE(DecodeUpdatePodSandboxResources("\x12\x05zz").ok());
}

TEST(MessagesTest, ALabelNamesAContainerWithoutMetadata) {
  v1::CreateContainerRequest request;
  (*request.mutable_config()->mutable_labels())["io.kubernetes.container.name"] = "app";
  const std::string bytes = request.SerializeAsString();
  EXPECT_EQ(DecodeCreate(bytes).value().request.name, "app");
}

TEST(MessagesTest, AnEmptyRequestIsARequest) {
  const auto decoded = Must(DecodeCreate(""));
  EXPECT_FALSE(decoded.request.has_resources);
}

TEST(MessagesTest, SplitMessagesMerge) {
  // To every protobuf parser two occurrences of config and linux are one message.
  v1::CreateContainerRequest second;
  second.mutable_config()->mutable_linux()->mutable_resources()->set_cpu_shares(512);
  const auto decoded =
      Must(DecodeCreate(FullRequest().SerializeAsString() + second.SerializeAsString()));
  EXPECT_EQ(decoded.request.resources.cpu_shares, 512);
  EXPECT_EQ(decoded.request.resources.cpu_quota, -1);
  EXPECT_EQ(decoded.request.name, "app");
}

TEST(MessagesTest, AnAdjustmentChangesItsFieldsAndNothingElse) {
  v1::CreateContainerRequest expected = FullRequest();
  std::string bytes = expected.SerializeAsString();
  FieldWriter(bytes).Bytes(2000, "from next year's API");
  const std::string original = bytes;
  AppendCreateAdjustment({.cpus = CpuSet{4, 5, 6, 7, 12},
                          .mems = NodeSet{1},
                          .cpu_shares = 100,
                          .cpu_quota = -1,
                          .cpu_period = 50'000},
                         bytes);
  EXPECT_EQ(bytes.substr(0, original.size()), original);

  v1::CreateContainerRequest edited;
  ASSERT_TRUE(edited.ParseFromString(bytes));
  auto& resources = *expected.mutable_config()->mutable_linux()->mutable_resources();
  resources.set_cpuset_cpus("4-7,12");
  resources.set_cpuset_mems("1");
  resources.set_cpu_shares(100);
  resources.set_cpu_quota(-1);
  resources.set_cpu_period(50'000);
  expected.GetReflection()->MutableUnknownFields(&expected)->AddLengthDelimited(
      2000, "from next year's API");
  EXPECT_TRUE(MessageDifferencer::Equals(edited, expected)) << edited.DebugString();
}

TEST(MessagesTest, AnEmptyAdjustmentAddsNothing) {
  std::string bytes = "message";
  AppendCreateAdjustment({}, bytes);
  AppendUpdateAdjustment({}, bytes);
  EXPECT_EQ(bytes, "message");
}

TEST(MessagesTest, ReadsTheAttemptOfASandbox) {
  v1::RunPodSandboxRequest request;
  EXPECT_EQ(DecodeSandboxAttempt(request.SerializeAsString()), 0U);
  request.mutable_config()->mutable_metadata()->set_attempt(3);
  EXPECT_EQ(DecodeSandboxAttempt(request.SerializeAsString()), 3U);
  EXPECT_EQ(DecodeSandboxAttempt("\xff"), 0U);
}

TEST(MessagesTest, ReadsAndAdjustsAnUpdate) {
  v1::UpdateContainerResourcesRequest request;
  request.set_container_id("id");
  request.mutable_linux()->set_cpu_shares(1024);
  request.mutable_linux()->set_cpuset_cpus("0-3");
  (*request.mutable_annotations())["why"] = "resize";
  std::string bytes = request.SerializeAsString();
  const auto decoded = Must(DecodeUpdateContainerResources(bytes));
  EXPECT_EQ(decoded.update.annotations, StringMap({{"why", "resize"}}));
  EXPECT_EQ(decoded.id.value(), "id");
  EXPECT_TRUE(decoded.update.has_linux);
  EXPECT_EQ(decoded.update.resources.cpu_shares, 1024);
  EXPECT_EQ(decoded.update.resources.cpuset_cpus, "0-3");

  v1::UpdateContainerResourcesRequest edited;
  AppendUpdateAdjustment({.cpus = CpuSet{2}}, bytes);
  ASSERT_TRUE(edited.ParseFromString(bytes));
  EXPECT_EQ(edited.linux().cpuset_cpus(), "2");
  EXPECT_EQ(edited.linux().cpu_shares(), 1024);
}

TEST(MessagesTest, BuildsAnUpdate) {
  v1::UpdateContainerResourcesRequest request;
  ASSERT_TRUE(request.ParseFromString(
      EncodeUpdateRequest(ContainerId("abc"), {.cpus = CpuSet{1}, .cpu_quota = -1})));
  EXPECT_EQ(request.container_id(), "abc");
  EXPECT_EQ(request.linux().cpuset_cpus(), "1");
  EXPECT_EQ(request.linux().cpu_quota(), -1);
}

TEST(MessagesTest, BrokenBytesAreRefusedAtEveryDepth) {
  const std::string good = FullRequest().SerializeAsString();
  EXPECT_EQ(DecodeCreate(good.substr(0, good.size() - 1)).status().code(),
            StatusCode::kInvalidArgument);
  v1::CreateContainerRequest request;
  request.set_pod_sandbox_id("x");
  std::string nested;
  FieldWriter(nested).Bytes(15, "\xff\xff");
  std::string bytes = request.SerializeAsString();
  FieldWriter(bytes).Bytes(2, nested);
  EXPECT_THAT(Describe(DecodeCreate(bytes).status()),
              HasSubstr("malformed CreateContainerRequest"));
  EXPECT_FALSE(DecodeUpdateContainerResources("\x12\x02\xff\xff").ok());
  EXPECT_FALSE(DecodeId("\x0a").ok());
  EXPECT_FALSE(DecodeRunPodSandbox("\xff").ok());
}

TEST(MessagesTest, ReadsARunPodSandbox) {
  v1::RunPodSandboxRequest request;
  request.mutable_config()->mutable_metadata()->set_name("pod");
  request.mutable_config()->mutable_linux()->set_cgroup_parent("/kubepods/burstable/podx");
  request.set_runtime_handler("kata");
  const auto decoded = Must(DecodeRunPodSandbox(request.SerializeAsString()));
  EXPECT_EQ(decoded.name, "pod");
  EXPECT_EQ(decoded.qos, QosClass::kBurstable);
  EXPECT_EQ(decoded.runtime_handler, "kata");
}

TEST(MessagesTest, RemembersAsManyAnnotationsAsKubernetesAllows) {
  v1::RunPodSandboxRequest request;
  auto& annotations = *request.mutable_config()->mutable_annotations();
  annotations["huge"] = std::string(size_t{1} << 20, 'x');
  for (int i = 0; i < 10; ++i)
    annotations["large" + std::to_string(i)] = std::string(50'000, 'x');
  const auto decoded = Must(DecodeRunPodSandbox(request.SerializeAsString()));
  size_t large = 0;
  for (const auto& [key, value] : decoded.annotations)
    large += value.size();
  EXPECT_EQ(large, 5 * 50'000);
}

TEST(MessagesTest, TellsAContainerThatHasExited) {
  v1::ContainerStatusResponse reply;
  reply.mutable_status()->set_id("abc");
  reply.mutable_status()->mutable_metadata()->set_name("app");
  reply.mutable_status()->set_state(v1::CONTAINER_EXITED);
  (*reply.mutable_info())["info"] = "{}";
  const std::string bytes = reply.SerializeAsString();
  const auto exited = Must(DecodeExited(bytes));
  EXPECT_EQ(exited, "abc");
  for (const auto state : {v1::CONTAINER_CREATED, v1::CONTAINER_RUNNING, v1::CONTAINER_UNKNOWN}) {
    reply.mutable_status()->set_state(state);
    const std::string other_bytes = reply.SerializeAsString();
    const auto other = Must(DecodeExited(other_bytes));
    EXPECT_EQ(other, "");
  }
  EXPECT_FALSE(DecodeExited("\x0a\x7f").ok());
}

}  // namespace
}  // namespace resmgr
