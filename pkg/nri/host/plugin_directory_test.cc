// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/plugin_directory.h"

#include <filesystem>
#include <fstream>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr::nri {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

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
  // "10-a: its configuration"
  std::vector<std::string> Read() {
    found_ = ReadPluginDirectory(plugins_, configs_);
    std::vector<std::string> texts;
    for (const PluginFile& plugin : found_.plugins)
      texts.push_back(plugin.index + "-" + plugin.name + ": " + plugin.config);
    return texts;
  }

  TempDir directory_;
  const std::string plugins_ = directory_.File("plugins");
  const std::string configs_ = directory_.File("conf.d");
  PluginDirectory found_;
};

TEST_F(PluginDirectoryTest, PluginsAreInOrderAndHaveTheirConfigurations) {
  Plugin("20-b");
  Plugin("10-b");
  Plugin("10-c-d");
  Write(configs_ + "/b.conf", "of all b");
  Write(configs_ + "/20-b.conf", "of 20-b");
  Write(plugins_ + "/15-text", "not executable");
  std::filesystem::create_directory(plugins_ + "/16-directory");
  std::filesystem::create_symlink(plugins_ + "/20-b", plugins_ + "/30-link");
  EXPECT_THAT(Read(), ElementsAre("10-b: of all b", "10-c-d: ", "20-b: of 20-b", "30-link: "));
  EXPECT_EQ(found_.plugins[0].path, plugins_ + "/10-b");
  EXPECT_THAT(found_.warnings, IsEmpty());
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
  EXPECT_THAT(found_.warnings, SizeIs(5));
  EXPECT_THAT(found_.warnings, testing::Contains(HasSubstr("WebAssembly")));
}

TEST_F(PluginDirectoryTest, ThereMayBeNone) {
  const PluginDirectory found = ReadPluginDirectory(directory_.File("none"), configs_);
  EXPECT_THAT(found.plugins, IsEmpty());
  EXPECT_THAT(found.warnings, IsEmpty());
}

TEST_F(PluginDirectoryTest, WithoutADirectoryOfConfigurationsThereAreNone) {
  Plugin("10-a");
  const PluginDirectory found = ReadPluginDirectory(plugins_, "");
  ASSERT_THAT(found.plugins, SizeIs(1));
  EXPECT_EQ(found.plugins[0].config, "");
}

TEST_F(PluginDirectoryTest, PluginsAreBounded) {
  for (size_t i = 0; i < kMostPluginFiles + 3; ++i)
    Plugin("10-n" + std::to_string(i));
  EXPECT_THAT(Read(), SizeIs(kMostPluginFiles));
  EXPECT_THAT(found_.warnings, SizeIs(1));
}

}  // namespace
}  // namespace resmgr::nri
