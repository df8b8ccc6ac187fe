// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_facts.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;
using test::Must;
using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;
using testing::Pair;

SandboxFacts Sandbox(const v1::PodSandboxStatus& status, std::string_view info) {
  v1::PodSandboxStatusResponse response;
  *response.mutable_status() = status;
  (*response.mutable_info())["info"] = std::string(info);
  auto facts = ReadSandboxFacts(response.SerializeAsString());
  EXPECT_TRUE(facts.ok()) << facts.status();
  return facts.value_or(SandboxFacts());
}

ContainerFacts Container(const v1::ContainerStatus& status, std::string_view info) {
  v1::ContainerStatusResponse response;
  *response.mutable_status() = status;
  (*response.mutable_info())["info"] = std::string(info);
  auto facts = ReadContainerFacts(response.SerializeAsString());
  EXPECT_TRUE(facts.ok()) << facts.status();
  return facts.value_or(ContainerFacts());
}

TEST(RuntimeFactsTest, ContainerdTellsOfASandbox) {
  v1::PodSandboxStatus status;
  status.set_id("s1");
  status.mutable_metadata()->set_name("web");
  status.mutable_metadata()->set_namespace_("shop");
  status.mutable_metadata()->set_uid("u-1");
  status.mutable_metadata()->set_attempt(2);
  status.set_state(v1::SANDBOX_READY);
  status.set_runtime_handler("kata");
  status.mutable_network()->set_ip("10.0.0.7");
  status.mutable_network()->add_additional_ips()->set_ip("fd00::7");
  (*status.mutable_labels())["app"] = "web";
  const SandboxFacts facts = Sandbox(status, R"({"pid":4711,
      "config":{"linux":{"cgroup_parent":"/kubepods/podu-1"}},
      "runtimeSpec":{"linux":{"cgroupsPath":"/kubepods/podu-1/s1",
        "namespaces":[{"type":"pid"},{"type":"network","path":"/run/netns/cni-1"},{}]}}})");
  EXPECT_EQ(facts.pod.id.value(), "s1");
  EXPECT_EQ(facts.pod.name, "web");
  EXPECT_EQ(facts.pod.namespace_name, "shop");
  EXPECT_EQ(facts.pod.uid.value(), "u-1");
  EXPECT_EQ(facts.attempt, 2U);
  EXPECT_EQ(facts.pod.runtime_handler, "kata");
  EXPECT_EQ(facts.pod.cgroup_parent, "/kubepods/podu-1");
  EXPECT_EQ(facts.pod.qos, QosClass::kGuaranteed);
  EXPECT_THAT(facts.pod.labels, ElementsAre(Pair("app", "web")));
  EXPECT_TRUE(facts.ready);
  EXPECT_EQ(facts.pid, 4711U);
  EXPECT_THAT(facts.ips, ElementsAre("10.0.0.7", "fd00::7"));
  EXPECT_EQ(facts.cgroups_path, "/kubepods/podu-1/s1");
  EXPECT_THAT(facts.namespaces,
              ElementsAre(FieldsAre("pid", ""), FieldsAre("network", "/run/netns/cni-1")));
}

TEST(RuntimeFactsTest, SandboxThatHasEndedHasNoProcess) {
  v1::PodSandboxStatus status;
  status.set_state(v1::SANDBOX_NOTREADY);
  const SandboxFacts facts = Sandbox(status, R"({"pid":0,"runtimeSpec":null})");
  EXPECT_FALSE(facts.ready);
  EXPECT_EQ(facts.pid, 0U);
  EXPECT_THAT(facts.ips, IsEmpty());
}

v1::ContainerStatus ExitedContainer() {
  v1::ContainerStatus status;
  status.set_id("c1");
  status.mutable_metadata()->set_name("main");
  status.mutable_metadata()->set_attempt(3);
  status.set_state(v1::CONTAINER_EXITED);
  status.set_created_at(100);
  status.set_started_at(200);
  status.set_finished_at(300);
  status.set_exit_code(137);
  status.set_reason("OOMKilled");
  status.set_message("of memory");
  status.mutable_image()->set_image("docker.io/library/web:1");
  return status;
}

TEST(RuntimeFactsTest, StatusTellsOfAContainersLife) {
  v1::ContainerStatus status = ExitedContainer();
  const ContainerFacts facts = Container(status, R"({"sandboxID":"s1","pid":0})");
  EXPECT_EQ(facts.container.id.value(), "c1");
  EXPECT_EQ(facts.container.pod_id.value(), "s1");
  EXPECT_EQ(facts.container.name, "main");
  EXPECT_EQ(facts.container.attempt, 3U);
  EXPECT_EQ(facts.container.state, ContainerState::kExited);
  EXPECT_EQ(facts.created_at, 100);
  EXPECT_EQ(facts.started_at, 200);
  EXPECT_EQ(facts.finished_at, 300);
  EXPECT_EQ(facts.exit_code, 137);
  EXPECT_EQ(facts.reason, "OOMKilled");
  EXPECT_EQ(facts.message, "of memory");
  EXPECT_EQ(facts.image, "docker.io/library/web:1");
  status.mutable_image()->set_user_specified_image("web:1");
  EXPECT_EQ(Container(status, "{}").image, "web:1");
}

