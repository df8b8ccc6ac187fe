// SPDX-License-Identifier: Apache-2.0
// The daemon as a plugin of a runtime's NRI, before a runtime that treats plugins as CRI-O and
// containerd do.
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/integration/daemon_fixture.h"
#include "test/support/nri_runtime/nri_runtime.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;

class NriPluginTest : public DaemonTest {
 protected:
  std::vector<std::string> PluginFlags() const {
    return StaticFlags({"-mode", "nri-plugin", "-nri-socket", Path("nri.sock")});
  }
  void StartNri(const NriRuntime::Options& options) {
    auto nri = NriRuntime::Start(Path("nri.sock"), options);
    ASSERT_THAT(nri, IsOk());
    nri_ = *std::move(nri);
  }
  void StartPlugin() {
    StartDaemon(PluginFlags());
    ASSERT_NE(daemon_, nullptr);
    ASSERT_TRUE(nri_->AwaitSynchronized(++plugins_));
  }
  // The container's CPUs, "" where it is created as requested, or why it is not.
  std::string Created(const std::string& name) {
    const auto created = nri_->CreateContainer(NriCreation(name, 1));
    return created.ok() ? created->adjust().linux().resources().cpu().cpus()
                        : Describe(created.status());
  }

  std::string StatusText() const {
    const auto ctl = ChildProcess::Start(
        {Program("cri-resmgr-ctl"), "-socket", Path("admin.sock"), "status"}, Path("ctl.log"));
    if (!ctl.ok() || !(*ctl)->Wait(kPatience).ok()) return "no status";
    std::string text = TextOf(Path("ctl.log"));
    std::filesystem::remove(Path("ctl.log"));
    return text;
  }

  std::unique_ptr<NriRuntime> nri_;
  int plugins_ = 0;
};

// Runtimes whose NRI lets plugins validate the merged adjustment of a container.
class NriPluginStopTest : public NriPluginTest,
                          public testing::WithParamInterface<std::pair<std::string, std::string>> {
 protected:
  void SetUp() override {
    StartNri({.name = GetParam().first, .version = GetParam().second});
    StartPlugin();
    ASSERT_EQ(Created("before"), "1");
  }
};

INSTANTIATE_TEST_SUITE_P(Runtimes, NriPluginStopTest,
                         testing::Values(std::pair("cri-o", "1.34.0"),
                                         std::pair("containerd", "v2.3.1")));

TEST_P(NriPluginStopTest, TheNextContainerIsCreatedAsRequestedWhenThePluginHasEnded) {
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  EXPECT_EQ(Created("next"), "");
  EXPECT_EQ(Created("later"), "");
}

TEST_P(NriPluginStopTest, TheNextContainerIsCreatedAsRequestedWhenThePluginWasKilled) {
  daemon_->Kill();
  EXPECT_EQ(Created("next"), "");
  EXPECT_EQ(Created("later"), "");
}

TEST_P(NriPluginStopTest, TheNextContainerIsCreatedAsRequestedWhenThePluginHangs) {
  daemon_->process().Signal(SIGSTOP);
  EXPECT_EQ(Created("next"), "");
  EXPECT_EQ(Created("later"), "");
  daemon_->process().Signal(SIGCONT);
  EXPECT_TRUE(nri_->AwaitSynchronized(++plugins_)) << "it connects again";
}

// The runtime still has the former plugin in its list then.
TEST_P(NriPluginStopTest, TheNextContainerIsPlacedWhenThePluginWasRestarted) {
  const nri_api::CreateContainerRequest before = NriCreation("before", 1);
  *nri_->inventory.add_pods() = before.pod();
  *nri_->inventory.add_containers() = before.container();
  nri_->inventory.mutable_containers(0)->set_state(nri_api::CONTAINER_RUNNING);
  nri_->inventory.mutable_containers(0)
      ->mutable_linux()
      ->mutable_resources()
      ->mutable_cpu()
      ->set_cpus("1");
  daemon_->Kill();
  StartPlugin();
  EXPECT_EQ(Created("next"), "2");
}

