// SPDX-License-Identifier: Apache-2.0
// Containers of a real dockerd read their CPUs in a file.
#include <csignal>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/e2e/docker/docker_pods_fixture.h"
#include "test/support/containerd/child_process.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

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
