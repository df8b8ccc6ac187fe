// SPDX-License-Identifier: Apache-2.0
// Pods as dockershim and cri-dockerd make them, through cri-resmgr with the static policy in front
// of a real dockerd: their CPUs, read at their processes.
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/docker/docker_pods_fixture.h"
#include "test/e2e/docker/raw_http.h"
#include "test/support/containerd/child_process.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;

const CpuSet kReserved{0};

class DockerPlacementTest : public DockerPodsTest {
 protected:
  void SetUp() override { Open({.policy = "static", .reserved = "1"}); }
  std::string Inside(const DockerPod& pod) { return pods_->CpusInside(pod).ToString(); }
  // Containers may change place some time after the one that was the reason.
  void ExpectOn(const DockerPod& pod, const CpuSet& cpus) {
    const Status there = WaitUntil("the container is there", kPodPatience,
                                   [&] { return Inside(pod) == cpus.ToString(); });
    EXPECT_THAT(there, IsOk()) << pod.name << " is on " << Inside(pod) << ", not "
                               << cpus.ToString();
  }
  // What dockerd would start the container with.
  std::string CpusetOf(const DockerPod& pod) {
    return pods_->Inspect(pod.container_id)["HostConfig"].value("CpusetCpus", "");
  }
  void KillDaemon(int signal_number) {
    node_->daemon().process().Signal(signal_number);
    ASSERT_THAT(node_->daemon().process().Wait(kPodPatience), IsOk());
  }
  void AwaitEngine() {
    const Status back = WaitUntil("dockerd answers through cri-resmgr", kPodPatience, [this] {
      return pods_->Ask("GET", "/containers/json?all=1").status == 200;
    });
    ASSERT_THAT(back, IsOk());
  }

  // Into the cgroup, as any program with root's rights can.
  void WriteCpus(const DockerPod& pod, std::string_view cpus) {
    const auto state = pods_->Inspect(pod.container_id)["State"];
    std::ifstream lines(fmt::format("/proc/{}/cgroup", state.value("Pid", 0)));
    std::string path;
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find(":cpuset:");
      if (at != std::string::npos) path = "/sys/fs/cgroup/cpuset" + line.substr(at + 8);
      if (line.starts_with("0::") && path.empty()) path = "/sys/fs/cgroup" + line.substr(3);
    }
    std::ofstream file(path + "/cpuset.cpus");
    file << cpus << std::flush;
    ASSERT_TRUE(file.good()) << path;
  }

  // Runs `restart` under containers of each kind.
  void MovesNobody(const std::function<void()>& restart) {
    const DockerPod shared = Run(BurstableDockerPod("shared", 300));
    const CpuSet everywhere = pods_->CpusInside(shared);
    const DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
    const DockerPod idle = Run({.name = "idle"});
    const std::vector<DockerPod> all = {shared, exclusive, idle};
    std::vector<std::string> before;
    for (const DockerPod& pod : all)
      before.push_back(Inside(pod) + " " + CpusetOf(pod));
    EXPECT_EQ(pods_->CpusInside(exclusive).size(), 1);

    restart();
    if (HasFatalFailure()) return;
    // It is placed beside those that are there: so they are known again.
    const DockerPod late = Run({.name = "late"});
    EXPECT_EQ(Inside(late), Inside(idle));
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(Inside(all[i]) + " " + CpusetOf(all[i]), before[i]) << all[i].name;

    EXPECT_THAT(pods_->Remove(exclusive), IsOk());
    ExpectOn(shared, everywhere);
    ExpectOn(late, everywhere);
  }
};

TEST_F(DockerPlacementTest, SharedContainersMakeRoomAndGrowBack) {
  const DockerPod shared = Run(BurstableDockerPod("shared", 500));
  const CpuSet all = pods_->CpusInside(shared);
  ASSERT_GE(all.size(), 2) << "the tests need two CPUs";
  for (const char* name : {"first", "second"}) {
    const DockerPod exclusive = Run(GuaranteedDockerPod(name, 1));
    const CpuSet own = pods_->CpusInside(exclusive);
    EXPECT_EQ(own.size(), 1);
    EXPECT_FALSE(own.Intersects(kReserved));
    EXPECT_EQ(Inside(shared), (all - own).ToString()) << "before the other one runs";
    const DockerPod late = Run({.name = fmt::format("late-{}", name)});
    EXPECT_EQ(Inside(late), (all - own).ToString());
    EXPECT_THAT(pods_->Remove(exclusive), IsOk());
    ExpectOn(shared, all);
    ExpectOn(late, all);
  }
}

