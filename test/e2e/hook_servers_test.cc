// SPDX-License-Identifier: Apache-2.0
// Real containers through cri-resmgr with a hook server that decides as koordlet does: its changes
// are in the cgroups and in the containers, before and after a restart of the daemon.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/api/runtimehook.pb.h"
#include "test/e2e/node.h"
#include "test/e2e/node_fixture.h"
#include "test/support/fake_hook_server/fake_hook_server.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;

// A hook server that decides as koordlet's plugins do, from labels and annotations of pods: it
// repeats the request, with these changes.
//
//   CPUSetAllocator   resource-status {"cpuset"}: these CPUs, and no quota; an LS pod: the node's
//                     shared pool, where there is one; a BE pod: no cpuset
//   BatchResource     a BE pod's extended-resource-spec: shares, quota and memory limit
//   CPUNormalization  an LS pod: the quota divided by kRatio
//   GPUEnvInject      device-allocated {"gpu": [{"minor", "resources"}]}: NVIDIA_VISIBLE_DEVICES;
//                     for pods of HAMi-core also the limits of their memory and cores
//
// (Koordinator 1.8, pkg/koordlet/runtimehooks.) Thread-safe.
class StandInKoordlet {
 public:
  static constexpr double kRatio = 1.25;
  static constexpr const char* kQosLabel = "koordinator.sh/qosClass";
  static constexpr const char* kCpuQos = "koordinator.sh/cpuQOS";
  static constexpr const char* kResourceStatus = "scheduling.koordinator.sh/resource-status";
  static constexpr const char* kExtendedSpec = "node.koordinator.sh/extended-resource-spec";
  static constexpr const char* kDevices = "scheduling.koordinator.sh/device-allocated";

  static constexpr const char* kIsolationLabel = "koordinator.sh/gpu-isolation-provider";

  // `shared_pool`: the CPUs of node.koordinator.sh/cpu-shared-pools; "": the node has none.
  explicit StandInKoordlet(const std::string& socket, const std::string& shared_pool = "");

  // The file that koordlet writes into the hook directory.
  static std::string File(const std::string& socket);

  // The pods that it was told of, for the group identity that koordlet writes itself.
  std::vector<::runtime::v1alpha1::PodSandboxHookRequest> pods() const;
  // The requests about updates that it received.
  std::vector<::runtime::v1alpha1::ContainerResourceHookRequest> updates() const;

 private:
  FakeHookServer server_;
};

namespace api = ::runtime::v1alpha1;
using hooks::HookPoint;
using nlohmann::json;

template <typename Map>
std::string ValueOf(const Map& map, const char* key) {
  const auto found = map.find(key);
  return found == map.end() ? std::string() : found->second;
}

json AnnotationOf(const api::ContainerResourceHookRequest& asked, const char* key) {
  const json value = json::parse(ValueOf(asked.pod_annotations(), key), nullptr, false);
  return value.is_object() ? value : json::object();
}

void AllocateCpus(const api::ContainerResourceHookRequest& asked, const std::string& qos,
                  const std::string& shared_pool, api::LinuxContainerResources& resources) {
  const std::string cpus =
      AnnotationOf(asked, StandInKoordlet::kResourceStatus).value("cpuset", "");
  if (!cpus.empty()) {
    resources.set_cpuset_cpus(cpus);
    resources.set_cpu_quota(-1);
  } else if (qos == "BE") {
    resources.clear_cpuset_cpus();
  } else if (qos == "LS" && !shared_pool.empty()) {
    resources.set_cpuset_cpus(shared_pool);
  }
}

