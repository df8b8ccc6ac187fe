// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/object_views.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/view/planned_container.h"
#include "pkg/nri/testing/messages.h"

namespace resmgr::nri {
namespace {

using testing::ElementsAre;

TEST(PodViewTest, ShowsRequestAndFacts) {
  Pod pod;
  pod.id = PodSandboxId("sandbox");
  pod.uid = PodUid("uid");
  pod.name = "web";
  pod.namespace_name = "default";
  pod.cgroup_parent = "/kubepods/pod1";
  pod.runtime_handler = "kata";
  pod.labels = {{"app", "web"}};
  pod.annotations = {{"kubectl.kubernetes.io/last-applied-configuration", "{}"}};
  pod.overhead.cpu_shares = 10;
  pod.resources.memory_limit = 20;
  const SandboxFacts facts{.pod = {},
                           .pid = 7,
                           .ips = {"10.0.0.2", "fd00::2"},
                           .cgroups_path = "/kubepods/pod1/sandbox",
                           .namespaces = {{.type = "network", .path = "/run/netns/1"}}};

  EXPECT_THAT(ToPodSandbox(pod, facts), Is(R"(
    id: "sandbox" name: "web" uid: "uid" namespace: "default" runtime_handler: "kata"
    labels { key: "app" value: "web" }
    annotations { key: "kubectl.kubernetes.io/last-applied-configuration" value: "{}" }
    pid: 7 ips: "10.0.0.2" ips: "fd00::2"
    linux {
      cgroup_parent: "/kubepods/pod1" cgroups_path: "/kubepods/pod1/sandbox"
      namespaces { type: "network" path: "/run/netns/1" }
      pod_overhead { cpu { shares { value: 10 } } memory {} }
      pod_resources { cpu {} memory { limit { value: 20 } } }
    })"));
}

TEST(PodViewTest, WhatTheRuntimeDoesNotTellStays) {
  SandboxFacts facts;
  facts.pid = 7;
  facts.ips = {"10.0.0.2"};
  facts.cgroups_path = "/p";
  api::PodSandbox pod = ToPodSandbox(Pod{}, facts);
  const std::string before = pod.SerializeAsString();
  AddFacts(SandboxFacts(), pod);
  EXPECT_EQ(pod.SerializeAsString(), before);
}

CreateRequest SomeCreate() {
  CreateRequest create;
  create.pod_id = PodSandboxId("sandbox");
  create.name = "app";
  create.labels = {{"l", "1"}};
  create.annotations = {{"a", "1"},
                        {"cdi.k8s.io/x", "vendor/a=0,vendor/b=1"},
                        {"io.kubernetes.cri.blockio-class", "slow"},
                        {"io.kubernetes.cri.rdt-class", "gold"}};
  create.resources = {.cpu_period = 100'000,
                      .cpu_quota = 50'000,
                      .cpu_shares = 512,
                      .memory_limit = 1 << 20,
                      .oom_score_adj = 900,
                      .cpuset_cpus = "0-1",
                      .cpuset_mems = "0",
                      .hugepage_limits = {{"2MB", 4096}}};
  return create;
}

ContainerDetails SomeDetails() {
  ContainerDetails details;
  details.environment = {{"A", "1"}, {"PATH", "/app"}};
  details.command = {"/bin/app"};
  details.args = {"-v"};
  details.mounts = {{.container_path = "/data", .host_path = "/host", .read_only = true},
                    {.container_path = "/shared",
                     .host_path = "/s",
                     .propagation = Mount::Propagation::kBidirectional},
                    {.container_path = "/model", .image = "sha256:abc"}};
  details.devices = {{.container_path = "/dev/fuse", .host_path = "/dev/fuse"}};
  details.cdi_devices = {"vendor/c=2"};
  details.memory_swap_limit = 2 << 20;
  details.unified = {{"memory.high", "9"}};
  details.image = "sha256:def";
  details.specified_image = "registry.example/app:1";
  details.security = {.seccomp = SeccompProfile{.kind = SeccompProfile::Kind::kUnconfined},
                      .user = 1000,
                      .group = 100,
                      .supplemental_groups = {5},
                      .pid = NamespaceMode::kContainer,
                      .ipc = NamespaceMode::kNode};
  return details;
}

TEST(ContainerViewTest, ShowsACreationInFull) {
  const ImageFacts image{.entrypoint = {"/entry"},
                         .command = {"cmd"},
                         .environment = {{"PATH", "/bin"}, {"LANG", "C"}},
                         .digest = "registry.example/app@sha256:123"};
  const auto pod =
      Make<api::PodSandbox>("linux { namespaces { type: 'network' path: '/run/netns/1' } }");

  EXPECT_THAT(ToContainer(SomeCreate(), SomeDetails(), &image, pod), Is(R"(
    pod_sandbox_id: "sandbox" name: "app"
    labels { key: "l" value: "1" }
    annotations { key: "a" value: "1" }
    annotations { key: "cdi.k8s.io/x" value: "vendor/a=0,vendor/b=1" }
    annotations { key: "io.kubernetes.cri.blockio-class" value: "slow" }
    annotations { key: "io.kubernetes.cri.rdt-class" value: "gold" }
    args: "/bin/app" args: "-v"
    env: "PATH=/app" env: "LANG=C" env: "A=1"
    mounts { destination: "/data" source: "/host" type: "bind"
             options: "rbind" options: "rprivate" options: "ro" }
    mounts { destination: "/shared" source: "/s" type: "bind"
             options: "rbind" options: "rshared" options: "rw" }
    mounts { destination: "/model" source: "sha256:abc" type: "image"
             options: "rbind" options: "rprivate" options: "rw" }
    hooks {}
    CDI_devices { name: "vendor/c=2" } CDI_devices { name: "vendor/a=0" }
    CDI_devices { name: "vendor/b=1" }
    user { uid: 1000 gid: 100 additional_gids: 5 }
    image { name: "registry.example/app:1" digest: "sha256:123" config_digest: "sha256:def" }
    linux {
      namespaces { type: "network" path: "/run/netns/1" } namespaces { type: "pid" }
      namespaces { type: "uts" } namespaces { type: "mount" }
      devices { path: "/dev/fuse" }
      oom_score_adj { value: 900 }
      seccomp_profile { profile_type: PROFILE_UNCONFINED }
      resources {
        memory { limit { value: 1048576 } swap { value: 2097152 } }
        cpu { shares { value: 512 } quota { value: 50000 } period { value: 100000 }
              cpus: "0-1" mems: "0" }
        hugepage_limits { page_size: "2MB" limit: 4096 }
        blockio_class { value: "slow" } rdt_class { value: "gold" }
        unified { key: "memory.high" value: "9" }
      }
    })"));
}

// The message and the encoded form must be equal.
TEST(ContainerViewTest, EncodedItIsTheSame) {
  const ImageFacts image{.entrypoint = {"/entry"},
                         .command = {"cmd"},
                         .environment = {{"HOME", "/root"}, {"LANG", "C"}},
                         .digest = {}};
  const auto pod =
      Make<api::PodSandbox>("linux { namespaces { type: 'network' path: '/run/netns/1' } }");
  for (const Environment& environment :
       {Environment{}, Environment{{"A", "1"}, {"B", ""}, {"", "no name"}},
        Environment{{"A", "1"}, {"LANG", "of the request"}}, Environment{{"A", "1"}, {"A", "2"}},
        Environment{{"A", "\xc3\xa4"}, {"B", "\xff"}}, Environment{{"A=B", "1"}, {"A", "2"}}}) {
    for (const ImageFacts* const of_image : {&image, static_cast<const ImageFacts*>(nullptr)}) {
      ContainerDetails details = SomeDetails();
      details.environment = environment;
      api::Container expected = ToContainer(SomeCreate(), details, of_image, pod);
      expected.set_id("alias");
      std::string encoded;
      {
        FieldWriter fields(encoded);
        EncodeContainer(SomeCreate(), details, of_image, pod, "alias", fields);
      }
      api::Container decoded;
      ASSERT_TRUE(decoded.ParseFromString(encoded));
      EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(expected, decoded))
          << decoded.ShortDebugString();
    }
  }
}

bool Append(const Environment& image, const Environment& own, std::string& container) {
  FieldWriter fields(container);
  return AppendPlainEnvironment(image, own, fields);
}

TEST(ContainerViewTest, APlainEnvironmentIsEncodedVariableByVariable) {
  const Environment image = {{"LANG", "C"}};
  std::string encoded;
  ASSERT_TRUE(Append(image, {{"A", "1"}, {"B", "x=y"}}, encoded));
  api::Container decoded;
  ASSERT_TRUE(decoded.ParseFromString(encoded));
  EXPECT_THAT(decoded.env(), ElementsAre("LANG=C", "A=1", "B=x=y"));

  const Environment others[] = {{{"A", "1"}, {"A", "2"}},
                                {{"LANG", "2"}},
                                {{"A", "\xff"}},
                                {{"\xc3\xa4", "1"}},
                                {{"A=B", "1"}}};
  for (const auto& other : others) {
    std::string untouched = "before";
    EXPECT_FALSE(Append(image, other, untouched)) << other[0].name;
    EXPECT_EQ(untouched, "before");
  }
  // The byte may be anywhere.
  for (size_t at = 0; at < 40; ++at) {
    std::string value(40, 'x');
    value[at] = '\x80';
    std::string untouched = "before";
    EXPECT_FALSE(Append(image, {{"A", "1"}, {"B", value}}, untouched)) << at;
    EXPECT_EQ(untouched, "before");
  }
}

TEST(ContainerViewTest, WhatPluginsReadWithoutAskingIsThere) {
  const api::Container container = ToContainer(CreateRequest(), ContainerDetails(), nullptr, {});

  EXPECT_TRUE(container.has_hooks());
  ASSERT_TRUE(container.has_linux());
  EXPECT_TRUE(container.linux().resources().has_cpu());
  EXPECT_TRUE(container.linux().resources().has_memory());
  EXPECT_EQ(container.state(), api::CONTAINER_UNKNOWN);
  EXPECT_FALSE(container.has_user());
  EXPECT_FALSE(container.linux().has_seccomp_profile());
}

TEST(ContainerViewTest, ArgumentsAreThoseThatTheRuntimeWillTake) {
  const ImageFacts image{
      .entrypoint = {"entry"}, .command = {"cmd"}, .environment = {}, .digest = {}};
  const auto args = [](ContainerDetails details, const ImageFacts* of_image) {
    const api::Container container = ToContainer(CreateRequest(), details, of_image, {});
    return std::vector<std::string>(container.args().begin(), container.args().end());
  };
  ContainerDetails only_args;
  only_args.args = {"-v"};
  ContainerDetails only_command;
  only_command.command = {"app"};

  EXPECT_THAT(args({}, &image), ElementsAre("entry", "cmd"));
  EXPECT_THAT(args(only_args, &image), ElementsAre("entry", "-v"));
  EXPECT_THAT(args(only_command, &image), ElementsAre("app"));
  EXPECT_THAT(args({}, nullptr), ElementsAre());
  EXPECT_THAT(args(only_args, nullptr), ElementsAre());
}

TEST(ContainerViewTest, TextsAreUtf8) {
  CreateRequest create;
  create.annotations = {{"a\xff", "1\xc3"}};
  ContainerDetails details;
  details.environment = {{"A", "\xfe"}};
  details.mounts = {{.container_path = "/\x80"}};
  details.command = {"\xf0\x9f"};

  const api::Container container = ToContainer(create, details, nullptr, {});

  // A parser of proto3 refuses invalid UTF-8.
  EXPECT_TRUE(api::Container().ParseFromString(container.SerializeAsString()));
  EXPECT_THAT(container.env(), ElementsAre("A=\xef\xbf\xbd"));
}

TEST(ContainerViewTest, ShowsAContainerThatExists) {
  ContainerFacts facts;
  facts.container.id = ContainerId("c1");
  facts.container.pod_id = PodSandboxId("sandbox");
  facts.container.name = "app";
  facts.container.state = ContainerState::kExited;
  facts.pid = 9;
  facts.created_at = 1;
  facts.started_at = 2;
  facts.finished_at = 3;
  facts.exit_code = 137;
  facts.reason = "OOMKilled";
  facts.message = "m";
  facts.image = "app:1";
  facts.cgroups_path = "/kubepods/pod1/c1";
  facts.namespaces = {{.type = "mount", .path = ""}};
  facts.container.resources.cpu_shares = 2;
  facts.details.command = {"/bin/app", "-v"};
  facts.details.environment = {{"A", "1"}};
  facts.details.hooks = {{.point = OciHook::Point::kPoststop, .path = "/bin/hook"}};
  facts.details.resource_limits = {{.type = "RLIMIT_CORE", .hard = 2, .soft = 1}};

  EXPECT_THAT(ToContainer(facts), Is(R"(
    id: "c1" pod_sandbox_id: "sandbox" name: "app" state: CONTAINER_STOPPED
    args: "/bin/app" args: "-v" env: "A=1"
    hooks { poststop { path: "/bin/hook" } }
    rlimits { type: "RLIMIT_CORE" hard: 2 soft: 1 }
    pid: 9 created_at: 1 started_at: 2 finished_at: 3 exit_code: 137
    status_reason: "OOMKilled" status_message: "m"
    image { name: "app:1" }
    linux {
      namespaces { type: "mount" } cgroups_path: "/kubepods/pod1/c1"
      resources { cpu { shares { value: 2 } } memory {} }
    })"));
}

TEST(ContainerViewTest, WhatTheRuntimeDoesNotTellStays) {
  api::Container container = ToContainer(SomeCreate(), SomeDetails(), nullptr, {});
  container.set_id("alias");
  container.set_pid(4);
  api::Container expected = container;
  expected.set_state(api::CONTAINER_RUNNING);

  ContainerFacts facts;
  facts.container.id = ContainerId("real");
  facts.container.state = ContainerState::kRunning;
  AddFacts(facts, container);

  EXPECT_EQ(container.DebugString(), expected.DebugString());
}

TEST(ContainerViewTest, AListWithoutTheStatusKeepsTimesAndExitCode) {
  ContainerFacts facts;
  facts.container.id = ContainerId("c1");
  facts.container.state = ContainerState::kRunning;
  facts.created_at = 1;
  facts.started_at = 2;
  facts.finished_at = 3;
  facts.exit_code = 137;
  facts.reason = "OOMKilled";
  api::Container container = ToContainer(facts);
  api::Container expected = container;
  expected.set_state(api::CONTAINER_STOPPED);

  ContainerFacts listed;
  listed.container.id = ContainerId("c1");
  listed.container.state = ContainerState::kExited;
  listed.status_missing = true;
  AddFacts(listed, container);

  EXPECT_EQ(container.DebugString(), expected.DebugString());
}

HostPodPtr PodOf(const std::string& text) {
  auto pod = std::make_shared<HostPod>(std::make_shared<uint64_t>(0));
  pod->message.Edit() = Make<api::PodSandbox>(text);
  return pod;
}

class PlannedContainerTest : public testing::Test {
 protected:
  PlannedContainerTest() {
    const HostPodPtr pod = PodOf("id: 'pod' name: 'p'");
    CreateRequest create;
    create.pod_id = PodSandboxId("pod");
    create.name = "app\xff";
    ContainerDetails details;
    details.image = "app:1";
    details.args = {"-v"};
    details.environment = {{"A", "1"}};
    details.security.seccomp = SeccompProfile{.kind = SeccompProfile::Kind::kUnconfined};
    planned_.emplace(pod, std::move(create),
                     std::make_shared<const ContainerDetails>(std::move(details)));
    planned_->SetId("alias");
  }

  api::CreateContainerRequest Asked() const {
    api::CreateContainerRequest request;
    EXPECT_TRUE(request.ParseFromString(planned_->Question()));
    return request;
  }

  std::optional<PlannedContainer> planned_;
};

TEST_F(PlannedContainerTest, IsAskedAboutAsItIsShown) {
  for (const bool known : {false, true}) {
    if (known) {
      planned_->SetImage({.entrypoint = {"/app"},
                          .command = {"unused"},
                          .environment = {{"PATH", "/bin"}},
                          .digest = {}});
    }
    const api::Container made = planned_->Make();
    EXPECT_EQ(made.id(), "alias");
    EXPECT_EQ(made.name(), "app\xef\xbf\xbd");
    EXPECT_EQ(made.pod_sandbox_id(), "pod");
    if (known) {
      EXPECT_THAT(made.args(), testing::ElementsAre("/app", "-v"));
      EXPECT_THAT(made.env(), testing::ElementsAre("PATH=/bin", "A=1"));
    } else {
      EXPECT_THAT(made.args(), testing::IsEmpty()) << "the program is not known";
      EXPECT_THAT(made.env(), testing::ElementsAre("A=1"));
    }
    const api::CreateContainerRequest asked = Asked();
    EXPECT_EQ(asked.pod().ShortDebugString(), planned_->pod().ShortDebugString());
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(asked.container(), made))
        << asked.container().ShortDebugString();
  }
}

TEST_F(PlannedContainerTest, ItsOutlineIsWhatValidatorsOfOurOwnRead) {
  const api::Container made = planned_->Make();
  api::Container expected;
  expected.set_id(made.id());
  expected.set_name(made.name());
  ASSERT_TRUE(made.linux().has_seccomp_profile());
  *expected.mutable_linux()->mutable_seccomp_profile() = made.linux().seccomp_profile();
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(expected, planned_->MakeOutline()));
}

TEST_F(PlannedContainerTest, ItsOutlineHasNoProfileWhereTheRequestHasNone) {
  const HostPodPtr pod = PodOf("id: 'pod'");
  PlannedContainer planned(pod, CreateRequest(), std::make_shared<const ContainerDetails>());
  EXPECT_FALSE(planned.MakeOutline().has_linux());
}

}  // namespace
}  // namespace resmgr::nri
