// SPDX-License-Identifier: Apache-2.0
// Claims for CPUs: a kubelet's side of Dynamic Resource Allocation, the real daemon, the real
// agent, an API server and a runtime of the test. Rows D1 to D17 of the acceptance table.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/json.h"
#include "pkg/sys/files.h"
#include "test/integration/daemon_fixture.h"
#include "test/support/api_server/api_server.h"
#include "test/support/containerd/child_process.h"
#include "test/support/fake_kubelet/plugin_kubelet.h"
#include "test/support/programs/programs.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;

constexpr char kClaimsNode[] = "n1";
constexpr char kDriver[] = "dra.cpu";
constexpr char kSlice[] = "n1-dra.cpu";
// CPUs that the policy may grant: all but the reserved one.
constexpr int kAllowed = 7;

class ClaimsTest : public DaemonTest {
 protected:
  ClaimsTest() {
    fs::create_directories(Host("/var/lib/kubelet/plugins"));
    fs::create_directories(Host("/var/lib/kubelet/plugins_registry"));
    EXPECT_THAT(api_.Start(), IsOk());
    api_.SetNode(kClaimsNode, {});
    std::ofstream(Path("kubeconfig")) << api_.Kubeconfig();
    std::ofstream(Path("policy.yaml")) << "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
                                          "dra: {Enable: true, Compatible: true}\n";
    StartRuntime();
  }

  std::string Host(const std::string& path) const { return Path("host") + path; }
  void StartDaemonWithClaims() {
    StartDaemon(Flags({"-agent-socket", Path("agent.sock"), "-host-root", Path("host"), "-config",
                       Path("policy.yaml")}));
  }
  void StartAgent() {
    ::setenv("NODE_NAME", kClaimsNode, 1);
    agent_.reset();
    auto started = ChildProcess::Start(
        {Program("cri-resmgr-agent"), "-kubeconfig", Path("kubeconfig"), "-cri-resmgr-socket",
         Path("config.sock"), "-agent-socket", Path("agent.sock"), "-report-spread=0s"},
        Path("agent.log"));
    ASSERT_THAT(started, IsOk());
    agent_ = *std::move(started);
  }
  // Both; the kubelet knows the driver.
  void StartAll() {
    StartAgent();
    StartDaemonWithClaims();
    ASSERT_TRUE(Registered()) << daemon_->Log();
  }
  bool Registered() {
    return Eventually([this] {
      kubelet_.Look();
      return kubelet_.drivers().contains(kDriver);
    });
  }
  static PluginKubelet::Claim Claim(const std::string& name) {
    return {.uid = "uid-" + name, .namespace_name = "default", .name = name};
  }
  // The scheduler has given this claim so many CPUs.
  void Allocate(const std::string& name, int cpus) {
    api_.SetClaim(name, "uid-" + name,
                  {.driver = kDriver, .device = "cpudevnuma000", .cpus = cpus});
  }
  StatusOr<dra_api::NodePrepareResourcesResponse> Prepare(const std::string& name) {
    return kubelet_.PrepareAll(kDriver, {Claim(name)}, kPatience);
  }
  Status Unprepare(const std::string& name) {
    return kubelet_.UnprepareAll(kDriver, {Claim(name)}, kPatience);
  }
  std::string ErrorOf(const std::string& name) {
    const auto response = kubelet_.Prepare(kDriver, {Claim(name)});
    return response.ok() ? response->claims().at("uid-" + name).error()
                         : std::string(Message(response.status()));
  }
  std::string CdiFile(const std::string& name) const {
    return Host("/var/run/cdi/dra.k8s.io-cpu_claim-uid-" + name + ".json");
  }
  // The CPUs that containers of the claim are told.
  CpuSet CpusOf(const std::string& name) const {
    const auto text = ReadFile(CdiFile(name), 4096);
    if (!text.ok()) return {};
    const auto spec = ParseJson(*text).value_or(Json::object());
    const std::string variable =
        spec["devices"].at(0)["containerEdits"]["env"].at(0).get<std::string>();
    return CpuSet::Parse(variable.substr(variable.find('=') + 1)).value_or(CpuSet());
  }
  std::string Capacity() const {
    const Json slice = api_.Slice(kSlice);
    if (!slice.is_object() || slice["spec"]["devices"].empty()) return "";
    return slice["spec"]["devices"].at(0)["capacity"]["dra.cpu/cpu"]["value"].get<std::string>();
  }
  int64_t Generation() const {
    const Json slice = api_.Slice(kSlice);
    return slice.is_object() ? slice["spec"]["pool"]["generation"].get<int64_t>() : 0;
  }
  bool SliceSays(int cpus) {
    return Eventually([&] { return Capacity() == std::to_string(cpus); });
  }
  std::string Logs() const { return LastLines(Path("agent.log")) + daemon_->Log(); }