// Amounts of batch resources: milli-CPU and bytes.
void SetBatch(const api::ContainerResourceHookRequest& asked,
              api::LinuxContainerResources& resources) {
  const json containers =
      AnnotationOf(asked, StandInKoordlet::kExtendedSpec).value("containers", json::object());
  const json own = containers.value(asked.container_meta().name(), json::object());
  const json limits = own.value("limits", json::object());
  const int64_t cpu = limits.value("kubernetes.io/batch-cpu", int64_t{0});
  if (cpu > 0) {
    resources.set_cpu_shares(std::clamp<int64_t>(cpu * 1024 / 1000, 2, 262'144));
    resources.set_cpu_quota(std::max<int64_t>(cpu * 100, 1'000));
  }
  const int64_t memory = limits.value("kubernetes.io/batch-memory", int64_t{0});
  if (memory > 0) resources.set_memory_limit_in_bytes(memory);
}

void InjectDevices(const api::ContainerResourceHookRequest& asked,
                   api::ContainerResourceHookResponse& answer) {
  const json gpus = AnnotationOf(asked, StandInKoordlet::kDevices).value("gpu", json::array());
  if (gpus.empty()) return;
  auto& variables = *answer.mutable_container_envs();
  std::string minors;
  for (const json& gpu : gpus)
    minors += (minors.empty() ? "" : ",") + std::to_string(gpu.value("minor", 0));
  variables["NVIDIA_VISIBLE_DEVICES"] = minors;
  if (ValueOf(asked.pod_labels(), StandInKoordlet::kIsolationLabel) != "HAMi-core") return;
  const json resources = gpus[0].value("resources", json::object());
  variables["CUDA_DEVICE_MEMORY_LIMIT"] = resources.value("koordinator.sh/gpu-memory", "");
  variables["CUDA_DEVICE_SM_LIMIT"] = resources.value("koordinator.sh/gpu-core", "");
}

StatusOr<std::string> AnswerContainer(const std::string& bytes, const std::string& shared_pool) {
  api::ContainerResourceHookRequest asked;
  if (!asked.ParseFromString(bytes)) return InvalidArgument("no ContainerResourceHookRequest");
  api::ContainerResourceHookResponse answer;
  *answer.mutable_container_annotations() = asked.container_annotations();
  *answer.mutable_container_resources() = asked.container_resources();
  answer.set_pod_cgroup_parent(asked.pod_cgroup_parent());
  *answer.mutable_container_envs() = asked.container_envs();

  const std::string qos = ValueOf(asked.pod_labels(), StandInKoordlet::kQosLabel);
  api::LinuxContainerResources& resources = *answer.mutable_container_resources();
  AllocateCpus(asked, qos, shared_pool, resources);
  if (qos == "BE") SetBatch(asked, resources);
  if (qos == "LS" && resources.cpu_quota() > 0) {
    const double normalized = static_cast<double>(resources.cpu_quota()) / StandInKoordlet::kRatio;
    resources.set_cpu_quota(static_cast<int64_t>(std::ceil(normalized)));
  }
  InjectDevices(asked, answer);
  return answer.SerializeAsString();
}

template <typename Message>
std::vector<Message> Parsed(const std::vector<std::string>& calls) {
  std::vector<Message> messages(calls.size());
  for (size_t i = 0; i < calls.size(); ++i)
    messages[i].ParseFromString(calls[i]);
  return messages;
}

StandInKoordlet::StandInKoordlet(const std::string& socket, const std::string& shared_pool)
    : server_(socket) {
  const auto answer_container = [shared_pool](const std::string& bytes) {
    return AnswerContainer(bytes, shared_pool);
  };
  server_.Answer(HookPoint::kPreCreateContainer, answer_container);
  server_.Answer(HookPoint::kPreUpdateContainerResources, answer_container);
  server_.Answer(HookPoint::kPreRunPodSandbox,
                 [](const std::string& bytes) -> StatusOr<std::string> {
                   api::PodSandboxHookRequest asked;
                   if (!asked.ParseFromString(bytes)) return InvalidArgument("no request");
                   api::PodSandboxHookResponse answer;
                   *answer.mutable_labels() = asked.labels();
                   *answer.mutable_annotations() = asked.annotations();
                   answer.set_cgroup_parent(asked.cgroup_parent());
                   *answer.mutable_resources() = asked.resources();
                   return answer.SerializeAsString();
                 });
}

std::string StandInKoordlet::File(const std::string& socket) {
  return json{
      {"remote-endpoint", socket},
      {"failure-policy", "Fail"},
      {"runtime-hooks", {"PreUpdateContainerResources", "PreRunPodSandbox", "PreCreateContainer"}}}
      .dump(1, '\t');
}

std::vector<api::PodSandboxHookRequest> StandInKoordlet::pods() const {
  return Parsed<api::PodSandboxHookRequest>(server_.Calls(HookPoint::kPreRunPodSandbox));
}

std::vector<api::ContainerResourceHookRequest> StandInKoordlet::updates() const {
  return Parsed<api::ContainerResourceHookRequest>(
      server_.Calls(HookPoint::kPreUpdateContainerResources));
}

constexpr int64_t kBatchMemory = 64 << 20;
constexpr int64_t kMemory = 96 << 20;  // that other pods ask for
constexpr char kIdentity[] = R"({"groupIdentity": 2})";

class KoordletTest : public NodeTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OpenWith({.hook_servers = true, .policy = "", .reserved = ""}));
  }

  // The CPUs that Koordinator leaves to LS pods: all but the last CPU, which is for LSR pods.
  static CpuSet SharedPool() { return All() - CpuSet{All().Last()}; }

  void OpenWith(const Node::Options& options) {
    ASSERT_NO_FATAL_FAILURE(Open(options));
    std::filesystem::create_directories(node().HookDirectory());
    const std::string socket = node().HookDirectory() / "koordlet.sock";
    koordlet_ = std::make_unique<StandInKoordlet>(socket, SharedPool().ToString());
    const std::filesystem::path written = node().HookDirectory() / "new";
    std::ofstream(written) << StandInKoordlet::File(socket);
    std::filesystem::rename(written, node().HookDirectory() / "koordlet.json");
    AwaitServer();
  }

  // The file is seen, and the server is connected.
  void AwaitServer() {
    const Status ready = WaitUntil("the hook server is ready", kPatience, [this] {
      const auto plugins = node().Ctl("plugins");
      return plugins.ok() && plugins->find("\"ready\"") != std::string::npos;
    });
    ASSERT_TRUE(ready.ok()) << Describe(ready) << node().RelayLog();
  }

  static Workload WithMemory(Workload workload) {
    workload.memory_limit = Bytes{kMemory};
    return workload;
  }
  static std::string ResourceStatus(const std::string& cpus) {
    return R"({"cpuset": ")" + cpus + R"("})";
  }
  // A half CPU and kBatchMemory for the container `name`.
  static std::string BatchSpec(const std::string& name) {
    return R"({"containers": {")" + name +
           R"(": {"limits": {"kubernetes.io/batch-cpu": 500,
          "kubernetes.io/batch-memory": 67108864}}}})";
  }

  // A pod with the marks that Koordinator's scheduler and webhook leave.
  RunningPod RunMarked(const Workload& workload, const std::string& qos, const char* annotation,
                       const std::string& value, const std::string& requested_cpus = "") {
    RunningPod pod = node().NewPod(workload);
    (*pod.config.mutable_labels())[StandInKoordlet::kQosLabel] = qos;
    (*pod.config.mutable_annotations())[StandInKoordlet::kCpuQos] = kIdentity;
    if (*annotation != 0) (*pod.config.mutable_annotations())[annotation] = value;
    cri::ContainerConfig container = Node::ContainerConfig(workload);
    container.mutable_linux()->mutable_resources()->set_cpuset_cpus(requested_cpus);
    Start(pod, container);
    return pod;
  }

  // Runs the pod with this configuration.
  void Start(RunningPod& pod, const cri::ContainerConfig& container) {
    const auto id = node().client().RunPod(pod.config);
    EXPECT_TRUE(id.ok()) << Describe(id.status());
    pod.pod_id = id.value_or("");
    const auto created = node().client().CreateContainer(pod.pod_id, pod.config, container);
    EXPECT_TRUE(created.ok()) << Describe(created.status());
    pod.container_id = created.value_or("");
    EXPECT_TRUE(node().client().StartContainer(pod.container_id).ok());
  }

  int64_t QuotaOf(const RunningPod& pod) const {
    return containerd().CgroupQuota(pod.container_id);
  }
  int64_t MemoryOf(const RunningPod& pod) const {
    return containerd().CgroupMemoryLimit(pod.container_id);
  }

  std::unique_ptr<StandInKoordlet> koordlet_;
};

