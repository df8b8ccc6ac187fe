// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/cri_request.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/wire.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Pair;

v1::CreateContainerRequest DetailedRequest() {
  v1::CreateContainerRequest request;
  request.set_pod_sandbox_id("sandbox");
  v1::ContainerConfig& config = *request.mutable_config();
  config.mutable_metadata()->set_name("app");
  config.add_command("/bin/app");
  config.add_args("-v");
  v1::KeyValue& env = *config.add_envs();
  env.set_key("PATH");
  env.set_value("/bin");
  v1::Mount& mount = *config.add_mounts();
  mount.set_container_path("/data");
  mount.set_host_path("/mnt/disk");
  mount.set_readonly(true);
  mount.set_selinux_relabel(true);
  mount.set_propagation(v1::PROPAGATION_HOST_TO_CONTAINER);
  mount.set_recursive_read_only(true);
  v1::Device& device = *config.add_devices();
  device.set_container_path("/dev/x");
  device.set_host_path("/dev/y");
  device.set_permissions("rwm");
  config.add_cdi_devices()->set_name("vendor.com/gpu=0");
  v1::LinuxContainerResources& resources = *config.mutable_linux()->mutable_resources();
  resources.set_memory_swap_limit_in_bytes(123);
  (*resources.mutable_unified())["memory.high"] = "7";
  request.mutable_sandbox_config()->mutable_metadata()->set_name("pod");
  request.mutable_sandbox_config()->mutable_linux()->set_cgroup_parent("/kubepods/podx");
  return request;
}

// A parser merges the occurrences of a message ("Last One Wins" and "Merge" in protobuf's
// encoding).
TEST(CriRequestTest, ReadsAllOccurrencesOfAMessage) {
  v1::CreateContainerRequest more;
  more.mutable_config()->add_mounts()->set_container_path("/more");
  (*more.mutable_config()->mutable_linux()->mutable_resources()->mutable_unified())["memory.low"] =
      "3";
  more.mutable_sandbox_config()->mutable_metadata()->set_namespace_("default");
  const std::string bytes = DetailedRequest().SerializeAsString() + more.SerializeAsString();
  CriRequest cri(Operation::kCreateContainer);
  ASSERT_TRUE(cri.Read(bytes));
  Request& request = cri.request();
  const ContainerDetails& details =
      request.Details({Detail::kCommand, Detail::kMounts, Detail::kResources, Detail::kSandbox});
  EXPECT_THAT(details.command, ElementsAre("/bin/app"));
  EXPECT_THAT(details.mounts, ElementsAre(Field(&Mount::container_path, "/data"),
                                          Field(&Mount::container_path, "/more")));
  EXPECT_EQ(details.memory_swap_limit, 123);
  EXPECT_THAT(details.unified, ElementsAre(Pair("memory.high", "7"), Pair("memory.low", "3")));
  EXPECT_EQ(details.cgroup_parent, "/kubepods/podx");
  const std::optional<Pod> pod = request.ReadPod();
  ASSERT_TRUE(pod.has_value());
  EXPECT_EQ(pod->name, "pod");
  EXPECT_EQ(pod->namespace_name, "default");
}

TEST(CriRequestTest, ReadsDetailsOnlyWhenTheyAreAskedFor) {
  const std::string bytes = DetailedRequest().SerializeAsString();
  CriRequest cri(Operation::kCreateContainer);
  ASSERT_TRUE(cri.Read(bytes));
  Request& request = cri.request();
  EXPECT_EQ(request.create()->name, "app");

  EXPECT_THAT(request.Details({Detail::kCommand}).command, ElementsAre("/bin/app"));
  EXPECT_THAT(request.Details({}).args, ElementsAre("-v"));
  EXPECT_THAT(request.Details({}).mounts, IsEmpty());
  const ContainerDetails& all =
      request.Details({Detail::kEnvironment, Detail::kMounts, Detail::kDevices, Detail::kResources,
                       Detail::kSandbox, Detail::kHooks});
  EXPECT_THAT(all.command, ElementsAre("/bin/app"));
  EXPECT_THAT(all.environment, ElementsAre(EnvironmentVariable{.name = "PATH", .value = "/bin"}));
  EXPECT_THAT(all.mounts, ElementsAre(Mount{.container_path = "/data",
                                            .host_path = "/mnt/disk",
                                            .read_only = true,
                                            .recursive_read_only = true,
                                            .selinux_relabel = true,
                                            .propagation = Mount::Propagation::kHostToContainer}));
  EXPECT_THAT(
      all.devices,
      ElementsAre(Device{.container_path = "/dev/x", .host_path = "/dev/y", .permissions = "rwm"}));
  EXPECT_THAT(all.cdi_devices, ElementsAre("vendor.com/gpu=0"));
  EXPECT_EQ(all.memory_swap_limit, 123);
  EXPECT_THAT(all.unified, ElementsAre(Pair("memory.high", "7")));
  EXPECT_EQ(all.cgroup_parent, "/kubepods/podx");
}

