// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/run_node.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/node/testing/fake_door.h"
#include "pkg/node/testing/test_policies.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

// A node's daemon without a runtime, which a signal ends as soon as it runs.
class RunNodeTest : public testing::Test {
 protected:
  RunNodeTest() {
    options_.config.policy.active = "first-fit";
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

  std::string PathOf(const std::string& name) const { return directory_.File(name); }
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

  TempDir directory_;
  Status door_refusal_;
  bool drains_ = true;
  std::function<void()> when_running_ = [] { ::raise(SIGTERM); };
  EventLoop* loop_ = nullptr;
  EventLoop::HandlePtr later_;
  std::shared_ptr<const test::FakeDoor::History> history_;
  NodeOptions options_{.version = "1",
                       .policies = test::NullAndFirstFit(),
                       .topology = "synthetic:core:4 pu:1",
                       .relay_socket = PathOf("relay.sock"),
                       .runtime_socket = PathOf("runtime.sock"),
                       .directory = PathOf("kept")};
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

}  // namespace
}  // namespace resmgr
