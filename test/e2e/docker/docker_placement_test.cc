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
#include <nlohmann/json.hpp>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/e2e/docker/docker_pods_fixture.h"
#include "test/e2e/docker/raw_http.h"
#include "test/support/containerd/child_process.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const CpuSet kReserved{0};
// The wait for changes that an event reports, which otherwise the audit of the next minute finds.
constexpr std::chrono::seconds kEventPatience{30};

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
  // The cpuset with which dockerd would start the container.
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
    before.reserve(all.size());
    for (const DockerPod& pod : all)
      before.push_back(Inside(pod) + " " + CpusetOf(pod));
    EXPECT_EQ(pods_->CpusInside(exclusive).size(), 1);

    restart();
    if (HasFatalFailure()) return;
    // A new container is placed beside the existing ones, which shows that they are known again.
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
  // The node can never grant this request; one that does not fit at present is a conflict.
  EXPECT_EQ(refused.status, 400) << refused.body;
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
  // Updates as a resize in place does: no CPUs, other shares.
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

// dockerd accepts all of these forms, so each of them must be intercepted.
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

// The form wins over the query, and no container has ended.
TEST_F(DockerPlacementTest, ASignalInAFormEndsNoContainer) {
  const DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
  const std::string own = Inside(exclusive);
  const std::string form = "signal=WINCH";
  auto connection = Must(RawHttp::Connect(node_->socket()));
  connection.Send(
      fmt::format("POST /v1.40/containers/{}/kill?signal=KILL HTTP/1.0\r\nHost: d\r\n"
                  "Content-Type: application/x-www-form-urlencoded\r\n"
                  "Content-Length: {}\r\n\r\n{}",
                  exclusive.container_id, form.size(), form));
  EXPECT_THAT(connection.ReadAll(std::chrono::seconds(10)), HasSubstr(" 204 "));
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

// No request passes the daemon; dockerd's events report the end.
TEST_F(DockerPlacementTest, AnEndByItselfFreesTheCpus) {
  const DockerPod shared = Run({.name = "shared"});
  const CpuSet all = pods_->CpusInside(shared);
  const DockerPod exclusive = Run(GuaranteedDockerPod("short", 1));
  EXPECT_NE(Inside(shared), all.ToString());
  const DockerPods direct(node_->dockerd().socket(), node_->dockerd().CgroupParent());
  EXPECT_THAT(direct.Remove(exclusive), IsOk());
  ExpectOn(shared, all);
}

// Others had its CPUs while it did not run.
TEST_F(DockerPlacementTest, AContainerThatExitedIsPlacedBeforeItRunsAgain) {
  const DockerPod again = Run({.name = "again"});
  const CpuSet all = pods_->CpusInside(again);
  for (const char* way : {"start", "restart?t=0"}) {
    ASSERT_THAT(pods_->Stop(again.container_id), IsOk());
    const DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
    const CpuSet rest = all - pods_->CpusInside(exclusive);
    ASSERT_EQ(pods_->Ask("POST", fmt::format("/containers/{}/{}", again.container_id, way)).status,
              204);
    EXPECT_EQ(Inside(again), rest.ToString()) << way << ": when dockerd has answered";
    EXPECT_EQ(CpusetOf(again), rest.ToString());
    EXPECT_THAT(pods_->Remove(exclusive), IsOk());
    ExpectOn(again, all);
  }
}

TEST_F(DockerPlacementTest, AContainerThatExitedDoesNotStartWhereItsCpusAreTaken) {
  const DockerPod shared = Run({.name = "shared"});
  const CpuSet all = pods_->CpusInside(shared);
  const int most = static_cast<int>((all - kReserved).size());
  const DockerPod former = Run(GuaranteedDockerPod("former", most));
  ASSERT_THAT(pods_->Stop(former.container_id), IsOk());
  const DockerPod other = Run(GuaranteedDockerPod("other", most));
  const auto refused = pods_->Ask("POST", "/containers/" + former.container_id + "/start");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body.value("message", ""), HasSubstr("former"));
  EXPECT_TRUE(pods_->CpusInside(former).empty()) << "it does not run";
  EXPECT_EQ(Inside(shared), kReserved.ToString());
  // When the other one is gone it has its own again.
  EXPECT_THAT(pods_->Remove(other), IsOk());
  ASSERT_THAT(pods_->Start(former), IsOk());
  EXPECT_EQ(Inside(former), (all - kReserved).ToString());
  EXPECT_EQ(Inside(shared), kReserved.ToString());
}