// The first reading notes whether there are any.
TEST(CriRequestTest, DevicesOfEitherKindAreReadByThemselves) {
  for (const bool plain : {false, true}) {
    for (const bool cdi : {false, true}) {
      v1::CreateContainerRequest message = DetailedRequest();
      if (!plain) message.mutable_config()->clear_devices();
      if (!cdi) message.mutable_config()->clear_cdi_devices();
      const std::string bytes = message.SerializeAsString();
      CriRequest cri(Operation::kCreateContainer);
      ASSERT_TRUE(cri.Read(bytes));
      EXPECT_EQ(cri.request().TakeCreate().may_have_devices, plain || cdi);
      const ContainerDetails& details = cri.request().Details({Detail::kDevices});
      EXPECT_EQ(details.devices.size(), plain ? 1U : 0U);
      EXPECT_EQ(details.cdi_devices.size(), cdi ? 1U : 0U);
      EXPECT_THAT(details.command, IsEmpty());
      EXPECT_THAT(cri.request().Details({Detail::kDevices, Detail::kCommand}).command,
                  ElementsAre("/bin/app"));
    }
  }
}

TEST(CriRequestTest, ReadsACreationAgainForTheNextStage) {
  const std::string bytes = DetailedRequest().SerializeAsString();
  CriRequest cri(Operation::kCreateContainer);
  ASSERT_TRUE(cri.Read(bytes));
  const CreateRequest taken = std::move(cri.request().TakeCreate());
  EXPECT_EQ(taken.name, "app");
  ASSERT_NE(cri.request().create(), nullptr);
  EXPECT_EQ(cri.request().create()->name, "app");
  EXPECT_EQ(cri.request().ReadPod()->name, "pod");
}

TEST(CriRequestTest, ReadsTheIdThatARequestIsAbout) {
  v1::StopContainerRequest stop;
  stop.set_container_id("abc");
  CriRequest container(Operation::kStopContainer);
  ASSERT_TRUE(container.Read(stop.SerializeAsString()));
  EXPECT_EQ(container.request().container_id, ContainerId("abc"));

  v1::RemovePodSandboxRequest remove;
  remove.set_pod_sandbox_id("def");
  CriRequest pod(Operation::kRemovePodSandbox);
  ASSERT_TRUE(pod.Read(remove.SerializeAsString()));
  EXPECT_EQ(pod.request().pod_id, PodSandboxId("def"));
}

TEST(CriRequestTest, ReadsWhatAnUpdateOfAPodSets) {
  v1::UpdatePodSandboxResourcesRequest update;
  update.set_pod_sandbox_id("def");
  update.mutable_resources()->set_cpu_shares(5);
  CriRequest cri(Operation::kUpdatePodSandboxResources);
  ASSERT_TRUE(cri.Read(update.SerializeAsString()));
  EXPECT_EQ(cri.request().pod_id, PodSandboxId("def"));
  EXPECT_EQ(std::get<PodUpdate>(cri.request().body).resources.cpu_shares, 5);
}

TEST(CriRequestTest, ReadsDetailsOfAnUpdateOnlyWhenTheyAreAskedFor) {
  v1::UpdateContainerResourcesRequest update;
  update.set_container_id("abc");
  update.mutable_linux()->set_cpu_shares(5);
  update.mutable_linux()->set_memory_swap_limit_in_bytes(123);
  (*update.mutable_linux()->mutable_unified())["memory.high"] = "7";
  const std::string bytes = update.SerializeAsString();
  CriRequest cri(Operation::kUpdateContainerResources);
  ASSERT_TRUE(cri.Read(bytes));
  Request& request = cri.request();
  EXPECT_EQ(std::get<ContainerUpdate>(request.body).resources.cpu_shares, 5);

  EXPECT_EQ(request.Details({Detail::kCommand, Detail::kSandbox}).memory_swap_limit, std::nullopt);
  const ContainerDetails& details = request.Details({Detail::kResources});
  EXPECT_EQ(details.memory_swap_limit, 123);
  EXPECT_THAT(details.unified, ElementsAre(Pair("memory.high", "7")));
}

TEST(CriRequestTest, RefusesBytesThatAreNoSuchMessage) {
  for (const Operation operation :
       {Operation::kCreateContainer, Operation::kStartContainer, Operation::kRunPodSandbox,
        Operation::kUpdateContainerResources, Operation::kUpdatePodSandboxResources}) {
    EXPECT_FALSE(CriRequest(operation).Read("\x0a\x7f"));
  }
}