constexpr std::string_view kContainerInfo = R"({"pid":42,
  "config":{"devices":[{"container_path":"/dev/fuse","host_path":"/dev/fuse0","permissions":"rw"}],
            "CDI_devices":[{"name":"vendor.com/gpu=1"}]},
  "runtimeSpec":{
    "process":{"args":["/bin/web","-v"],"env":["PATH=/bin","EMPTY=","BARE","EQ=a=b"],
               "rlimits":[{"type":"RLIMIT_NOFILE","hard":18446744073709551615,"soft":1024}]},
    "mounts":[
      {"destination":"/proc","type":"proc","source":"proc"},
      {"destination":"/data","type":"bind","source":"/var/data","options":["rbind","rslave","ro"]},
      {"destination":"/lib","source":"/lib","options":["rbind","rprivate","rro"]},
      {"destination":"/shared","source":"/s","options":["bind","rshared","rw"]}],
    "hooks":{"poststop":[{"path":"/bin/h","args":["h","x"],"env":["A=1"],"timeout":5}],
             "createRuntime":[{"path":"/bin/r"}]},
    "linux":{"cgroupsPath":"kubepods.slice:cri-containerd:c1",
      "namespaces":[{"type":"mount"}],
      "resources":{"memory":{"limit":4096,"swap":8192},
        "unified":{"memory.high":"1000","odd":7}}}}})";

TEST(RuntimeFactsTest, SpecificationTellsWhatIsInForce) {
  const ContainerFacts facts = Container({}, kContainerInfo);
  EXPECT_EQ(facts.pid, 42U);
  EXPECT_EQ(facts.cgroups_path, "kubepods.slice:cri-containerd:c1");
  EXPECT_THAT(facts.namespaces, ElementsAre(FieldsAre("mount", "")));
  EXPECT_EQ(facts.container.resources.memory_limit, 4096);
  const ContainerDetails& details = facts.details;
  EXPECT_THAT(details.command, ElementsAre("/bin/web", "-v"));
  EXPECT_THAT(details.args, IsEmpty());
  EXPECT_THAT(details.environment, ElementsAre(FieldsAre("PATH", "/bin"), FieldsAre("EMPTY", ""),
                                               FieldsAre("BARE", ""), FieldsAre("EQ", "a=b")));
  EXPECT_EQ(details.memory_swap_limit, 8192);
  EXPECT_THAT(details.unified, ElementsAre(Pair("memory.high", "1000")));
  EXPECT_THAT(details.resource_limits,
              ElementsAre(FieldsAre("RLIMIT_NOFILE", uint64_t{18446744073709551615U}, 1024)));
  using Point = OciHook::Point;
  EXPECT_THAT(details.hooks, ElementsAre(OciHook{.point = Point::kCreateRuntime, .path = "/bin/r"},
                                         OciHook{.point = Point::kPoststop,
                                                 .path = "/bin/h",
                                                 .args = {"h", "x"},
                                                 .env = {"A=1"},
                                                 .timeout_seconds = 5}));
}

TEST(RuntimeFactsTest, MountsAreThoseOfPathsOfTheHost) {
  using Propagation = Mount::Propagation;
  EXPECT_THAT(Container({}, kContainerInfo).details.mounts,
              ElementsAre(Mount{.container_path = "/data",
                                .host_path = "/var/data",
                                .read_only = true,
                                .propagation = Propagation::kHostToContainer},
                          Mount{.container_path = "/lib",
                                .host_path = "/lib",
                                .read_only = true,
                                .recursive_read_only = true},
                          Mount{.container_path = "/shared",
                                .host_path = "/s",
                                .non_recursive = true,
                                .propagation = Propagation::kBidirectional}));
}

TEST(RuntimeFactsTest, DevicesComeFromTheRequest) {
  const ContainerDetails details = Container({}, kContainerInfo).details;
  EXPECT_THAT(details.devices,
              ElementsAre(Device{
                  .container_path = "/dev/fuse", .host_path = "/dev/fuse0", .permissions = "rw"}));
  EXPECT_THAT(details.cdi_devices, ElementsAre("vendor.com/gpu=1"));
}

