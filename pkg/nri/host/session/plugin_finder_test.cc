// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_finder.h"

#include <algorithm>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/log/log.h"
#include "test/support/wait.h"

namespace resmgr::nri {
namespace {

using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class PluginFinderTest : public testing::Test {
 protected:
  PluginFinderTest() {
    SetLogWriter([this](std::string_view line) { log_.append(line); });
  }
  ~PluginFinderTest() override {
    finder_.reset();
    hang_.set_value();
    SetLogWriter(nullptr);
  }

  void Make() {
    finder_.emplace(
        loop_,
        PluginFinder::Options{.deadline = milliseconds(50),
                              .list = [names = names_](const std::string&) { return names; },
                              .read = [hang = hang_.get_future().share()](
                                          const std::string& path, const std::string& file,
                                          const std::string& configs) -> StatusOr<PluginFile> {
                                if (file == "10-hangs") hang.wait();
                                if (file == "15-bad")
                                  return InvalidArgument("{}/bad.conf is bad", configs);
                                return PluginFile{.path = path + "/" + file,
                                                  .index = file.substr(0, 2),
                                                  .name = file.substr(3),
                                                  .config = ""};
                              }},
        [this](const PluginFinder::Found& found) { told_.push_back(found); });
  }
  static std::vector<std::string> Names(const PluginFinder::Found& found) {
    std::vector<std::string> names;
    for (const PluginFile& plugin : found.plugins)
      names.push_back(plugin.name);
    return names;
  }
  bool Logged(std::string_view text) const { return log_.find(text) != std::string::npos; }

  EventLoop loop_;
  PluginNames names_;
  std::promise<void> hang_;
  std::string log_;
  std::vector<PluginFinder::Found> told_;
  std::optional<PluginFinder> finder_;
};

TEST_F(PluginFinderTest, TellsAllOnceTheyAreRead) {
  names_.files = {"10-a", "15-bad", "20-b"};
  Make();
  finder_->Look("/plugins", "/conf");
  ASSERT_TRUE(RunUntil(loop_, [&] { return !told_.empty(); }));
  EXPECT_THAT(Names(told_[0]), ElementsAre("a", "b"));
  EXPECT_THAT(told_[0].late, IsEmpty());
  EXPECT_TRUE(Logged("plugin /plugins/15-bad is not started: /conf/bad.conf is bad")) << log_;
}

TEST_F(PluginFinderTest, AFileThatHangsKeepsAwayItsPluginAlone) {
  names_.files = {"10-hangs", "20-b"};
  Make();
  finder_->Look("/plugins", "/conf");
  ASSERT_TRUE(RunUntil(loop_, [&] { return !told_.empty(); }));
  EXPECT_THAT(Names(told_[0]), ElementsAre("b"));
  EXPECT_THAT(told_[0].late, ElementsAre("/plugins/10-hangs"));
  EXPECT_TRUE(
      Logged("plugin /plugins/10-hangs is not started: the disk of it or of its "
             "configuration in /conf does not answer"))
      << log_;
  // Another look does not start a second thread for it.
  finder_->Look("/plugins", "/conf");
  ASSERT_TRUE(RunUntil(loop_, [&] { return told_.size() == 2; }));
  EXPECT_THAT(told_[1].late, ElementsAre("/plugins/10-hangs"));
  hang_.set_value();
  ASSERT_TRUE(RunUntil(loop_, [&] { return told_.size() == 3; }));
  hang_ = std::promise<void>();
  EXPECT_THAT(Names(told_[2]), ElementsAre("hangs", "b"));
  EXPECT_THAT(told_[2].late, IsEmpty());
}

TEST_F(PluginFinderTest, WithoutADirectoryThereAreNone) {
  Make();
  finder_->Look("", "/conf");
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_THAT(told_[0].plugins, IsEmpty());
}

}  // namespace
}  // namespace resmgr::nri
