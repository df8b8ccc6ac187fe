// SPDX-License-Identifier: Apache-2.0
// The life of a container of a pod, by requests of each kind and by the docker command, with the
// static policy in front of a real dockerd: it and its CPUs stay known.
#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/docker/cli_transcript.h"
#include "test/e2e/docker/docker_pods_fixture.h"
#include "test/support/containerd/child_process.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DockerLifecycleTest : public DockerPodsTest {
 protected:
  void Open(DockerNode::Options options = {}) {
    options.policy = "static";
    options.reserved = "1";
    DockerPodsTest::Open(options);
    ASSERT_FALSE(HasFatalFailure());
    docker_ = std::make_unique<CliTranscript>(node_->socket(), node_->directory());
  }
  int Post(const std::string& container, const std::string& what) {
    return pods_->Ask("POST", "/containers/" + container + "/" + what).status;
  }
  CpuSet On(const DockerPod& pod) { return pods_->CpusInside(pod); }
  // Expects that one container has an exclusive CPU, and that the other one has the remaining CPUs.
  void ExpectApart(const DockerPod& exclusive, const DockerPod& shared) {
    const Status apart = WaitUntil("the containers are apart", kPodPatience, [&] {
      return On(exclusive).size() == 1 && On(shared) == all_ - On(exclusive);
    });
    EXPECT_THAT(apart, IsOk()) << On(exclusive).ToString() << " and " << On(shared).ToString();
  }
  // Runs a container with an exclusive CPU, and one that shares all others.
  std::pair<DockerPod, DockerPod> RunApart() {
    DockerPod shared = Run(BurstableDockerPod("shared", 500));
    all_ = On(shared);
    DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
    ExpectApart(exclusive, shared);
    return {std::move(exclusive), std::move(shared)};
  }
  void ExpectAllFor(const DockerPod& shared) {
    const Status all =
        WaitUntil("it has all CPUs", kPodPatience, [&] { return On(shared) == all_; });
    EXPECT_THAT(all, IsOk()) << On(shared).ToString();
  }

  std::unique_ptr<CliTranscript> docker_;
  CpuSet all_;  // CPUs of sharing containers when there are no exclusive ones
};

TEST_F(DockerLifecycleTest, ARenamedContainerIsTheSame) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto [exclusive, shared] = RunApart();
  const std::string own = On(exclusive).ToString();
  ASSERT_EQ(Post(exclusive.container_id, "rename?name=other.name"), 204);
  // Addressed by its new name, percent-encoded, or by a beginning of its id, it keeps the policy's
  // CPUs.
  for (const std::string& name : {std::string("other.name"), std::string("%6fther.name"),
                                  exclusive.container_id.substr(0, 12)}) {
    const auto updated = pods_->Ask("POST", "/containers/" + name + "/update",
                                    {{"CpusetCpus", all_.ToString()}, {"CpuShares", 1024}});
    EXPECT_EQ(updated.status, 200) << name << ": " << updated.body.dump();
    EXPECT_EQ(On(exclusive).ToString(), own) << name;
  }
  EXPECT_EQ(Post("other.name", "kill"), 204);
  ExpectAllFor(shared);
}

TEST_F(DockerLifecycleTest, AWaitEndsWithTheContainerAndItsCpus) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto [exclusive, shared] = RunApart();
  const auto waiter = docker_->Begin({"wait", exclusive.container_id});
  ASSERT_NE(waiter, nullptr);
  // While it waits, others are served.
  EXPECT_EQ(docker_->Run({"inspect", exclusive.container_id}).exit_code, 0);
  EXPECT_EQ(docker_->Run({"kill", exclusive.container_id}).exit_code, 0);
  const auto ended = Must(waiter->Wait(kPodPatience));
  EXPECT_EQ(ended.output, "137\n");
  ExpectAllFor(shared);
}