TEST(RuntimeFactsTest, ContainerdTellsTheRequestsEnvironmentBesideTheOneInForce) {
  const ContainerFacts facts = Container({}, R"({
      "config":{"envs":[{"key":"A","value":"1"},{"key":"EMPTY"},{"value":"no name"},7]},
      "runtimeSpec":{"process":{"env":["PATH=/bin","A=1","EMPTY="]}}})");
  EXPECT_EQ(facts.details.environment.size(), 3U);
  ASSERT_TRUE(facts.requested_environment.has_value());
  EXPECT_THAT(*facts.requested_environment,
              ElementsAre(FieldsAre("A", "1"), FieldsAre("EMPTY", "")));
}

TEST(RuntimeFactsTest, ARequestOfOddShapeIsEmptyAndOneThatIsNotToldIsNone) {
  EXPECT_FALSE(Container({}, R"({"config":[1]})").requested_environment.has_value());
  EXPECT_FALSE(Container({}, R"({"runtimeSpec":{}})").requested_environment.has_value());
  const ContainerFacts facts = Container({}, R"({"config":{"envs":"x"}})");
  ASSERT_TRUE(facts.requested_environment.has_value());
  EXPECT_THAT(*facts.requested_environment, IsEmpty());
}

TEST(RuntimeFactsTest, InfoOfOddShapeLeavesFactsEmpty) {
  for (const std::string_view info :
       {"", "no JSON", "[]", "7", R"({"pid":-1,"runtimeSpec":[1]})",
        R"({"pid":"x","runtimeSpec":{"process":{"args":7,"env":{"a":1},"rlimits":"x"},
            "mounts":[7,{"options":7}],"hooks":[],"linux":{"namespaces":[3],"cgroupsPath":{}}}})"}) {
    const ContainerFacts facts = Container({}, info);
    EXPECT_EQ(facts.pid, 0U) << info;
    EXPECT_EQ(facts.cgroups_path, "") << info;
    EXPECT_THAT(facts.details.command, IsEmpty()) << info;
    EXPECT_THAT(facts.details.mounts, IsEmpty()) << info;
  }
  EXPECT_EQ(ReadContainerFacts("\xff").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadSandboxFacts("\xff").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadImageFacts("\xff", "x").status().code(), StatusCode::kInvalidArgument);
}

TEST(RuntimeFactsTest, ImageTellsWhatItsContainersRun) {
  v1::ImageStatusResponse response;
  EXPECT_EQ(ReadImageFacts(response.SerializeAsString(), "web").status().code(),
            StatusCode::kNotFound);
  response.mutable_image()->set_id("sha256:1");
  response.mutable_image()->add_repo_digests("web@sha256:2");
  (*response.mutable_info())["info"] = R"({"imageSpec":{"config":{
      "Entrypoint":["/entry"],"Cmd":["serve","-x"],"Env":["A=1"]}}})";
  const auto facts = ReadImageFacts(response.SerializeAsString(), "web");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(facts->entrypoint, ElementsAre("/entry"));
  EXPECT_THAT(facts->command, ElementsAre("serve", "-x"));
  EXPECT_THAT(facts->environment, ElementsAre(FieldsAre("A", "1")));
  EXPECT_EQ(facts->digest, "web@sha256:2");
}

TEST(RuntimeFactsTest, UpdateCarriesExactlyTheChange) {
  ResourceChange change;
  change.resources.cpu_quota = -1;
  change.resources.cpuset_cpus = "0-1";
  change.resources.hugepage_limits = {{"2MB", 7}};
  change.memory_swap_limit = 5;
  change.unified = {{"memory.high", "max"}};
  v1::UpdateContainerResourcesRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodeUpdateRequest(ContainerId("c1"), change)));
  v1::UpdateContainerResourcesRequest expected;
  expected.set_container_id("c1");
  v1::LinuxContainerResources& linux = *expected.mutable_linux();
  linux.set_cpu_quota(-1);
  linux.set_cpuset_cpus("0-1");
  linux.add_hugepage_limits()->set_page_size("2MB");
  linux.mutable_hugepage_limits(0)->set_limit(7);
  linux.set_memory_swap_limit_in_bytes(5);
  (*linux.mutable_unified())["memory.high"] = "max";
  EXPECT_EQ(request.SerializeAsString(), expected.SerializeAsString());
}

Pod PodFrom(std::string_view info) {
  v1::PodSandboxStatusResponse response;
  (*response.mutable_info())["info"] = std::string(info);
  SandboxFacts facts;
  const Status status = AddFacts(response.SerializeAsString(), facts);
  EXPECT_TRUE(status.ok()) << status;
  return facts.pod;
}

TEST(InventoryTest, AListTellsWhichPodsAreNotReady) {
  v1::ListPodSandboxResponse response;
  response.add_items()->set_id("ready");
  v1::PodSandbox& stopped = *response.add_items();
  stopped.set_id("stopped");
  stopped.set_state(v1::SANDBOX_NOTREADY);
  const auto list = Must(ReadPodList(response.SerializeAsString()));
  ASSERT_EQ(list.size(), 2U);
  EXPECT_TRUE(list.at(0).ready);
  EXPECT_FALSE(list.at(1).ready);
}