TEST_F(KoordletTest, PodsOfEachQosClassGetWhatItDecidesBeforeAndAfterARestart) {
  const std::string one = CpuSet{All().Last()}.ToString();
  const RunningPod lsr = RunMarked(WithMemory(Guaranteed("lsr", 1)), "LSR",
                                   StandInKoordlet::kResourceStatus, ResourceStatus(one));
  const RunningPod ls = RunMarked(WithMemory(Sized("ls", MilliCpu{500})), "LS", "", "");
  // A kubelet whose CPU manager is static writes a cpuset for BE containers, too.
  const RunningPod be =
      RunMarked(BestEffort("be"), "BE", StandInKoordlet::kExtendedSpec, BatchSpec("be"), one);
  const auto expect_all = [&](const char* when) {
    EXPECT_EQ(CpusOf(lsr), one) << when;
    EXPECT_EQ(QuotaOf(lsr), -1) << when;
    EXPECT_TRUE(HasShares(lsr, 1024)) << when;
    EXPECT_EQ(MemoryOf(lsr), kMemory) << when;
    EXPECT_EQ(CpuSetOf(ls), SharedPool()) << when;
    EXPECT_EQ(QuotaOf(ls), 40'000) << when;
    EXPECT_TRUE(HasShares(ls, 512)) << when;
    EXPECT_EQ(MemoryOf(ls), kMemory) << when;
    EXPECT_EQ(CpuSetOf(be), All()) << when;
    EXPECT_TRUE(HasShares(be, 512)) << when;
    EXPECT_EQ(QuotaOf(be), 50'000) << when;
    EXPECT_EQ(MemoryOf(be), kBatchMemory) << when;
  };
  expect_all("at first");
  // The group identity follows from these labels.
  const auto pods = koordlet_->pods();
  ASSERT_EQ(pods.size(), 3U);
  const std::pair<const char*, const RunningPod*> order[] = {
      {"LSR", &lsr}, {"LS", &ls}, {"BE", &be}};
  for (size_t i = 0; i < pods.size(); ++i) {
    const auto& [qos, pod] = order[i];
    EXPECT_EQ(pods[i].labels().at(StandInKoordlet::kQosLabel), qos);
    EXPECT_EQ(pods[i].annotations().at(StandInKoordlet::kCpuQos), kIdentity);
    EXPECT_EQ(pods[i].cgroup_parent(), pod->config.linux().cgroup_parent());
  }
  EXPECT_THAT(pods[2].cgroup_parent(), HasSubstr("besteffort"));

  node().relay().Kill();
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  AwaitServer();
  expect_all("after the restart");

  // Its pod is known from the runtime alone.
  RunningPod grown = ls;
  Resize(WithMemory(Sized("ls", MilliCpu{1000})), &grown);
  EXPECT_EQ(QuotaOf(ls), 80'000);
  ASSERT_EQ(koordlet_->updates().size(), 1U);
  const auto update = koordlet_->updates()[0];
  EXPECT_EQ(update.pod_cgroup_parent(), ls.config.linux().cgroup_parent());
  EXPECT_EQ(update.pod_labels().at(StandInKoordlet::kQosLabel), "LS");
  EXPECT_EQ(update.container_resources().cpu_quota(), 100'000);
  for (const RunningPod* pod : {&lsr, &ls, &be})
    Remove(*pod);
}

TEST_F(KoordletTest, AVariableIsInTheContainer) {
  const RunningPod pod = RunMarked(BestEffort("gpu"), "LS", StandInKoordlet::kDevices,
                                   R"({"gpu": [{"minor": 0}, {"minor": 2}]})");
  const auto printed =
      Ok(node().client().Exec(pod.container_id, {"sh", "-c", "echo -n $NVIDIA_VISIBLE_DEVICES"}));
  EXPECT_EQ(printed.stdout(), "0,2");
  Remove(pod);
}

TEST_F(KoordletTest, LimitsOfASharedGpuAreInTheContainer) {
  RunningPod pod = node().NewPod(BestEffort("hami"));
  (*pod.config.mutable_labels())[StandInKoordlet::kIsolationLabel] = "HAMi-core";
  (*pod.config.mutable_annotations())[StandInKoordlet::kDevices] =
      R"({"gpu": [{"minor": 1, "resources": {"koordinator.sh/gpu-memory": "8Gi",
                                             "koordinator.sh/gpu-core": "50"}}]})";
  Start(pod, Node::ContainerConfig(pod.workload));
  const auto printed = Ok(node().client().Exec(
      pod.container_id,
      {"sh", "-c",
       "echo -n $NVIDIA_VISIBLE_DEVICES $CUDA_DEVICE_MEMORY_LIMIT $CUDA_DEVICE_SM_LIMIT"}));
  EXPECT_EQ(printed.stdout(), "1 8Gi 50");
  Remove(pod);
}

