// SPDX-License-Identifier: Apache-2.0
// Plugins that the host starts itself. FAKE_PLUGIN is the path of an executable plugin.
#include "pkg/nri/host/session/plugin_process.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "pkg/nri/testing/host_fixture.h"
#include "test/support/captured_log.h"
#include "test/support/wait.h"

namespace resmgr::nri {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class PluginProcessTest : public test::HostFixture {
 protected:
  PluginProcessTest() {
    options.external_plugins = false;
    options.plugin_path = directory.File("plugins");
    options.plugin_config_path = directory.File("conf.d");
    options.first_restart = milliseconds(10);
    std::filesystem::create_directory(options.plugin_path);
    std::filesystem::create_directory(options.plugin_config_path);
  }
  ~PluginProcessTest() override { EndHost(); }

  void Plugin(const std::string& name) const {
    std::filesystem::create_symlink(FAKE_PLUGIN, options.plugin_path + "/" + name);
  }
  void StartUntil(const std::function<bool()>& condition) {
    ASSERT_TRUE(host().Start().ok());
    ASSERT_TRUE(RunUntil(condition));
  }
  bool Logged(std::string_view text) const { return log_.Times(text) > 0; }
  // Parsed from the log line that tells that it is ready.
  pid_t Pid(const std::string& name) const {
    const std::string begin = "plugin " + name + " (pid ";
    const std::vector<std::string> lines = log_.With("is ready");
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
      const size_t at = line->find(begin);
      if (at != std::string::npos) return std::stoi(line->substr(at + begin.size()));
    }
    return -1;
  }

  const resmgr::test::CapturedLog log_;
};

TEST_F(PluginProcessTest, APluginHasItsSocketItsVariablesAndNothingElse) {
  Plugin("07-started");
  std::ofstream(options.plugin_config_path + "/started.conf") << "text";
  StartUntil([&] { return !listener.ready.empty() && Logged("variables"); });
  EXPECT_EQ(listener.ready[0]->full_name(), "07-started");
  // The fourth open file is the directory that it lists.
  EXPECT_TRUE(
      Logged("plugin 07-started says: variables NRI_PLUGIN_NAME=started NRI_PLUGIN_IDX=07 "
             "NRI_PLUGIN_SOCKET=3; files 0 1 2 3 4\n"))
      << log_.Text();
  const auto answer = AskCreate(*listener.ready[0]);
  EXPECT_TRUE(answer.ok());
}

TEST_F(PluginProcessTest, ItEndsWithTheHost) {
  Plugin("07-started");
  StartUntil([&] { return !listener.ready.empty(); });
  const pid_t pid = Pid("07-started");
  ASSERT_GT(pid, 0);
  ASSERT_EQ(::kill(pid, 0), 0);
  bool stopped = false;
  host().Stop([&] { stopped = true; });
  // Reaped, too: no zombie remains.
  ASSERT_TRUE(RunUntil([&] { return stopped && ::kill(pid, 0) != 0; }));
}

TEST_F(PluginProcessTest, AHostThatStopsStartsNothing) {
  Plugin("07-started");
  ASSERT_TRUE(host().Start().ok());
  bool stopped = false;
  host().Stop([&] { stopped = true; });
  ASSERT_TRUE(RunUntil([&] { return stopped; }));
  resmgr::test::RunFor(loop, milliseconds(50));
  EXPECT_THAT(host().plugins(), IsEmpty());
  EXPECT_FALSE(Logged("variables"));
}

TEST_F(PluginProcessTest, OneThatDiesIsStartedAgain) {
  Plugin("07-started");
  StartUntil([&] { return !listener.ready.empty(); });
  Created answer;
  listener.ready[0]->Ask(api::EVENT_CREATE_CONTAINER,
                         test::About<api::CreateContainerRequest>("p", "die").SerializeAsString(),
                         kPatience, Into(answer));
  ASSERT_TRUE(RunUntil([&] { return answer.has_value() && Logged("exit status 3"); }));
  EXPECT_EQ(answer->status().code(), StatusCode::kUnavailable);
  ASSERT_TRUE(RunUntil([&] { return listener.ready.size() == 1; }));
  EXPECT_THAT(listener.told,
              ElementsAre("inventory 07-started", "ready 07-started", HasSubstr("lost"),
                          "inventory 07-started", "ready 07-started"));
}

// The plugin ends at once, as with an invalid configuration.
TEST_F(PluginProcessTest, OneThatEndsAtOnceShowsWhatItSaidAndWhenItStartsAgain) {
  const std::string path = options.plugin_path + "/07-started";
  std::ofstream(path) << "#!/bin/sh\necho 'bad configuration: line 3'\nexit 4\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  StartUntil([&] { return Logged("exit status 4") && !host().plugins().empty(); });
  EXPECT_THAT(host().plugins()[0].last_error,
              testing::MatchesRegex("it has ended: exit status 4, \"bad configuration: line 3\"; "
                                    "it is started again in [0-9]+ ms"));
  EXPECT_EQ(host().plugins()[0].state, PluginView::State::kFailed);
}

TEST_F(PluginProcessTest, OneThatIsLeftIsKilled) {
  options.strikes = 1;
  Plugin("07-started");
  StartUntil([&] { return !listener.ready.empty(); });
  const pid_t pid = Pid("07-started");
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  Created answer;
  Create(*listener.ready[0], answer, milliseconds(20));
  ASSERT_TRUE(RunUntil([&] { return answer.has_value() && ::kill(pid, 0) != 0; }));
  ASSERT_TRUE(RunUntil([&] { return listener.ready.size() == 1 && Pid("07-started") != pid; }));
}