  ApiServer api_;
  PluginKubelet kubelet_{Path("host")};
  std::unique_ptr<ChildProcess> agent_;
};

TEST_F(ClaimsTest, D1TheKubeletFindsTheDriverAndTheSchedulerItsDevices) {
  StartAll();
  const PluginKubelet::Driver& driver = kubelet_.drivers().at(kDriver);
  EXPECT_EQ(driver.endpoint, "/var/lib/kubelet/plugins/dra.cpu/dra.sock");
  EXPECT_EQ(driver.service, "v1.DRAPlugin");
  ASSERT_TRUE(SliceSays(kAllowed)) << Logs() << api_.Slice(kSlice);
  const Json slice = api_.Slice(kSlice);
  EXPECT_EQ(slice["metadata"]["ownerReferences"].at(0)["uid"], "uid-n1");
  EXPECT_EQ(slice["spec"]["nodeName"], kClaimsNode);
  EXPECT_EQ(slice["spec"]["devices"].at(0)["name"], "cpudevnuma000");
  PluginKubelet older(Path("host"), {"v1beta1.DRAPlugin"});
  older.Look();
  ASSERT_TRUE(older.drivers().contains(kDriver));
  Allocate("a", 1);
  EXPECT_THAT(older.PrepareAll(kDriver, {Claim("a")}, kPatience), IsOk());
}

TEST_F(ClaimsTest, D2SharedContainersHaveLeftBeforeTheAnswer) {
  StartAll();
  CriClient client = Relayed();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  Allocate("a", 4);
  const auto response = Prepare("a");
  ASSERT_THAT(response, IsOk()) << Logs();
  const CpuSet shared_at_answer = CpusAtRuntime(shared.container);
  const auto& entry = response->claims().at("uid-a");
  ASSERT_EQ(entry.devices_size(), 1);
  EXPECT_EQ(entry.devices(0).cdi_device_ids(0), "dra.k8s.io/cpu=claim-uid-a");
  EXPECT_EQ(entry.devices(0).share_id(), "share-uid-a");
  const CpuSet claimed = CpusOf("a");
  EXPECT_EQ(claimed.size(), 4);
  EXPECT_FALSE(shared_at_answer.empty());
  EXPECT_FALSE(claimed.Intersects(shared_at_answer))
      << claimed.ToString() << " " << shared_at_answer.ToString();
  EXPECT_TRUE(SliceSays(kAllowed)) << "the scheduler subtracts claims itself; " << Capacity();
}

TEST_F(ClaimsTest, D3TheNextDaemonHasTheSameCpusAndTheSameAnswer) {
  StartAll();
  Allocate("a", 3);
  const auto first = Prepare("a");
  ASSERT_THAT(first, IsOk()) << Logs();
  const CpuSet cpus = CpusOf("a");
  daemon_->Kill();
  fs::remove_all(Host("/var/run/cdi"));
  StartDaemonWithClaims();
  EXPECT_TRUE(Eventually([&] { return CpusOf("a") == cpus; })) << "without being asked";
  ASSERT_TRUE(Registered());
  const auto again = Prepare("a");
  ASSERT_THAT(again, IsOk()) << Logs();
  EXPECT_EQ(again->SerializeAsString(), first->SerializeAsString());
  EXPECT_EQ(CpusOf("a"), cpus);
}

TEST_F(ClaimsTest, D4ARefusalNamesTheShortageAndOthersAreServed) {
  StartAll();
  Allocate("a", 4);
  ASSERT_THAT(Prepare("a"), IsOk()) << Logs();
  Allocate("big", 4);
  Allocate("small", 1);
  const auto response = kubelet_.Prepare(kDriver, {Claim("big"), Claim("small")});
  ASSERT_THAT(response, IsOk());
  EXPECT_THAT(response->claims().at("uid-big").error(), testing::HasSubstr("4"));
  EXPECT_EQ(response->claims().at("uid-small").error(), "");
  EXPECT_TRUE(CpusOf("big").empty());
}