// These end when a container is updated.
TEST_F(NriPluginTest, CrioOf126BeforeItsMendingIsNotServed) {
  StartNri({.name = "cri-o", .version = "1.26.1"});
  StartDaemon(PluginFlags());
  ASSERT_NE(daemon_, nullptr);
  ASSERT_TRUE(nri_->Await([&] { return nri_->connections() > 0; }));
  EXPECT_FALSE(nri_->Await([&] { return nri_->connections() > 1; }, milliseconds(1500)))
      << "it is not asked again at once";
  EXPECT_FALSE(nri_->Await([&] { return nri_->synchronized() > 0; }, milliseconds(0)));
  EXPECT_TRUE(Logged("update CRI-O to 1.26.2 or newer, or use the relay"));
  EXPECT_THAT(StatusText(), HasSubstr("the runtime is not connected: CRI-O 1.26.1 ends when"));
}

TEST_F(NriPluginTest, StatusShowsTheSocketsThatAreUsed) {
  StartNri({.name = "containerd", .version = "1.7.24"});
  StartPlugin();
  ASSERT_EQ(Created("one"), "1");
  const std::string status = StatusText();
  EXPECT_THAT(status, HasSubstr("connected (" + Path("nri.sock") + ")"));
  EXPECT_THAT(status, HasSubstr("unreachable (" + RuntimeSocket() + ")"));
  EXPECT_THAT(status, HasSubstr("the runtime's CRI cannot be reached"));
  EXPECT_THAT(status, testing::Not(HasSubstr(RelaySocket()))) << "no relay is served";
  StartRuntime();
  std::string later;
  EXPECT_TRUE(Eventually([&] {
    later = StatusText();
    return later.find(" reachable (" + RuntimeSocket() + ")") != std::string::npos &&
           later.find("cannot be reached") == std::string::npos;
  })) << later;
}

TEST_F(NriPluginTest, ACriThatIsNotUsedIsNoProblem) {
  StartNri({.name = "cri-o", .version = "1.37.0", .nri_version = "v0.12.2"});
  StartPlugin();
  const std::string status = StatusText();
  EXPECT_THAT(status, HasSubstr("not used (" + RuntimeSocket() + ")"));
  EXPECT_THAT(status, testing::Not(HasSubstr("cannot be reached")));
}

// The daemon looks at the cgroups of the others before it updates them.
TEST_F(NriPluginTest, OthersLeaveTheCpusInTheAnswerToACreation) {
  StartNri({.name = "containerd", .version = "1.7.24"});
  StartPlugin();
  ASSERT_THAT(nri_->CreateContainer(NriCreation("web", 0)), IsOk());
  const auto created = nri_->CreateContainer(NriCreation("dsp", 1));
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(created->adjust().linux().resources().cpu().cpus(), "1");
  ASSERT_EQ(created->update_size(), 1);
  EXPECT_EQ(created->update(0).container_id(), "web-id");
  EXPECT_EQ(created->update(0).linux().resources().cpu().cpus(), "0,2-7");
}

// CRI-O's workloads change the cpuset after all plugins: the first event shows it.
TEST_F(NriPluginTest, OtherCpusThanDecidedAreToldSoonAfterTheCreation) {
  StartNri({.name = "cri-o", .version = "1.35.0"});
  StartPlugin();
  ASSERT_EQ(Created("one"), "1");
  nri_api::CreateContainerRequest made = NriCreation("one", 1);
  made.mutable_container()->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus("6");
  nri_->Tell(nri_api::EVENT_POST_CREATE_CONTAINER, made.pod(), made.container());
  for (const auto event : {nri_api::EVENT_START_CONTAINER, nri_api::EVENT_POST_START_CONTAINER})
    nri_->Tell(event, made.pod(), made.container());
  EXPECT_TRUE(Logged("container default/one/one has drifted: cpuset.cpus is 6 at the runtime"));
}

}  // namespace
}  // namespace resmgr::test
