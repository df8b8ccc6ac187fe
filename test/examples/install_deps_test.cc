// SPDX-License-Identifier: Apache-2.0
// scripts/install-deps prints the packages and their size before it installs them; tested as on a
// machine without them, with stand-ins of dpkg-query and apt-get.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace resmgr {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;

class InstallDepsTest : public testing::Test {
 protected:
  InstallDepsTest() {
    fs::create_directories(folder_);
    Program("dpkg-query", "exit 1");
    Program("sudo", "exec \"$@\"");
    // The words of a simulation are those of apt-get.
    Program("apt-get", R"(case "$*" in
*--assume-no*)
  echo "0 upgraded, 123 newly installed, 0 to remove and 0 not upgraded."
  echo "Need to get 45.6 MB of archives."
  echo "After this operation, 789 MB of additional disk space will be used."
  exit 1 ;;
*) echo "apt-get $*" ;;
esac)");
  }
  ~InstallDepsTest() override { fs::remove_all(folder_); }

  std::string Run(std::string_view options) {
    const fs::path output = folder_ / "output";
    const std::string command =
        fmt::format("PATH={}:/usr/bin:/bin {}/scripts/install-deps {} >{} 2>&1", folder_.string(),
                    RESMGR_SOURCE_DIR, options, output.string());
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream text(output);
    return {std::istreambuf_iterator<char>(text), {}};
  }

 private:
  void Program(std::string_view name, std::string_view body) {
    const fs::path file = folder_ / name;
    std::ofstream(file) << "#!/bin/bash\n" << body << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / fmt::format("install-deps-{}", getpid());
};

TEST_F(InstallDepsTest, SaysHowMuchItInstallsBeforeItDoes) {
  const std::string said = Run("");
  const size_t size = said.find("789 MB on the disk");
  ASSERT_NE(size, std::string::npos) << said;
  EXPECT_THAT(said, HasSubstr("123 packages with all that they need"));
  EXPECT_THAT(said, HasSubstr("45.6 MB to fetch"));
  const size_t installed = said.find("apt-get install");
  ASSERT_NE(installed, std::string::npos) << said;
  EXPECT_LT(said.find("Installing: "), size);
  EXPECT_LT(size, installed);
}

TEST_F(InstallDepsTest, ADryRunInstallsNothing) {
  const std::string said = Run("--dry-run");
  EXPECT_THAT(said, HasSubstr("789 MB on the disk"));
  EXPECT_THAT(said, Not(HasSubstr("apt-get install")));
}

TEST_F(InstallDepsTest, PackagesOfTestsAreInstalledOnlyForTests) {
  for (const char* const package : {"clang", "shellcheck", "docker.io", "lld"}) {
    // Where the machine has a dockerd, Debian's is not asked for.
    if (std::string_view(package) == "docker.io" && fs::exists("/usr/bin/dockerd")) continue;
    const std::string word = fmt::format(" {} ", package);
    EXPECT_THAT(Run("--dry-run"), Not(HasSubstr(word)));
    EXPECT_THAT(Run("--tests --dry-run") + " ",
                testing::AnyOf(HasSubstr(word), HasSubstr(word.substr(0, word.size() - 1) + "\n")));
  }
}

}  // namespace
}  // namespace resmgr
