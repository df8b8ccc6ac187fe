// SPDX-License-Identifier: Apache-2.0
// The units that images/install-on-node writes for the host's systemd. scripts/test-images runs it
// against a real one.
#include <cstdio>
#include <string>
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

}  // namespace
}  // namespace resmgr::test
