// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/run_node.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/cpu_constraint.h"
#include "pkg/log/log.h"
#include "pkg/node/config_reader.h"
#include "pkg/node/startup.h"
#include "pkg/node/testing/fake_door.h"
#include "pkg/node/testing/test_policies.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class NodeTest : public testing::Test {
 protected:
  NodeTest() { options_.config.policy.active = "first-fit"; }
  std::string PathOf(const std::string& name) const { return directory_.File(name); }

  TempDir directory_;
  NodeOptions options_{.version = "1",
                       .policies = test::NullAndFirstFit(),
                       .topology = "synthetic:core:4 pu:1",
                       .relay_socket = PathOf("relay.sock"),
                       .runtime_socket = PathOf("runtime.sock"),
                       .directory = PathOf("kept")};
};

// A node's daemon without a runtime, which a signal ends as soon as it runs.
class RunNodeTest : public NodeTest {
 protected:
  RunNodeTest() {
    options_.door.create =
        [this](const DoorContext& context) -> StatusOr<std::unique_ptr<FrontDoor>> {
      if (!door_refusal_.ok()) return door_refusal_;
      auto door = std::make_unique<test::FakeDoor>();
      history_ = door->history();
      door->drains = drains_;
      loop_ = &context.loop;
      door->at_start = [this, &loop = context.loop] {
        later_ = loop.After(milliseconds(1), [this] { when_running_(); });
      };
      return door;
    };
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(PathOf(name)) << text;
  }
  Status Run() {
    auto setup = Prepare(options_);
    if (!setup.ok()) return setup.status();
    return RunNode(options_, *std::move(setup));
  }
  // All files below the test's directory.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(PathOf("")))
      names.push_back(entry.path().filename());
    return names;
  }

  Status door_refusal_;
  bool drains_ = true;
  std::function<void()> when_running_ = [] { ::raise(SIGTERM); };
  EventLoop* loop_ = nullptr;
  EventLoop::HandlePtr later_;
  std::shared_ptr<const test::FakeDoor::History> history_;
};

TEST_F(RunNodeTest, ItsPartsBeginAndEndInOrder) {
  EXPECT_EQ(Run(), OkStatus());
  ASSERT_NE(history_, nullptr);
  EXPECT_THAT(*history_, ElementsAre("start", "active 1", "connect 1", "drain", "stop", "end 1"));
}

TEST_F(RunNodeTest, UnderTheNullPolicyTheDoorServesWithoutABrain) {
  options_.config.policy.active = "null";
  EXPECT_EQ(Run(), OkStatus());
  EXPECT_THAT(*history_, ElementsAre("start", "drain", "stop"));
}

TEST_F(RunNodeTest, ASecondSignalDoesNotWaitForRequests) {
  drains_ = false;
  when_running_ = [] {
    ::raise(SIGTERM);
    ::raise(SIGINT);
  };
  EXPECT_EQ(Run(), OkStatus());
  EXPECT_THAT(*history_, Contains("drain").Times(1));
}