// The CPUs stay its own from its end to its next start, whichever client starts it again.
TEST_F(DockerPlacementTest, AContainerKeepsItsCpusOverARestart) {
  const DockerPod shared = Run({.name = "shared"});
  DockerPod pod = GuaranteedDockerPod("exclusive", 1);
  pod.restart_policy = "always";
  const DockerPod exclusive = Run(pod);
  const std::string own = Inside(exclusive);
  const std::string rest = Inside(shared);
  for (const char* by : {"client", "policy"}) {
    const auto before = pods_->Inspect(exclusive.container_id)["State"].value("Pid", 0);
    if (std::string_view(by) == "client") {
      ASSERT_EQ(pods_->Ask("POST", "/containers/" + exclusive.container_id + "/restart?t=0").status,
                204);
    } else {
      ASSERT_EQ(::kill(before, SIGKILL), 0);
    }
    const Status runs = WaitUntil("it runs again", kPodPatience, [&] {
      const auto now = pods_->Inspect(exclusive.container_id)["State"].value("Pid", 0);
      return now != 0 && now != before;
    });
    ASSERT_THAT(runs, IsOk()) << by;
    EXPECT_EQ(Inside(exclusive), own) << by;
    EXPECT_EQ(Inside(shared), rest) << by;
  }
  const auto history = Ok(node_->Ctl("history"));
  EXPECT_THAT(history, Not(HasSubstr("released"))) << "no other container had its CPUs in between";
}

// dockerd would start it on these CPUs for ever.
TEST_F(DockerPlacementTest, AfterAnUninstallNoContainerThatExitedIsBoundEither) {
  const DockerPod again = Run({.name = "again"});
  const std::string all = Inside(again);
  const DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
  ASSERT_NE(Inside(again), all);
  ASSERT_THAT(pods_->Stop(again.container_id), IsOk());
  ASSERT_THAT(pods_->Stop(exclusive.container_id), IsOk());
  KillDaemon(SIGKILL);
  ASSERT_THAT(node_->StartDaemon(), IsOk());
  AwaitEngine();
  ASSERT_NE(CpusetOf(again), all);
  ASSERT_THAT(node_->Ctl(DockerNode::Words{"uninstall", "-apply"}), IsOk());
  for (const DockerPod& pod : {again, exclusive}) {
    EXPECT_EQ(CpusetOf(pod), all) << pod.name;
    ASSERT_THAT(pods_->Start(pod), IsOk());
    EXPECT_EQ(Inside(pod), all) << pod.name;
  }
}

// Containers of `docker run`, without a name and without a cgroup of their own choice.
class DockerOthersTest : public DockerPlacementTest {
 protected:
  void SetUp() override {
    Open({.policy = "static", .reserved = "1", .flags = {"-docker-others", "share"}});
  }
};

