// SPDX-License-Identifier: Apache-2.0
// Each script explains itself with --help, and does nothing else then: some of them install
// packages or work for an hour.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr size_t kMostBytes = size_t{1} << 20;

std::vector<std::filesystem::path> Scripts() {
  std::vector<std::filesystem::path> scripts;
  for (const auto& entry : std::filesystem::directory_iterator(RESMGR_SOURCE_DIR "/scripts")) {
    const auto executable = std::filesystem::perms::owner_exec;
    if (entry.is_regular_file() &&
        (entry.status().permissions() & executable) != std::filesystem::perms::none) {
      scripts.push_back(entry.path());
    }
  }
  return scripts;
}

TEST(ScriptsHelpTest, EachScriptPrintsItsHead) {
  const TempDir directory;
  const std::string printed = directory.File("printed");
  EXPECT_THAT(Scripts(), Not(SizeIs(0)));
  for (const auto& script : Scripts()) {
    SCOPED_TRACE(script.filename());
    const std::string text = ReadFile(script.string(), kMostBytes).value();
    // Read first: a script without this line would start its work when it is asked for help.
    const std::string first_commands =
        "\nset -euo pipefail\n# shellcheck source=scripts/help.bash\nsource \"$(dirname "
        "\"$0\")/help.bash\"\n";
    const size_t commands = text.find(first_commands);
    ASSERT_NE(commands, std::string::npos);
    for (const char* option : {"--help", "-h"}) {
      const std::string command = script.string() + " " + option + " >" + printed;
      EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 0);
      const std::string help = ReadFile(printed, kMostBytes).value();
      EXPECT_THAT(help, Not(HasSubstr("SPDX")));
      const std::string first_line = help.substr(0, help.find('\n'));
      EXPECT_THAT(text.substr(0, commands), HasSubstr("Apache-2.0\n# " + first_line + "\n"));
    }
  }
}

TEST(ScriptsHelpTest, ScriptsWithoutArgumentsRefuseThem) {
  const TempDir directory;
  const std::string printed = directory.File("printed");
  for (const auto& script : Scripts()) {
    if (ReadFile(script.string(), kMostBytes)->find("\nrefuse_arguments \"$@\"\n") ==
        std::string::npos) {
      continue;
    }
    SCOPED_TRACE(script.filename());
    const std::string command = script.string() + " --mistyped 2>" + printed;
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
    EXPECT_THAT(ReadFile(printed, kMostBytes).value(),
                HasSubstr("unexpected argument '--mistyped'"));
  }
}

}  // namespace
}  // namespace resmgr