// dockerd itself stops and starts it, which only its events report.
TEST_F(DockerLifecycleTest, ARestartedContainerHasItsCpusAgain) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto [exclusive, shared] = RunApart();
  ASSERT_EQ(Post(exclusive.container_id, "restart?t=0"), 204);
  ExpectApart(exclusive, shared);
  // A stopped container has no CPUs; started again, it has.
  ASSERT_EQ(Post(exclusive.container_id, "stop?t=0"), 204);
  ExpectAllFor(shared);
  ASSERT_EQ(Post(exclusive.container_id, "start"), 204);
  ExpectApart(exclusive, shared);
  EXPECT_THAT(pods_->Remove(exclusive), IsOk());
  ExpectAllFor(shared);
}

TEST_F(DockerLifecycleTest, DockerUpdateChangesWhatIsNotThePolicys) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto [exclusive, shared] = RunApart();
  const std::string own = On(exclusive).ToString();
  const auto updated =
      docker_->Run({"update", "--cpuset-cpus", "0", "--memory", "64m", "--memory-swap", "64m",
                    "--pids-limit", "50", exclusive.container_id});
  EXPECT_EQ(updated.exit_code, 0) << updated.errors;
  EXPECT_EQ(On(exclusive).ToString(), own);
  const auto config = pods_->Inspect(exclusive.container_id)["HostConfig"];
  EXPECT_EQ(config["Memory"], 64 << 20);
  EXPECT_EQ(config["PidsLimit"], 50);
  EXPECT_EQ(config["CpusetCpus"], own);
}

TEST_F(DockerLifecycleTest, OtherContainersShareByOption) {
  ASSERT_NO_FATAL_FAILURE(Open({.flags = {"-docker-others", "share"}}));
  const DockerPod shared = Run(BurstableDockerPod("shared", 500));
  all_ = On(shared);
  const auto started = docker_->Run({"run", "-d", "--network", "none", "--cpuset-cpus", "0",
                                     std::string(Dockerd::kBusyboxImage), "-c", "sleep 1000"});
  ASSERT_EQ(started.exit_code, 0) << started.errors;
  DockerPod other;
  other.container_id = started.output.substr(0, started.output.find('\n'));
  EXPECT_EQ(On(other).ToString(), all_.ToString());
  const DockerPod exclusive = Run(GuaranteedDockerPod("exclusive", 1));
  ExpectApart(exclusive, other);
  ExpectApart(exclusive, shared);
  EXPECT_THAT(pods_->Remove(exclusive), IsOk());
  ExpectAllFor(other);
}

TEST_F(DockerLifecycleTest, OnePodsRequestsAreDumped) {
  ASSERT_NO_FATAL_FAILURE(Open());
  DockerPod web = Run(BurstableDockerPod("web", 500));
  const auto file = node_->directory() / "dumped";
  const auto dump = Must(ChildProcess::Start(
      node_->CtlLine({"dump", "-pod", "shop/web", "-for", "60s", "-o", file.string()}),
      node_->directory() / "said"));
  const auto dumped = [&file] { return TextOf(file); };
  // It has begun once a request about a container that was there before is in it.
  ASSERT_THAT(WaitUntil("the dump has begun", kPodPatience,
                        [&] {
                          (void)pods_->Inspect(web.container_id);
                          return dumped().find("REQUEST GetContainers") != std::string::npos;
                        }),
              IsOk());
  (void)Run(BurstableDockerPod("other", 500));
  web.attempt = 1;
  EXPECT_EQ(pods_->Create(web).status, 201);
  EXPECT_THAT(pods_->Start(web), IsOk());
  EXPECT_EQ(Post(web.container_id, "kill"), 204);
  EXPECT_THAT(WaitUntil("the last request is in it", kPodPatience,
                        [&] { return dumped().find("ContainerKill") != std::string::npos; }),
              IsOk());
  const std::string text = dumped();
  EXPECT_THAT(text, HasSubstr("REQUEST ContainerCreate"));
  EXPECT_THAT(text, HasSubstr("CHANGED ContainerCreate: HostConfig.CpusetCpus"));
  EXPECT_THAT(text, HasSubstr("/containers/" + web.container_id + "/start"));
  EXPECT_THAT(text, HasSubstr("/containers/" + web.container_id + "/kill"));
  EXPECT_THAT(text, Not(HasSubstr("other")));
  dump->Signal(SIGINT);
}

}  // namespace
}  // namespace resmgr::test
