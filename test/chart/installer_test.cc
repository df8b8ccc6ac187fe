// SPDX-License-Identifier: Apache-2.0
// The units that images/install-on-node writes for the host's systemd. scripts/test-images runs it
// against a real one.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// The output of both streams of commands of bash that use the installer's functions.
std::string WithInstaller(const std::string& commands) {
  const std::string script = fmt::format(
      "source {0}/images/install-on-node\n"
      "release=/opt/R loader=ld.so package_units={0}/sample-configs/systemd\n{1}",
      RESMGR_SOURCE_DIR, commands);
  std::string quoted = "'";
  for (const char c : script)
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  FILE* const pipe = popen(fmt::format("bash -c {}' 2>&1", quoted).c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::string text;
  char buffer[4096];
  while (const size_t size = fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, size);
  pclose(pipe);
  return text;
}

// The command line of the service with this flag, given as a word of bash.
std::string CommandWith(const std::string& flag) {
  return WithInstaller(fmt::format("unit cri-resmgr.service {} | grep ^ExecStart=", flag));
}

TEST(InstallerTest, TheServiceRunsTheReleaseWithItsFlags) {
  EXPECT_EQ(CommandWith("-runtime-socket=/run/c.sock -logger-level=info"),
            "ExecStart=/opt/R/lib/ld.so --library-path /opt/R/lib /opt/R/libexec/cri-resmgr "
            "-runtime-socket=/run/c.sock -logger-level=info\n");
  const std::string unit = WithInstaller("unit cri-resmgr.service");
  EXPECT_THAT(unit, HasSubstr("\nSyslogIdentifier=cri-resmgr\n"));
  EXPECT_THAT(unit, Not(HasSubstr("EnvironmentFile=")));
  EXPECT_THAT(unit, EndsWith("WantedBy=multi-user.target\n"));
}

// systemd.service(5), "Command lines": each word reaches the program as it was given.
TEST(InstallerTest, FlagsKeepTheirCharacters) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"'-dump=reset,full:(Create|Run).*'", "-dump=reset,full:(Create|Run).*"},
      {"'-topology=synthetic:package:2 numa:2'", "\"-topology=synthetic:package:2 numa:2\""},
      {"-hook-skip-value=a\\&b", "-hook-skip-value=a&b"},
      {"-hook-skip-value=100%", "-hook-skip-value=100%%"},
      {"'-hook-skip-value=$HOME'", "-hook-skip-value=$$HOME"},
      {"'-hook-skip-value=a\\tb'", "\"-hook-skip-value=a\\\\tb\""},
      {"'-hook-skip-value=\"a\"'", "\"-hook-skip-value=\\\"a\\\"\""},
      {"\"-hook-skip-value=it's\"", "\"-hook-skip-value=it's\""},
      {"''", "\"\""},
  };
  for (const auto& [flag, word] : cases)
    EXPECT_THAT(CommandWith(flag), EndsWith("/opt/R/libexec/cri-resmgr " + word + "\n"));
}

// A host whose systemd starts what the unit in force names, and where only good versions
// answer. Each command is a run of the installer.
class InstallationTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/installer-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Run(const std::string& commands) const {
    return WithInstaller(fmt::format("directory={}\n", directory_) + R"sh(
home=$directory/home unit_directory=$directory/units patience=1
mkdir -p "$home/releases" "$unit_directory"
good() { : >"$directory/good-$1"; }
running() { cat "$directory/running"; }
make_release() {
  release=$home/releases/$version loader=ld.so
  mkdir -p "$release/bin"
  printf '#!/bin/sh\n' >"$release/bin/cri-resmgr"
  chmod +x "$release/bin/cri-resmgr"
}
systemctl() {
  case "$*" in
    *"restart"*" cri-resmgr.service")
      sed -n 's|^ExecStart=.*/releases/\([^/]*\)/lib/ld.so .*|\1|p' "$unit_directory/cri-resmgr.service" >"$directory/running" ;;
  esac
}
timeout() { shift; "$@"; }
sleep() { command sleep 0.01; }
answers() { [ -e "$directory/good-$(running)" ]; }
try() { version=$1; shift; install_release "$@"; }
)sh" + commands);
  }

  std::string directory_;
};

TEST_F(InstallationTest, ANewVersionIsTakenAndABrokenOneIsNot) {
  EXPECT_THAT(Run("good 1; try 1 -a=b"), HasSubstr("/1 is in force"));
  EXPECT_THAT(Run("try 1 -a=b"), HasSubstr("/1 runs already"));
  EXPECT_THAT(Run("good 2; try 2 -a=b"), HasSubstr("/2 is in force"));
  EXPECT_THAT(Run("try 3 -a=b"), HasSubstr("/2 is in force again"));
  EXPECT_EQ(Run("running"), "2\n");
  EXPECT_THAT(Run("try 3 -a=b"), HasSubstr("is not tried again"));
}

// The daemon that answers is still the former one then.
TEST_F(InstallationTest, AnAttemptThatWasCutOffBeforeTheStartIsCompleted) {
  Run("good 1; try 1 -a=b");
  Run("start() { kill -9 $$; }; good 2; try 2 -a=b");
  EXPECT_EQ(Run("running"), "1\n");
  EXPECT_THAT(Run("try 2 -a=b"), HasSubstr("/2 is in force"));
  EXPECT_EQ(Run("running"), "2\n");
  EXPECT_THAT(Run("try 2 -a=b"), HasSubstr("/2 runs already"));
}

TEST_F(InstallationTest, AfterAnAttemptThatWasCutOffTheLastGoodVersionIsPutBack) {
  Run("good 1; try 1 -a=b");
  const std::string killed = "until_it_answers() { kill -9 $$; }; try 2 -a=b";
  Run(killed);
  EXPECT_THAT(Run("try 2 -a=b"), HasSubstr("/1 is in force again"));
  EXPECT_EQ(Run("running"), "1\n");
  Run("rm $home/failed; " + killed);
  EXPECT_THAT(Run("try 3 -a=b"), HasSubstr("/1 is in force again"));
  EXPECT_EQ(Run("running"), "1\n");
}

// The note that it failed is written first.
TEST_F(InstallationTest, APuttingBackThatWasCutOffIsCompleted) {
  Run("good 1; try 1 -a=b");
  Run("restore_former() { kill -9 $$; }; try 2 -a=b");
  EXPECT_EQ(Run("running"), "2\n");
  EXPECT_THAT(Run("try 2 -a=b"), HasSubstr("is not tried again"));
  EXPECT_EQ(Run("running"), "1\n");
  EXPECT_THAT(Run("try 1 -a=b"), HasSubstr("/1 runs already"));
}

// While systemd starts the new version. The kubelet gives the pod a few seconds then.
TEST_F(InstallationTest, ToldToEndItPutsTheFormerVersionBack) {
  Run("good 1; try 1 -a=b");
  const auto begin = std::chrono::steady_clock::now();
  Run("timeout() { shift; \"$@\"; kill $$; exec sleep 60 >/dev/null 2>&1; }; try 2 -a=b");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(Run("running"), "1\n");
  EXPECT_THAT(Run("try 1 -a=b"), HasSubstr("/1 runs already"));
  // It is not a failure of that version.
  EXPECT_THAT(Run("good 2; try 2 -a=b"), HasSubstr("/2 is in force"));
}

}  // namespace
}  // namespace resmgr::test