TEST_F(KoordletTest, NoPodRunsWithoutAServerThatMayNotFail) {
  koordlet_.reset();
  const auto refused = node().client().RunPod(node().PodConfig(BestEffort("alone")));
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("PreRunPodSandbox"));
}

class KoordletUnderPolicyTest : public KoordletTest,
                                public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    // topology-aware keeps a CPU for shared containers besides reserved ones: of two CPUs none is
    // left.
    const std::string reserved = IsTopologyAware() ? "" : "cpuset:0";
    ASSERT_NO_FATAL_FAILURE(
        OpenWith({.hook_servers = true, .policy = GetParam(), .reserved = reserved}));
  }
  static bool IsTopologyAware() { return GetParam() == std::string("topology-aware"); }
  // CPUs that the policy gives to no container exclusively.
  static CpuSet Forbidden() { return IsTopologyAware() ? CpuSet{} : CpuSet{0}; }
  // Expects a shared container on the CPUs beside these exclusive ones.
  void ExpectShared(const RunningPod& pod, const CpuSet& own) const {
    const std::string policy = GetParam();
    if (IsTopologyAware()) {
      const Status left = WaitUntil("it leaves these CPUs", kPatience,
                                    [&] { return !CpuSetOf(pod).Intersects(own); });
      EXPECT_TRUE(left.ok()) << CpusOf(pod) << " and " << own.ToString();
      return;
    }
    const CpuSet rest = (policy == "static" ? All() : Unreserved()) - own;
    ExpectOn(pod, rest.empty() ? CpuSet{0} : rest);
  }
};

