// SPDX-License-Identifier: Apache-2.0
// scripts/build-arm64 says what it fetches, builds and runs.
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

}  // namespace
}  // namespace resmgr
