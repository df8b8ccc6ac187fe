// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// scripts/build-arm64 says what it fetches, builds and runs.
class BuildArm64Test : public testing::Test {
 protected:
  ~BuildArm64Test() override { fs::remove_all(cache_); }

  // The output; its exit status is in exit_code_.
  std::string Run(std::string_view words) {
    const std::string output = testing::TempDir() + fmt::format("build-arm64-out-{}", getpid());
    const int status =
        std::system(fmt::format("XDG_CACHE_HOME={} {}/scripts/build-arm64 {} >{} 2>&1",
                                cache_.string(), RESMGR_SOURCE_DIR, words, output)
                        .c_str());
    exit_code_ = WEXITSTATUS(status);
    std::ifstream text(output);
    std::string said{std::istreambuf_iterator<char>(text), {}};
    fs::remove(output);
    return said;
  }
  void Write(const fs::path& file) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "x\n";
    fs::permissions(file, fs::perms::owner_all);
  }

  const fs::path cache_ = fs::path(testing::TempDir()) / fmt::format("build-arm64-{}", getpid());
  int exit_code_ = -1;
};

TEST_F(BuildArm64Test, ADryRunSaysWhatIsFetchedAndBuiltAndDoesNothing) {
  const std::string said = Run("--dry-run");
  EXPECT_EQ(exit_code_, 0);
  for (const char* const part :
       {"qemu-user-static", " libgrpc++-dev ", " zlib1g-dev ", " libstdc++-12-dev",
        "cri-resmgr cri-resmgr-ctl "
        "cri-resmgr-agent cri-resmgr-webhook\n"})
    EXPECT_THAT(said, HasSubstr(part));
  EXPECT_THAT(said, Not(HasSubstr("packages in")));
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(BuildArm64Test, ChosenTargetsAreBuiltAndTestsAreRun) {
  Write(cache_ / "cri-resmgr/arm64/root/var/lib/dpkg/info/format");
  Write(cache_ / "cri-resmgr/arm64/qemu/usr/bin/qemu-aarch64-static");
  const std::string said = Run("--dry-run --packages base_test cri-resmgr-ctl");
  EXPECT_EQ(exit_code_, 0);
  EXPECT_THAT(said, HasSubstr("nothing to fetch"));
  EXPECT_THAT(said, HasSubstr(": base_test cri-resmgr-ctl\n"));
  EXPECT_THAT(said, HasSubstr("run under QEMU: base_test\n"));
  EXPECT_THAT(said, Not(HasSubstr("QEMU: cri-resmgr-ctl")));
  EXPECT_THAT(said, HasSubstr("packages in build/packages-arm64"));
}

TEST_F(BuildArm64Test, AnUnknownFlagIsRefused) {
  EXPECT_THAT(Run("--dry-runn"), HasSubstr("--dry-runn is not understood"));
  EXPECT_EQ(exit_code_, 1);
}

// scripts/install-deps prints the packages and their size before it installs them; tested as on a
// machine without them, with stand-ins of dpkg-query and apt-get.
class InstallDepsTest : public testing::Test {
 protected:
  InstallDepsTest() {
    fs::create_directories(folder_);
    Program("dpkg-query", "exit 1");
    Program("sudo", "exec \"$@\"");
    // Prints apt-get's summary in a simulation.
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
  const std::string usual = Run("--dry-run");
  const std::string with_tests = Run("--tests --dry-run") + " ";
  for (const char* const package : {"clang", "shellcheck", "docker.io", "lld"}) {
    // If the machine has a dockerd, docker.io is not installed.
    if (std::string_view(package) == "docker.io" && fs::exists("/usr/bin/dockerd")) continue;
    const std::string word = fmt::format(" {} ", package);
    EXPECT_THAT(usual, Not(HasSubstr(word)));
    EXPECT_THAT(with_tests,
                testing::AnyOf(HasSubstr(word), HasSubstr(word.substr(0, word.size() - 1) + "\n")));
  }
}

}  // namespace
}  // namespace resmgr