TEST(CriRequestTest, AnOutcomeHasTheIdThatTheReplyTells) {
  v1::CreateContainerResponse created;
  created.set_container_id("abc");
  const std::string bytes = created.SerializeAsString();
  EXPECT_EQ(ReadOutcome(Operation::kCreateContainer, 0, bytes).id, "abc");
  EXPECT_EQ(ReadOutcome(Operation::kCreateContainer, 2, "").id, "");
  EXPECT_FALSE(ReadOutcome(Operation::kCreateContainer, 2, "").ok());
  EXPECT_EQ(ReadOutcome(Operation::kStartContainer, 0, bytes).id, "");

  v1::ContainerStatusResponse status;
  status.mutable_status()->set_id("abc");
  status.mutable_status()->set_state(v1::CONTAINER_EXITED);
  EXPECT_EQ(ReadOutcome(Operation::kContainerStatus, 0, status.SerializeAsString()).id.size(), 3u);
  status.mutable_status()->set_state(v1::CONTAINER_RUNNING);
  EXPECT_EQ(ReadOutcome(Operation::kContainerStatus, 0, status.SerializeAsString()).id, "");
}

ContainerDetails Read(const v1::ContainerConfig& config, DetailSet parts = kAllDetails) {
  ContainerDetails details;
  EXPECT_TRUE(DecodeDetails(config.SerializeAsString(), "", parts, details));
  return details;
}

TEST(DetailsTest, ReadsTheImage) {
  v1::ContainerConfig config;
  config.mutable_image()->set_image("sha256:abc");
  config.mutable_image()->set_user_specified_image("registry.example/app:1");

  const ContainerDetails details = Read(config);

  EXPECT_EQ(details.image, "sha256:abc");
  EXPECT_EQ(details.specified_image, "registry.example/app:1");
  EXPECT_EQ(Read(config, {Detail::kMounts}).image, "");
}

TEST(DetailsTest, ReadsTheMountOfAnImage) {
  v1::ContainerConfig config;
  v1::Mount& mount = *config.add_mounts();
  mount.set_container_path("/model");
  mount.mutable_image()->set_image("sha256:def");

  EXPECT_THAT(Read(config).mounts,
              ElementsAre(Mount{.container_path = "/model", .image = "sha256:def"}));
}

TEST(DetailsTest, ReadsSecurity) {
  v1::ContainerConfig config;
  auto& context = *config.mutable_linux()->mutable_security_context();
  context.set_privileged(true);
  context.mutable_namespace_options()->set_network(v1::NODE);
  context.mutable_namespace_options()->set_pid(v1::CONTAINER);
  context.mutable_namespace_options()->set_ipc(v1::TARGET);
  context.mutable_run_as_user();  // root: protobuf omits the 0
  context.mutable_run_as_group()->set_value(70'000);
  context.add_supplemental_groups(1);
  context.add_supplemental_groups(300);
  context.mutable_seccomp()->set_profile_type(v1::SecurityProfile::Localhost);
  context.mutable_seccomp()->set_localhost_ref("/profile.json");

  const ContainerSecurity expected{
      .privileged = true,
      .seccomp = SeccompProfile{.kind = SeccompProfile::Kind::kLocalhost, .path = "/profile.json"},
      .user = 0,
      .group = 70'000,
      .supplemental_groups = {1, 300},
      .network = NamespaceMode::kNode,
      .pid = NamespaceMode::kContainer,
      .ipc = NamespaceMode::kTarget};
  EXPECT_EQ(Read(config).security, expected);
  EXPECT_EQ(Read(config, {Detail::kResources}).security, ContainerSecurity());
}

TEST(DetailsTest, TheNewerFormOfASeccompProfileCounts) {
  v1::ContainerConfig config;
  auto& context = *config.mutable_linux()->mutable_security_context();
  context.set_seccomp_profile_path("localhost//old.json");
  const SeccompProfile old{.kind = SeccompProfile::Kind::kLocalhost, .path = "/old.json"};
  EXPECT_EQ(Read(config).security.seccomp, old);

  context.mutable_seccomp()->set_profile_type(v1::SecurityProfile::Unconfined);
  EXPECT_EQ(Read(config).security.seccomp->kind, SeccompProfile::Kind::kUnconfined);
}

TEST(DetailsTest, GroupsMayComeOneByOne) {
  std::string message;
  {
    FieldWriter out(message);
    out.Number(8, 5);
    out.Number(8, 6);
  }
  ContainerSecurity security;
  EXPECT_TRUE(DecodeSecurity(message, security));
  EXPECT_THAT(security.supplemental_groups, ElementsAre(5, 6));
}

TEST(DetailsTest, ListsThatAreCutOffAreBroken) {
  for (const char* groups : {"\x80", "\x81\x82", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"}) {
    std::string message;
    FieldWriter(message).Bytes(8, groups);
    ContainerSecurity security;
    EXPECT_FALSE(DecodeSecurity(message, security));
  }
}

TEST(DetailsTest, UnknownNumbersSayNothing) {
  v1::ContainerConfig config;
  auto& context = *config.mutable_linux()->mutable_security_context();
  context.mutable_namespace_options()->set_network(static_cast<v1::NamespaceMode>(9));
  context.mutable_seccomp()->set_profile_type(static_cast<v1::SecurityProfile::ProfileType>(9));

  EXPECT_EQ(Read(config).security.network, NamespaceMode::kPod);
  EXPECT_EQ(Read(config).security.seccomp->kind, SeccompProfile::Kind::kRuntimeDefault);
}

}  // namespace
}  // namespace resmgr
