// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_finder.h"

#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/captured_log.h"
#include "test/support/wait.h"

namespace resmgr::nri {
namespace {

using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class PluginFinderTest : public testing::Test {
 protected:
  ~PluginFinderTest() override {
    finder_.reset();
    hang_.set_value();
  }

  void Make() {
    finder_.emplace(
        loop_,
        PluginFinder::Options{.deadline = deadline_,
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

  const resmgr::test::CapturedLog log_;
  EventLoop loop_;
  PluginNames names_;
  // Longer than a read takes on a busy machine.
  milliseconds deadline_{60'000};
  std::promise<void> hang_;
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
  EXPECT_THAT(log_.Text(),
              HasSubstr("plugin /plugins/15-bad is not started: /conf/bad.conf is bad"));
}

TEST_F(PluginFinderTest, AFileThatHangsKeepsAwayItsPluginAlone) {
  names_.files = {"10-hangs", "20-b"};
  deadline_ = milliseconds(1'000);
  Make();
  finder_->Look("/plugins", "/conf");
  ASSERT_TRUE(RunUntil(loop_, [&] { return !told_.empty(); }));
  EXPECT_THAT(Names(told_[0]), ElementsAre("b"));
  EXPECT_THAT(told_[0].late, ElementsAre("/plugins/10-hangs"));
  EXPECT_THAT(log_.Text(),
              HasSubstr("plugin /plugins/10-hangs is not started: the disk of it or of its "
                        "configuration in /conf does not answer"));
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

class PluginDirectoryTest : public testing::Test {
 protected:
  PluginDirectoryTest() {
    std::filesystem::create_directory(plugins_);
    std::filesystem::create_directory(configs_);
  }
  static void Write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  void Plugin(const std::string& name, std::string_view text = "#!/bin/true\n") {
    Write(plugins_ + "/" + name, text);
    std::filesystem::permissions(plugins_ + "/" + name, std::filesystem::perms::owner_all);
  }
  // All plugins as "10-a: its configuration".
  std::vector<std::string> Read() {
    PluginNames names = ListPluginFiles(plugins_);
    warnings_ = names.warnings;
    found_.clear();
    std::vector<std::string> texts;
    for (const std::string& file : names.files) {
      StatusOr<PluginFile> plugin = ReadPluginFile(plugins_, file, configs_);
      if (!plugin.ok()) {
        warnings_.push_back(fmt::format("{}: {}", file, Message(plugin.status())));
        continue;
      }
      texts.push_back(plugin->index + "-" + plugin->name + ": " + plugin->config);
      found_.push_back(*std::move(plugin));
    }
    return texts;
  }

  TempDir directory_;
  const std::string plugins_ = directory_.File("plugins");
  const std::string configs_ = directory_.File("conf.d");
  std::vector<PluginFile> found_;
  std::vector<std::string> warnings_;
};

TEST_F(PluginDirectoryTest, PluginsAreInOrderAndHaveTheirConfigurations) {
  Plugin("20-b");
  Plugin("10-b");
  Plugin("10-c-d");
  Write(configs_ + "/b.conf", "of all b");
  Write(configs_ + "/20-b.conf", "of 20-b");
  Write(plugins_ + "/15-text", "not executable");
  Write(plugins_ + "/README", "not called like a plugin");
  std::filesystem::create_directory(plugins_ + "/16-directory");
  std::filesystem::create_symlink(plugins_ + "/20-b", plugins_ + "/30-link");
  EXPECT_THAT(Read(), ElementsAre("10-b: of all b", "10-c-d: ", "20-b: of 20-b", "30-link: "));
  EXPECT_EQ(found_[0].path, plugins_ + "/10-b");
  EXPECT_THAT(warnings_, ElementsAre(fmt::format(
                             "plugin {}/15-text is not started: it is not executable", plugins_)));
}

TEST_F(PluginDirectoryTest, WhatCannotBeAPluginCostsTheOthersNothing) {
  Plugin("10-good");
  Plugin("nameless");
  Plugin("1-a");
  Plugin("10-");
  Plugin("20-wasm", std::string_view("\0asm\1\0\0\0more", 12));
  Plugin("30-config");
  std::filesystem::create_directory(configs_ + "/30-config.conf");
  EXPECT_THAT(Read(), ElementsAre("10-good: "));
  EXPECT_THAT(warnings_, SizeIs(5));
  EXPECT_THAT(warnings_, testing::Contains(HasSubstr("WebAssembly")));
  EXPECT_THAT(warnings_, testing::Contains(HasSubstr("its file is not called NN-name")).Times(3));
}

// Reading a FIFO would hang, and a device might have no end.
TEST_F(PluginDirectoryTest, AConfigurationThatIsNoFileCostsTheOthersNothing) {
  for (const char* name : {"10-fifo", "20-socket", "30-endless", "40-long", "50-good"})
    Plugin(name);
  ASSERT_EQ(::mkfifo((configs_ + "/10-fifo.conf").c_str(), 0600), 0);
  ASSERT_EQ(::mknod((configs_ + "/20-socket.conf").c_str(), S_IFSOCK | 0600, 0), 0);
  std::filesystem::create_symlink("/dev/zero", configs_ + "/30-endless.conf");
  Write(configs_ + "/40-long.conf", "");
  std::filesystem::resize_file(configs_ + "/40-long.conf", uintmax_t{8} << 30);
  ASSERT_EQ(::mkfifo((plugins_ + "/60-fifo").c_str(), 0700), 0);
  EXPECT_THAT(Read(), ElementsAre("50-good: "));
  ASSERT_THAT(warnings_, SizeIs(4));
  EXPECT_EQ(warnings_[0], fmt::format("10-fifo: {}/10-fifo.conf is not a regular file", configs_));
}

TEST_F(PluginDirectoryTest, ThereMayBeNone) {
  const PluginNames found = ListPluginFiles(directory_.File("none"));
  EXPECT_THAT(found.files, IsEmpty());
  EXPECT_THAT(found.warnings, IsEmpty());
}

TEST_F(PluginDirectoryTest, WithoutADirectoryOfConfigurationsThereAreNone) {
  Plugin("10-a");
  const StatusOr<PluginFile> found = ReadPluginFile(plugins_, "10-a", "");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->config, "");
}

TEST_F(PluginDirectoryTest, PluginsAreBounded) {
  for (size_t i = 0; i < kMostPluginFiles + 3; ++i)
    Plugin("10-n" + std::to_string(i));
  EXPECT_THAT(Read(), SizeIs(kMostPluginFiles));
  EXPECT_THAT(warnings_, SizeIs(1));
}

}  // namespace
}  // namespace resmgr::nri