TEST_F(DockerOthersTest, AreKnownByTheirNamesAndAudited) {
  const auto made =
      pods_->Ask("POST", "/containers/create",
                 {{"Image", Dockerd::kBusyboxImage},
                  {"Cmd", {"-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"}},
                  {"HostConfig", {{"NetworkMode", "none"}}}});
  ASSERT_EQ(made.status, 201) << made.body;
  const DockerPod other{.name = "other", .container_id = made.body.value("Id", "")};
  ASSERT_THAT(pods_->Start(other), IsOk());
  const CpuSet all = pods_->CpusInside(other);
  std::string name = pods_->Inspect(other.container_id).value("Name", "/");
  name.erase(0, 1);
  std::string shown;
  EXPECT_THAT(WaitUntil("its name is shown", kPodPatience,
                        [&] {
                          shown = node_->Ctl("containers").value_or("");
                          return shown.find('"' + name + '"') != std::string::npos;
                        }),
              IsOk())
      << shown;

  const DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
  ExpectOn(other, all - pods_->CpusInside(exclusive));
  const auto report = Ok(node_->Ctl("audit"));
  EXPECT_THAT(report, Not(HasSubstr("no cgroup")));
  const auto read = nlohmann::json::parse(report);
  EXPECT_EQ(read.value("checked", 0), 2);
  EXPECT_TRUE(read["containers"].empty()) << report;

  // Another client, beside us, with values that are not the policy's. No audit is due for a minute.
  const DockerPods direct(node_->dockerd().socket(), node_->dockerd().CgroupParent());
  ASSERT_EQ(direct.Update(other, {{"CpusetCpus", all.ToString()}}).status, 200);
  EXPECT_THAT(WaitUntil("the update is noticed", kEventPatience,
                        [&] {
                          return node_->daemon().Log().find("docker/docker/" + name +
                                                            " has drifted") != std::string::npos;
                        }),
              IsOk());
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

// Containers of a real dockerd read their CPUs in a file.
class DockerCpuFileTest : public DockerPodsTest {
 protected:
  void SetUp() override {
    const std::string file = temp_.File("node.yaml");
    std::ofstream(file) << "cpuFiles: {Containers: all, MountPath: /etc/cpus}\n";
    Open({.policy = "static", .reserved = "1", .flags = {"-config", file}});
  }
  // The file as the container's process sees it, without MEMORY_NODES.
  std::string Read(const DockerPod& pod) {
    const auto state = pods_->Inspect(pod.container_id)["State"];
    const std::string path = fmt::format("/proc/{}/root/etc/cpus/cpus.env", state.value("Pid", 0));
    const std::string text = ReadFile(path, 1000).value_or("no file at " + path);
    return text.substr(0, text.find("MEMORY_NODES"));
  }
  static std::string Text(const CpuSet& cpus, const CpuSet& exclusive) {
    return fmt::format("CPUS={}\nEXCLUSIVE_CPUS={}\nSHARED_CPUS={}\n", cpus.ToString(),
                       exclusive.ToString(), (cpus - exclusive).ToString());
  }
  void ExpectReads(const DockerPod& pod, const std::string& text) {
    const Status read =
        WaitUntil("the file follows", kPodPatience, [&] { return Read(pod) == text; });
    EXPECT_THAT(read, IsOk()) << Read(pod) << "in place of\n" << text;
  }

  const TempDir temp_;
};

TEST_F(DockerCpuFileTest, AContainerReadsItsCpusAndEachChange) {
  const DockerPod shared = Run(BurstableDockerPod("shared", 500));
  const CpuSet all = pods_->CpusInside(shared);
  EXPECT_EQ(Read(shared), Text(all, {}));
  const DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
  const CpuSet own = pods_->CpusInside(exclusive);
  EXPECT_EQ(Read(exclusive), Text(own, own));
  ExpectReads(shared, Text(all - own, {}));

  node_->daemon().process().Signal(SIGKILL);
  ASSERT_THAT(node_->daemon().process().Wait(kPodPatience), IsOk());
  ASSERT_THAT(node_->StartDaemon(), IsOk());
  EXPECT_THAT(pods_->Remove(exclusive), IsOk());
  ExpectReads(shared, Text(all, {}));
  EXPECT_THAT(pods_->Remove(shared), IsOk());
}

// Unlike a kubelet, Docker's clients start a container that has ended again, with the same mounts.
TEST_F(DockerCpuFileTest, AContainerThatIsStartedAgainHasItsFile) {
  const DockerPod shared = Run(BurstableDockerPod("shared", 500));
  const std::string text = Read(shared);
  ASSERT_THAT(pods_->Stop(shared.container_id), IsOk());
  ASSERT_THAT(pods_->Start(shared), IsOk());
  EXPECT_EQ(Read(shared), text);
}

}  // namespace
}  // namespace resmgr::test
