// SPDX-License-Identifier: Apache-2.0
// docs/how-to-add-a-stage.md shows the files that are built here, as they are.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

std::string FileText(const std::string& path) {
  const std::ifstream stream(std::filesystem::path(RESMGR_SOURCE_DIR) / path);
  EXPECT_TRUE(stream.is_open()) << path;
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(HowToAddAStageTest, ShowsTheFilesThatAreBuilt) {
  const std::string page = FileText("docs/how-to-add-a-stage.md");
  for (const char* file : {"annotation_env_stage.h", "annotation_env_stage.cc"}) {
    const std::string text = FileText(std::string("test/integration/stages/") + file);
    EXPECT_THAT(page, testing::HasSubstr("```cpp\n" + text + "```\n")) << file;
  }
}

}  // namespace
}  // namespace resmgr