TEST_F(RunNodeTest, WhereAnotherInstanceServesNothingOnTheDiskIsTouched) {
  door_refusal_ = AlreadyExists("socket relay.sock is in use");
  options_.config.dump.file = PathOf("dump");
  EXPECT_EQ(Run().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(RunNodeTest, StateThatCannotBeKeptIsAWarning) {
  Write("kept", "a file where the directory would be");
  EXPECT_EQ(Run(), OkStatus());
  EXPECT_THAT(*history_, Contains("active 1"));
}

TEST_F(RunNodeTest, ADumpFileThatCannotBeOpenedIsAWarning) {
  options_.config.dump.specs = {"*"};
  options_.config.dump.file = PathOf("no/such/directory/dump");
  EXPECT_EQ(Run(), OkStatus());
  EXPECT_THAT(*history_, Contains("active 1"));
}

TEST_F(RunNodeTest, AServiceWhoseSocketIsTakenIsAWarning) {
  Write("admin.sock", "no socket");
  bool asked = false;
  options_.services = {{.socket = PathOf("admin.sock"), .methods = [&asked](const NodeView& view) {
                          asked = view.configurator.current().policy.active == "first-fit" &&
                                  view.version == "1";
                          return UnaryServer::Methods();
                        }}};
  EXPECT_EQ(Run(), OkStatus());
  EXPECT_TRUE(asked);
}

TEST_F(RunNodeTest, MetricsThatCannotBeServedAreAWarning) {
  options_.metrics_address = "127.0.0.1:99999";
  EXPECT_EQ(Run(), OkStatus());
  EXPECT_THAT(*history_, Contains("active 1"));
}

TEST_F(RunNodeTest, HangupReadsTheFileAgain) {
  Config changed = options_.config;
  changed.logger.level = "error";
  options_.config_file = PathOf("config.yaml");
  options_.read_again = [changed] { return changed; };
  Configurator* configurator = nullptr;
  options_.services = {{.socket = "", .methods = [&](const NodeView& view) {
                          configurator = &view.configurator;
                          return UnaryServer::Methods();
                        }}};
  when_running_ = [&] {
    ::raise(SIGHUP);
    later_ = loop_->Every(milliseconds(1), [&configurator] {
      if (configurator->current().logger.level == "error") ::raise(SIGTERM);
    });
  };
  EXPECT_EQ(Run(), OkStatus());
}

class StartupTest : public NodeTest {
 protected:
  // A process starts with these; other tests of this program have left theirs.
  StartupTest() { ConfigureLogging({}); }

  // Keeps a configuration as an earlier daemon does.
  void Keep(const std::string& text) {
    EXPECT_EQ(SaveDeliveredConfig(options_.directory, {.name = "agent", .data = {}, .text = text}),
              OkStatus());
  }
  resmgr::Setup Prepared() {
    auto setup = Prepare(options_);
    EXPECT_EQ(setup.status(), OkStatus());
    return setup.ok() ? *std::move(setup) : resmgr::Setup();
  }
};

TEST_F(StartupTest, WithoutAKeptConfigurationTheOptionsOwnIsInForce) {
  const resmgr::Setup setup = Prepared();
  EXPECT_EQ(setup.config_source, "the command line");
  EXPECT_FALSE(setup.delivered);
  EXPECT_TRUE(setup.disk_answers);
  EXPECT_NE(setup.policy, nullptr);
  EXPECT_EQ(setup.machine->online().size(), 4);
  options_.config_file = "/etc/node.yaml";
  EXPECT_EQ(Prepared().config_source, "/etc/node.yaml");
}

TEST_F(StartupTest, ADifferenceBetweenTheDaemonAndPodsIsAProblem) {
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path file(PathOf("root") + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  };
  options_.topology = "live";
  options_.cgroups.root = PathOf("root");
  const std::string slice = "/sys/fs/cgroup/system.slice/cpuset.cpus.effective";
  write("/sys/fs/cgroup/cgroup.controllers", "cpuset");
  write("/proc/self/cgroup", "0::/system.slice/cri-resmgr.service");
  write(slice, "0-4000");
  resmgr::Setup setup = Prepared();
  EXPECT_TRUE(setup.live);
  EXPECT_THAT(setup.machine_problems, IsEmpty());
  EXPECT_EQ(setup.machine->allowed(), setup.machine->online());
  // Its only CPU exists on no test machine.
  write(slice, "4001");
  setup = Prepared();
  EXPECT_EQ(setup.machine->allowed(), setup.machine->online());
  EXPECT_THAT(setup.machine_problems,
              ElementsAre(HasSubstr("the cgroup of this process (/system.slice) may not "
                                    "use CPUs")));
  EXPECT_THAT(setup.warnings, Contains(setup.machine_problems.front()));
  EXPECT_THAT(CheckOnly(options_)->warnings, Contains(setup.machine_problems.front()));
}

// CPU 15 of this machine is offline.
TEST_F(StartupTest, CpusThatAreOfflineDoNotKeepTheDaemonFromStarting) {
  options_.topology = RESMGR_SOURCE_DIR "/test/data/topology/restricted-2s.xml";
  options_.config.policy.active = "first-fit";
  options_.config.policy.available_cpus = *ParseCpuConstraint("cpuset:0-3,15", "available");
  EXPECT_THAT(Prepared().warnings,
              Contains("available: CPU 15 is offline, and the daemon does without"));
}

TEST_F(StartupTest, APermissionForAClassThatDoesNotExistIsAWarning) {
  options_.config.policy.active = "first-fit";
  options_.config.classes.namespaces = {{"cpu", {"*"}}, {"cpu/trubo", {"infra"}}};
  EXPECT_THAT(Prepared().warnings,
              Contains("classes.AllowedNamespaces.Classes: cpu \"trubo\": there is no such class; "
                       "there are none"));
}

TEST_F(StartupTest, CpusThatPodsMayNotUseAreNoGoodChoice) {
  options_.topology = RESMGR_SOURCE_DIR "/test/data/topology/restricted-2s.xml";
  const auto available = [this](const std::string& cpus) {
    auto constraint = ParseCpuConstraint(cpus, "test");
    EXPECT_TRUE(constraint.ok());
    options_.config.policy.available_cpus = *constraint;
    return Prepared().warnings;
  };
  EXPECT_THAT(available("0-11"), IsEmpty());
  EXPECT_THAT(available("0-13"),
              ElementsAre(HasSubstr("has CPUs 12-13, which the cgroup of pods may not use")));
}

TEST_F(StartupTest, AKeptConfigurationComesBeforeTheOptionsUnlessTheyForceTheirs) {
  Keep("policy: {Active: null}");
  const resmgr::Setup setup = Prepared();
  EXPECT_EQ(setup.config_source, "agent");
  EXPECT_TRUE(setup.delivered);
  EXPECT_EQ(setup.policy, nullptr) << "the null policy";
  EXPECT_EQ(setup.refused.second, "");
  options_.forced = true;
  EXPECT_EQ(Prepared().config_source, "the command line");
}

TEST_F(StartupTest, AFileThatIsNotInForceIsTold) {
  std::vector<std::string> lines;
  SetLogWriter([&lines](std::string_view line) {
    if (line.find("-reset-config") != std::string_view::npos) lines.emplace_back(line);
  });
  const auto prepare = [&](const std::string& file) {
    lines.clear();
    options_.config_file = file;
    Prepared();
    return lines;
  };
  EXPECT_THAT(prepare("/etc/node.yaml"), IsEmpty());
  Keep("policy: {Active: null}");
  EXPECT_THAT(prepare("/etc/node.yaml"), ElementsAre(HasSubstr(" info ")))
      << "an agent's is the usual one";
  const DeliveredConfig by_hand{
      .name = "cri-resmgr-ctl (p.yaml)", .data = {}, .text = "policy: {Active: null}"};
  ASSERT_EQ(SaveDeliveredConfig(options_.directory, by_hand), OkStatus());
  EXPECT_THAT(prepare("/etc/node.yaml"),
              ElementsAre(testing::AllOf(
                  HasSubstr(" warning "),
                  HasSubstr("the configuration from cri-resmgr-ctl (p.yaml) is in "
                            "force, not /etc/node.yaml; -reset-config forgets it"))));
  EXPECT_THAT(prepare(""), IsEmpty());
  options_.forced = true;
  EXPECT_THAT(prepare("/etc/node.yaml"), IsEmpty());
  SetLogWriter(nullptr);
}

TEST_F(StartupTest, TheCommandLineWinsOverAKeptConfiguration) {
  Keep("policy: {Active: null}\nlogger: {Level: warn}");
  ASSERT_TRUE(options_.overrides.Set("policy", "first-fit").ok());
  const resmgr::Setup setup = Prepared();
  EXPECT_EQ(setup.config.policy.active, "first-fit");
  EXPECT_EQ(setup.config.logger.level, "warn");
}

TEST_F(StartupTest, AKeptConfigurationThatDoesNotFitIsLeftAside) {
  for (const char* text :
       {"policy: {Active: unknown}", "no: {configuration: at all}",
        "policy: {Active: first-fit, AvailableResources: {CPU: cpuset:64-70}}"}) {
    Keep(text);
    const resmgr::Setup setup = Prepared();
    EXPECT_EQ(setup.config_source, "the command line") << text;
    EXPECT_EQ(setup.refused.first, "agent");
    EXPECT_NE(setup.refused.second, "");
  }
}

TEST_F(StartupTest, ADamagedFileOfAKeptConfigurationIsLeftAside) {
  Keep("");
  std::ofstream(options_.directory + "/config") << "{";
  EXPECT_EQ(Prepared().config_source, "the command line");
}

TEST_F(StartupTest, OptionsThatDoNotFitTheMachineAreRefused) {
  options_.config.policy.active = "unknown";
  EXPECT_EQ(Prepare(options_).status().code(), StatusCode::kNotFound);
  options_.topology = "synthetic:bogus";
  const Status refused = Prepare(options_).status();
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("-topology synthetic:bogus"));
}

TEST_F(StartupTest, ACheckLooksAtTheOptionsAloneAndWarnsOfADumpThatCannotBeWritten) {
  Keep("policy: {Active: null}");
  options_.config.dump.file = PathOf("no/such/directory/dump");
  const auto checked = CheckOnly(options_);
  ASSERT_EQ(checked.status(), OkStatus());
  EXPECT_EQ(checked->config.policy.active, "first-fit");
  EXPECT_THAT(checked->warnings, Contains(HasSubstr("dump: ")));
  EXPECT_FALSE(std::filesystem::exists(PathOf("no")));
}

TEST_F(StartupTest, AResetForgetsWhatItIsToldTo) {
  Keep("policy: {Active: null}");
  std::filesystem::create_directories(options_.StateDirectory());
  EXPECT_EQ(Reset(options_, {.placements = true}), OkStatus());
  EXPECT_EQ(Prepared().config_source, "agent");
  EXPECT_EQ(Reset(options_, {.delivered_config = true}), OkStatus());
  EXPECT_EQ(Prepared().config_source, "the command line");
}

TEST_F(StartupTest, NothingIsResetWhileAnInstanceRuns) {
  Keep("policy: {Active: null}");
  {
    const auto socket = ListeningSocket::Create(options_.relay_socket);
    ASSERT_EQ(socket.status(), OkStatus());
    EXPECT_EQ(Reset(options_, {.delivered_config = true}).code(), StatusCode::kFailedPrecondition);
  }
  // An ending daemon has closed its socket, but still writes.
  std::filesystem::create_directories(options_.StateDirectory());
  const auto claim = ClaimDirectory(options_.StateDirectory());
  ASSERT_EQ(claim.status(), OkStatus());
  EXPECT_EQ(Reset(options_, {.placements = true}).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Prepared().config_source, "agent");
}

}  // namespace
}  // namespace resmgr