TEST_F(DockerPlacementTest, MoreThanThereIsIsRefusedAndChangesNothing) {
  const DockerPod shared = Run({.name = "shared"});
  const CpuSet all = pods_->CpusInside(shared);
  DockerPod greedy = GuaranteedDockerPod("greedy", static_cast<int>(all.size()));
  ASSERT_THAT(pods_->RunSandbox(greedy), IsOk());
  const auto refused = pods_->Create(greedy);
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body.value("message", ""), HasSubstr("greedy"));
  EXPECT_EQ(Inside(shared), all.ToString());
  EXPECT_EQ(pods_->CpusInside(Run(GuaranteedDockerPod("modest", 1))).size(), 1);
}

TEST_F(DockerPlacementTest, AnUpdateChangesWhatItSaysAndMovesNobody) {
  const DockerPod shared = Run(BurstableDockerPod("shared", 500));
  const CpuSet all = pods_->CpusInside(shared);
  const DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
  const std::string own = Inside(exclusive);
  const std::string rest = Inside(shared);
  // As a resize in place: no CPUs, other shares.
  EXPECT_EQ(pods_->Update(shared, {{"CpuShares", 256}}).status, 200);
  EXPECT_EQ(Inside(shared), rest);
  EXPECT_EQ(pods_->Inspect(shared.container_id)["HostConfig"]["CpuShares"], 256);
  // The CPUs are the policy's.
  EXPECT_EQ(pods_->Update(shared, {{"CpusetCpus", own}}).status, 200);
  EXPECT_EQ(Inside(shared), rest);
  EXPECT_EQ(pods_->Update(exclusive, {{"CpusetCpus", "0"}}).status, 200);
  EXPECT_EQ(Inside(exclusive), own);
  // Less than a CPU: it shares from now on, and the others get the CPU.
  EXPECT_EQ(pods_->Update(exclusive, {{"CpuShares", 512}, {"CpuQuota", 50'000}}).status, 200);
  ExpectOn(exclusive, all);
  ExpectOn(shared, all);
}

// dockerd takes all of these, and so nothing passes unseen in one of them.
TEST_F(DockerPlacementTest, ContainersAreSeenInWhateverFormTheyAreAskedFor) {
  const DockerPod shared = Run({.name = "shared"});
  const CpuSet all = pods_->CpusInside(shared);
  int number = 0;
  for (const DockerPods::Form& form :
       {DockerPods::Form{.before = "x:"}, DockerPods::Form{.before = "http://host"},
        DockerPods::Form{.beside_config = true}}) {
    DockerPod pod = GuaranteedDockerPod(fmt::format("form{}", ++number), 1);
    ASSERT_THAT(pods_->RunSandbox(pod), IsOk());
    ASSERT_EQ(pods_->Create(pod, {}, form).status, 201) << number;
    ASSERT_THAT(pods_->Start(pod), IsOk()) << number;
    const CpuSet own = pods_->CpusInside(pod);
    EXPECT_EQ(own.size(), 1) << number;
    EXPECT_FALSE(own.Intersects(kReserved));
    EXPECT_EQ(Inside(shared), (all - own).ToString());
    const auto host = pods_->Inspect(pod.container_id)["HostConfig"];
    EXPECT_EQ(host.value("CpuShares", 0), 1024) << "what stood beside HostConfig is kept";
    EXPECT_EQ(host.value("CgroupParent", ""), pods_->CgroupOf(pod));
    EXPECT_THAT(pods_->Remove(pod), IsOk());
    ExpectOn(shared, all);
  }
}

// The form wins over the query, and nothing has ended.
TEST_F(DockerPlacementTest, ASignalInAFormEndsNoContainer) {
  const DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
  const std::string own = Inside(exclusive);
  const std::string form = "signal=WINCH";
  auto connection = RawHttp::Connect(node_->socket());
  ASSERT_THAT(connection, IsOk());
  connection->Send(
      fmt::format("POST /v1.40/containers/{}/kill?signal=KILL HTTP/1.0\r\nHost: d\r\n"
                  "Content-Type: application/x-www-form-urlencoded\r\n"
                  "Content-Length: {}\r\n\r\n{}",
                  exclusive.container_id, form.size(), form));
  EXPECT_THAT(connection->ReadAll(std::chrono::seconds(10)), HasSubstr(" 204 "));
  EXPECT_EQ(Inside(exclusive), own) << "it runs on";
  const DockerPod late = Run({.name = "late"});
  EXPECT_FALSE(pods_->CpusInside(late).Intersects(pods_->CpusInside(exclusive)));
}

// `docker run --cpus`: dockerd takes neither quota nor period for such a container afterwards. A
// repair sends all values again.
TEST_F(DockerPlacementTest, AContainerWithNanoCpusIsSentAllItsValuesAgain) {
  DockerPod pod = BurstableDockerPod("shared", 500);
  pod.nano_cpus = 500'000'000;
  const DockerPod shared = Run(pod);
  const CpuSet all = pods_->CpusInside(shared);
  WriteCpus(shared, "0");
  ASSERT_EQ(Inside(shared), "0");
  ASSERT_THAT(node_->Ctl(DockerNode::Words{"audit", "-repair"}), IsOk());
  ExpectOn(shared, all);
  const DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
  ExpectOn(shared, all - pods_->CpusInside(exclusive));
  EXPECT_EQ(pods_->Inspect(shared.container_id)["HostConfig"]["NanoCpus"], 500'000'000);
}

TEST_F(DockerPlacementTest, TheNextAttemptGetsTheCpusOfTheFormerOne) {
  const DockerPod shared = Run({.name = "shared"});
  const CpuSet all = pods_->CpusInside(shared);
  DockerPod pod = Run(GuaranteedDockerPod("phoenix", 1));
  const std::string first = pod.container_id;
  const std::string own = Inside(pod);
  ASSERT_THAT(pods_->Stop(first), IsOk());
  pod.attempt = 1;
  ASSERT_EQ(pods_->Create(pod).status, 201);
  ASSERT_THAT(pods_->Start(pod), IsOk());
  EXPECT_EQ(Inside(pod), own);
  EXPECT_EQ(pods_->Ask("DELETE", "/containers/" + first).status, 204);
  EXPECT_EQ(Inside(pod), own);
  EXPECT_EQ(Inside(shared), (all - CpuSet::Parse(own).value_or(CpuSet())).ToString());
}

// Nobody asks us: dockerd's events tell.
TEST_F(DockerPlacementTest, AnEndByItselfFreesTheCpus) {
  const DockerPod shared = Run({.name = "shared"});
  const CpuSet all = pods_->CpusInside(shared);
  const DockerPod exclusive = Run(GuaranteedDockerPod("short", 1));
  EXPECT_NE(Inside(shared), all.ToString());
  const DockerPods direct(node_->dockerd().socket(), node_->dockerd().CgroupParent());
  EXPECT_THAT(direct.Remove(exclusive), IsOk());
  ExpectOn(shared, all);
}

TEST_F(DockerPlacementTest, AKilledDaemonMovesNobody) {
  MovesNobody([this] {
    KillDaemon(SIGKILL);
    ASSERT_THAT(node_->StartDaemon(), IsOk());
  });
}

TEST_F(DockerPlacementTest, AStoppedDaemonMovesNobody) {
  MovesNobody([this] {
    KillDaemon(SIGTERM);
    ASSERT_THAT(node_->StartDaemon(), IsOk());
  });
}

TEST_F(DockerPlacementTest, AKilledDockerdMovesNobody) {
  MovesNobody([this] {
    node_->dockerd().Kill();
    ASSERT_THAT(node_->dockerd().Restart(), IsOk());
    AwaitEngine();
  });
}

TEST_F(DockerPlacementTest, BothKilledMoveNobody) {
  MovesNobody([this] {
    node_->dockerd().Kill();
    KillDaemon(SIGKILL);
    ASSERT_THAT(node_->dockerd().Restart(), IsOk());
    ASSERT_THAT(node_->StartDaemon(), IsOk());
    AwaitEngine();
  });
}

}  // namespace
}  // namespace resmgr::test