TEST_F(PluginProcessTest, OneThatCannotBeStartedIsTriedAgainBesideOthers) {
  Plugin("20-good");
  std::ofstream(options.plugin_path + "/10-bad") << "no program";
  std::filesystem::permissions(options.plugin_path + "/10-bad", std::filesystem::perms::owner_all);
  StartUntil([&] { return !listener.ready.empty() && Logged("again in 20 ms"); });
  const std::vector<PluginView> plugins = host().plugins();
  ASSERT_THAT(plugins, SizeIs(2));
  EXPECT_EQ(plugins[0].name, "bad");
  EXPECT_EQ(plugins[0].state, PluginView::State::kFailed);
  EXPECT_THAT(plugins[0].last_error, HasSubstr("cannot execute"));
  EXPECT_EQ(plugins[1].state, PluginView::State::kReady);
  // An executable in its place is started at the next try.
  std::filesystem::remove(options.plugin_path + "/10-bad");
  Plugin("10-bad");
  ASSERT_TRUE(RunUntil([&] { return listener.ready.size() == 2; }));
}

TEST_F(PluginProcessTest, OneInItsPlaceIsNotDrivenOut) {
  Plugin("10-fake");
  StartUntil([&] { return !listener.ready.empty(); });
  const pid_t pid = Pid("10-fake");
  const auto external = Ready();
  ASSERT_TRUE(RunUntil([&] { return ::kill(pid, 0) != 0; }));
  EXPECT_FALSE(Logged("started again"));
  EXPECT_THAT(listener.ready, SizeIs(1));
  EXPECT_FALSE(external->lost.has_value());
  // Another look at the directory leaves it in the place of the file, too.
  Plugin("11-new");
  host().Configure(options);
  ASSERT_TRUE(RunUntil([&] { return listener.ready.size() == 2; }));
  EXPECT_FALSE(external->lost.has_value());
}

TEST_F(PluginProcessTest, DirectoriesAreReadAgainWithAnotherConfiguration) {
  Plugin("07-stays");
  Plugin("08-changes");
  Plugin("09-goes");
  StartUntil([&] { return listener.ready.size() == 3; });
  const pid_t stays = Pid("07-stays");
  const pid_t changes = Pid("08-changes");
  const pid_t goes = Pid("09-goes");
  std::ofstream(options.plugin_config_path + "/changes.conf") << "text";
  std::filesystem::remove(options.plugin_path + "/09-goes");
  Plugin("10-comes");
  host().Configure(options);
  ASSERT_TRUE(RunUntil([&] {
    return ::kill(goes, 0) != 0 && ::kill(changes, 0) != 0 && Pid("10-comes") > 0 &&
           Pid("08-changes") != changes && listener.ready.size() == 3;
  }));
  EXPECT_EQ(Pid("07-stays"), stays);
  EXPECT_EQ(::kill(stays, 0), 0);

  // Plugins of the former directory are ended.
  options.plugin_path = directory.File("elsewhere");
  host().Configure(options);
  ASSERT_TRUE(RunUntil([&] { return listener.ready.empty(); }));
  options.plugin_path = "";
  host().Configure(options);
  EXPECT_FALSE(Logged("started again"));
}

class PluginOutputTest : public test::HostFixture {
 protected:
  PluginOutputTest() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
    ours_.Reset(ends[0]);
    theirs_.Reset(ends[1]);
    ::fcntl(theirs_.get(), F_SETPIPE_SZ, 1 << 20);
  }

  void Print(std::string_view text) const {
    ASSERT_EQ(::write(theirs_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  UniqueFd ours_;
  UniqueFd theirs_;
  const resmgr::test::CapturedLog log_;
};

TEST_F(PluginOutputTest, LinesAreCutAndEscaped) {
  const PluginOutput output(loop, std::move(ours_), "10-x");
  Print("one\n\nt\x1b[2Jwo\n");
  Print(std::string(3000, 'l') + "\nlast");
  theirs_.Reset();
  ASSERT_TRUE(RunUntil([&] { return log_.lines.size() == 4; }));
  EXPECT_THAT(log_.lines[0], HasSubstr("plugin 10-x says: one"));
  EXPECT_THAT(log_.lines[1], HasSubstr("t\\x1b[2Jwo"));
  EXPECT_LT(log_.lines[2].size(), 1200U);
  EXPECT_THAT(log_.lines[3], HasSubstr("says: last"));
}

TEST_F(PluginOutputTest, AFloodWaitsInThePipe) {
  const PluginOutput output(loop, std::move(ours_), "10-x");
  std::string text;
  for (int i = 0; i < 50'000; ++i)
    text += "a line of it\n";
  Print(text);
  const int full = static_cast<int>(text.size());
  int left = full;
  ASSERT_TRUE(RunUntil([&] {
    ::ioctl(theirs_.get(), FIONREAD, &left);
    return left <= full - static_cast<int>(PluginOutput::kMostBytes);
  }));
  resmgr::test::RunFor(loop, milliseconds(20));
  ::ioctl(theirs_.get(), FIONREAD, &left);
  EXPECT_EQ(left, full - static_cast<int>(PluginOutput::kMostBytes));
  EXPECT_THAT(log_.lines, SizeIs(50));
}

}  // namespace
}  // namespace resmgr::nri