TEST_F(ClaimsTest, D5AReplacedClaimReservesNothing) {
  StartAll();
  api_.SetClaim("a", "uid-other", {.driver = kDriver, .device = "cpudevnuma000", .cpus = 4});
  EXPECT_THAT(ErrorOf("a"), testing::HasSubstr("was replaced"));
  Allocate("all", kAllowed - 1);
  EXPECT_THAT(Prepare("all"), IsOk()) << Logs();
}

TEST_F(ClaimsTest, D9UnprepareGivesTheCpusToSharedContainersAtOnce) {
  StartAll();
  CriClient client = Relayed();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const CpuSet before = CpusAtRuntime(shared.container);
  Allocate("a", 4);
  ASSERT_THAT(Prepare("a"), IsOk()) << Logs();
  api_.DeleteClaim("a");
  EXPECT_THAT(Unprepare("a"), IsOk());
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(shared.container) == before; }, kAtOnce));
  EXPECT_FALSE(fs::exists(CdiFile("a")));
  EXPECT_THAT(Unprepare("a"), IsOk()) << "row D8";
  EXPECT_THAT(Unprepare("never"), IsOk());
}

TEST_F(ClaimsTest, D13ContainersWithCpusOfTheirOwnLowerTheCapacity) {
  StartAll();
  ASSERT_TRUE(SliceSays(kAllowed)) << Logs();
  const int64_t before = Generation();
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  EXPECT_TRUE(SliceSays(kAllowed - 2)) << Logs();
  EXPECT_EQ(Generation(), before + 1);
  EXPECT_THAT(client.StopContainer(running.container), IsOk());
  EXPECT_TRUE(SliceSays(kAllowed)) << Logs();
}

TEST_F(ClaimsTest, D15WithoutTheAgentTheKubeletTriesAgain) {
  StartAll();
  Allocate("a", 2);
  agent_.reset();
  EXPECT_THAT(ErrorOf("a"), testing::HasSubstr("agent is not reachable"));
  EXPECT_TRUE(CpusOf("a").empty());
  StartAgent();
  EXPECT_THAT(Prepare("a"), IsOk()) << Logs();
  agent_.reset();
  EXPECT_THAT(Unprepare("a"), IsOk()) << "needs no agent";
}

TEST_F(ClaimsTest, D16SlicesThatAKubeletDeletesComeBack) {
  StartAll();
  ASSERT_TRUE(SliceSays(kAllowed)) << Logs();
  const int64_t before = Generation();
  api_.DeleteSlices();
  EXPECT_TRUE(SliceSays(kAllowed)) << Logs();
  EXPECT_GT(Generation(), before);
}

// The kubelet is killed in the middle of its calls, the daemon between and during them.
TEST_F(ClaimsTest, KillsAtAnyPointForgetNoClaimAndLeakNoCpu) {
  const uint64_t seed = SeedOr(42);
  SCOPED_TRACE(Repeat(seed));
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed));
  const auto draw = [&random](int below) {
    return std::uniform_int_distribution<int>(0, below - 1)(random);
  };
  StartAll();
  CriClient client = Relayed();
  const Running shared = Run(client, MakeBestEffortPod("s"), MakeBestEffortContainer("main"));
  const CpuSet before = CpusAtRuntime(shared.container);
  for (int round = 0; round < 6; ++round) {
    const std::string name = fmt::format("c{}", round);
    Allocate(name, 1 + draw(3));
    // Its answer may be lost.
    const auto lost = kubelet_.Prepare(kDriver, {Claim(name)}, milliseconds(1 + draw(20)));
    if (draw(2) == 0) {
      daemon_->Kill();
      StartDaemonWithClaims();
      ASSERT_TRUE(Registered());
    }
    ASSERT_THAT(Prepare(name), IsOk()) << lost.status() << Logs();
    const CpuSet cpus = CpusOf(name);
    daemon_->Kill();
    StartDaemonWithClaims();
    ASSERT_TRUE(Registered());
    ASSERT_THAT(Prepare(name), IsOk()) << Logs();
    EXPECT_EQ(CpusOf(name), cpus);
    const auto gone = kubelet_.Unprepare(kDriver, {Claim(name)}, milliseconds(1 + draw(20)));
    if (draw(2) == 0) {
      daemon_->Kill();
      StartDaemonWithClaims();
      ASSERT_TRUE(Registered());
    }
    ASSERT_THAT(Unprepare(name), IsOk()) << gone.status() << Logs();
  }
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(shared.container) == before; })) << Logs();
  EXPECT_TRUE(SliceSays(kAllowed)) << Logs();
  EXPECT_TRUE(fs::is_empty(Host("/var/run/cdi")));
}

}  // namespace
}  // namespace resmgr::test