TEST(InventoryTest, APodIsSaidToHaveAClassOnlyWhereItsStatusTellsOne) {
  v1::ListPodSandboxResponse response;
  response.add_items()->set_id("one");
  auto list = Must(ReadPodList(response.SerializeAsString()));
  SandboxFacts& facts = list.front();
  EXPECT_TRUE(facts.pod.qos_derived) << "a list does not tell it";
  ASSERT_TRUE(AddFacts(v1::PodSandboxStatusResponse().SerializeAsString(), facts).ok());
  EXPECT_TRUE(facts.pod.qos_derived) << "nor does a status without verbose information";
  EXPECT_FALSE(PodFrom(R"({"config":{"linux":{"cgroup_parent":"/kubepods/podu"}}})").qos_derived);
}

TEST(InventoryTest, ContainerdTellsWhatAPodHasAsAWhole) {
  const Pod pod = PodFrom(R"({"config":{"linux":{"cgroup_parent":"/kubepods/burstable/podu-1",
      "overhead":{"cpu_shares":256,"memory_limit_in_bytes":125829120},
      "resources":{"cpu_period":100000,"cpu_quota":250000,"cpu_shares":1536}}}})");
  EXPECT_EQ(pod.qos, QosClass::kBurstable);
  EXPECT_EQ(pod.uid.value(), "u-1") << "of which nothing else was told";
  EXPECT_EQ(pod.overhead.cpu_shares, 256);
  EXPECT_EQ(pod.overhead.memory_limit, 125829120);
  EXPECT_EQ(pod.overhead.cpu_quota, std::nullopt);
  EXPECT_EQ(pod.resources.cpu_quota, 250000);
}

TEST(InventoryTest, CrioTellsItInAnnotations) {
  const Pod pod = PodFrom(R"({"runtimeSpec":{"annotations":{
      "io.kubernetes.cri-o.CgroupParent":"kubepods-podu_1.slice",
      "io.kubernetes.cri-o.PodLinuxOverhead":"{\"cpu_shares\":128}",
      "io.kubernetes.cri-o.PodLinuxResources":"no JSON"}}})");
  EXPECT_EQ(pod.qos, QosClass::kGuaranteed);
  EXPECT_EQ(pod.overhead.cpu_shares, 128);
  EXPECT_EQ(pod.resources, LinuxResources());
}

TEST(InventoryTest, TheSpecificationTellsResourcesOfOlderRuntimes) {
  v1::ContainerStatusResponse response;
  (*response.mutable_info())["info"] = R"({"runtimeSpec":{"process":{"oomScoreAdj":-997},
      "linux":{"resources":{"cpu":{"shares":2048,"cpus":"0-1"},"memory":{"limit":4096},
      "hugepageLimits":[{"pageSize":"2MB","limit":2097152},{"pageSize":"1GB"},7]}}}})";
  ContainerFacts facts;
  const RuntimeContainer& container = facts.container;
  ASSERT_TRUE(AddFacts(response.SerializeAsString(), facts).ok());
  EXPECT_EQ(container.resources.cpu_shares, 2048);
  EXPECT_EQ(container.resources.memory_limit, 4096);
  EXPECT_EQ(container.resources.oom_score_adj, -997);
  EXPECT_THAT(container.resources.hugepage_limits, ElementsAre(Pair("2MB", 2097152)));
}

TEST(InventoryTest, TheStatusTellsWhenAContainerWasStarted) {
  v1::ContainerStatusResponse response;
  ContainerFacts facts;
  const RuntimeContainer& container = facts.container;
  ASSERT_TRUE(AddFacts(response.SerializeAsString(), facts).ok());
  EXPECT_EQ(container.started_at, std::nullopt);
  response.mutable_status()->set_started_at(1'700'000'000'500'000'000);
  ASSERT_TRUE(AddFacts(response.SerializeAsString(), facts).ok());
  using std::chrono::milliseconds;
  EXPECT_EQ(std::chrono::duration_cast<milliseconds>(container.started_at->time_since_epoch()),
            milliseconds(1'700'000'000'500));
}

TEST(InventoryTest, LabelsNameContainersWithoutMetadata) {
  v1::ListContainersResponse list;
  (*list.add_containers()->mutable_labels())["io.kubernetes.container.name"] = "web";
  const auto containers = Must(ReadContainerList(list.SerializeAsString()));
  ASSERT_EQ(containers.size(), 1U);
  EXPECT_EQ(containers.front().container.name, "web");
}

}  // namespace
}  // namespace resmgr