TEST_P(KoordletUnderPolicyTest, ThePolicyPlacesAndTheServerDecidesTheRest) {
  // Others than the policy gives: the reserved one, or more than one.
  const CpuSet wanted = IsTopologyAware() ? All() : Forbidden();
  const RunningPod lsr = RunMarked(Guaranteed("lsr", 1), "LSR", StandInKoordlet::kResourceStatus,
                                   ResourceStatus(wanted.ToString()));
  const RunningPod be =
      RunMarked(BestEffort("be"), "BE", StandInKoordlet::kExtendedSpec, BatchSpec("be"));
  const auto expect_all = [&](const char* when) {
    const CpuSet own = CpuSetOf(lsr);
    EXPECT_EQ(own.size(), 1U) << when;
    EXPECT_FALSE(own.Intersects(Forbidden())) << when << ": " << own.ToString();
    if (!IsTopologyAware()) {
      EXPECT_EQ(MemsOf(lsr), MemsOf(be)) << when;
    }
    EXPECT_EQ(QuotaOf(lsr), -1) << when;
    ExpectShared(be, own);
    EXPECT_TRUE(HasShares(be, 512)) << when;
    EXPECT_EQ(QuotaOf(be), 50'000) << when;
    EXPECT_EQ(MemoryOf(be), kBatchMemory) << when;
  };
  expect_all("at first");
  node().relay().Kill();
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  AwaitServer();
  expect_all("after the restart");

  // The server is told the container's present values with an update, not those requested before.
  cri::LinuxContainerResources resources;
  resources.set_cpu_shares(600);
  ASSERT_TRUE(node().client().UpdateContainer(be.container_id, resources).ok());
  ASSERT_EQ(koordlet_->updates().size(), 1U);
  EXPECT_EQ(koordlet_->updates()[0].container_resources().cpuset_cpus(), CpusOf(be));
  expect_all("after the update");
  for (const RunningPod* pod : {&lsr, &be})
    Remove(*pod);
}

std::string NameOfPolicy(
    const ::testing::TestParamInfo<KoordletUnderPolicyTest::ParamType>& policy) {
  std::string name(policy.param);
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Relay, KoordletUnderPolicyTest, ::testing::Values("topology-aware"),
                         NameOfPolicy);
INSTANTIATE_TEST_SUITE_P(Long, KoordletUnderPolicyTest, ::testing::Values("static", "static-plus"),
                         NameOfPolicy);

}  // namespace
}  // namespace resmgr::test
