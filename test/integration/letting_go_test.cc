// SPDX-License-Identifier: Apache-2.0
// A change to the null policy takes the brain away, but no container stays bound.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "pkg/sys/unix_socket.h"
#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

constexpr char kPinning[] = "Active: static\nReservedResources: {CPU: cpuset:0}\n";
constexpr char kNull[] = "Active: null";

class LettingGoByNullTest : public ControlTest {
 protected:
  LettingGoByNullTest() {
    StartRuntime();
    StartDaemon(Flags({}));
    EXPECT_EQ(SetConfig({{"policy", kPinning}}), "");
  }
  bool RunsEverywhere(const std::string& container) {
    return Eventually([&] { return CpusAtRuntime(container).size() == kCpus; });
  }
};

TEST_F(LettingGoByNullTest, ContainerBeingCreatedDuringTheChange) {
  runtime_.Script("CreateContainer", {.hold = true});
  std::future<Running> run = std::async(std::launch::async, [this] {
    CriClient client = Relayed();
    return Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  });
  ASSERT_TRUE(runtime_.WaitForHeld("CreateContainer", 1));
  ASSERT_EQ(SetConfig({{"policy", kNull}}), "");
  runtime_.Release("CreateContainer");
  EXPECT_TRUE(RunsEverywhere(run.get().container));
}

TEST_F(LettingGoByNullTest, WhenTheRuntimeComesBack) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(CpusAtRuntime(running.container).size(), 2);
  runtime_.Stop();
  ASSERT_EQ(SetConfig({{"policy", kNull}}), "");
  StartRuntime();
  EXPECT_TRUE(RunsEverywhere(running.container));
}

TEST_F(LettingGoByNullTest, AfterARestart) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(CpusAtRuntime(running.container).size(), 2);
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  StartDaemon(Flags({"-policy", "null"}));
  EXPECT_TRUE(RunsEverywhere(running.container));
}

// The next policy takes over containers that null had not released yet.
TEST_F(LettingGoByNullTest, ThereAndBackWithoutARuntime) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const CpuSet before = CpusAtRuntime(running.container);
  runtime_.Stop();
  ASSERT_EQ(SetConfig({{"policy", kNull}}), "");
  ASSERT_EQ(SetConfig({{"policy", kPinning}}), "");
  StartRuntime();
  ASSERT_TRUE(Eventually([&] { return Ctl({"containers", "-o", "json"}).json().size() == 1; }));
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(running.container).size() == 2; }));
}

// The commands of the section "Back" of docs/kubelet.md, in their order.
std::vector<std::string> CommandsOfThePage() {
  std::ifstream page(RESMGR_SOURCE_DIR "/docs/kubelet.md");
  std::vector<std::string> commands;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line == "## Back";
    if (inside && line.starts_with("    ")) commands.push_back(line.substr(4));
  }
  return commands;
}

class BackTest : public ControlTest {
 protected:
  void Do(const std::string& command) {
    SCOPED_TRACE(command);
    constexpr std::string_view kCtl = "cri-resmgr-ctl ";
    if (command.starts_with(kCtl)) {
      std::istringstream words(command.substr(kCtl.size()));
      const std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
      const Shown shown = Ctl(arguments);
      EXPECT_EQ(shown.exit_code, 0) << shown.err;
    } else if (command == "systemctl restart kubelet") {
      kubelet_ = std::make_unique<CriClient>(RuntimeSocket());
    } else if (command.starts_with("systemctl disable --now ")) {
      EXPECT_THAT(daemon_->Terminate(), IsOk());
    } else {
      ADD_FAILURE() << "the test does not know it";
    }
  }

  std::unique_ptr<CriClient> kubelet_;
};

TEST_F(BackTest, ThePagesOwnCommandsGoBackUnderAnyFlags) {
  StartRuntime();
  StartDaemon(Flags({"-policy", "static", "-reserved-resources", "CPU=1"}));
  kubelet_ = std::make_unique<CriClient>(RelaySocket());
  const Running running =
      Run(*kubelet_, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(CpusAtRuntime(running.container).size(), 2);
  const std::vector<std::string> commands = CommandsOfThePage();
  ASSERT_EQ(commands.size(), 3U);
  for (const std::string& command : commands)
    Do(command);
  EXPECT_EQ(CpusAtRuntime(running.container).size(), kCpus);
  const Running later = Run(*kubelet_, MakeGuaranteedPod("h"), MakeGuaranteedContainer("main", 2));
  EXPECT_FALSE(later.container.empty());
}

// The words of the package's script before a removal, where this test's daemon is the only process
// and there is no unit to stop.
struct Removal {
  int exit_code = 0;
  std::string said;
};
Removal TryToRemove(const std::string& proc, const std::string& script, const std::string& told) {
  std::ifstream source(RESMGR_SOURCE_DIR "/cmake/debian/prerm.in");
  std::string text{std::istreambuf_iterator<char>(source), {}};
  const auto replace = [&text](const std::string& what, const std::string& by) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
      text.replace(at, what.size(), by);
  };
  replace("proc=/proc", "proc=" + proc);
  replace("@SOCKETS@", "a.socket");
  replace("@UNITS@", "");
  replace("/run/systemd/system", "/no/such/directory");
  std::ofstream(script) << text;
  const int status = std::system(fmt::format("sh {} remove 2>{}", script, told).c_str());
  std::ifstream said(told);
  return {WEXITSTATUS(status), {std::istreambuf_iterator<char>(said), {}}};
}

TEST_F(BackTest, ThePackageIsNotRemovedWhileClientsAreConnected) {
  StartBoth();
  namespace fs = std::filesystem;
  fs::create_directory(Path("proc"));
  fs::create_symlink(fmt::format("/proc/{}", pid()), Path(fmt::format("proc/{}", pid())));
  fs::create_symlink("/proc/net", Path("proc/net"));
  const auto removal = [this] { return TryToRemove(Path("proc"), Path("prerm"), Path("told")); };
  // The start of the daemon, or this test's own first call, may still be connected.
  EXPECT_TRUE(Eventually([&] { return removal().exit_code == 0; }));
  {
    StatusOr<UniqueFd> kubelet = ConnectUnix(RelaySocket());
    ASSERT_TRUE(kubelet.ok()) << kubelet.status();
    Removal refused;
    EXPECT_TRUE(Eventually([&] {  // once the daemon has accepted it
      refused = removal();
      return refused.exit_code == 1;
    }));
    EXPECT_THAT(refused.said, testing::HasSubstr("clients are connected to its socket"));
    EXPECT_THAT(refused.said, testing::HasSubstr(RelaySocket())) << "wherever that is";
    EXPECT_THAT(refused.said, testing::HasSubstr("cri-resmgr-ctl uninstall -apply"));
  }
  EXPECT_TRUE(Eventually([&] { return removal().exit_code == 0; }));
}

}  // namespace
}  // namespace resmgr::test
