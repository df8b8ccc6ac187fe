// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr/koord_flags.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/cri-resmgr/flags.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StatusOr<KoordCommandLine> Translate(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"/usr/bin/koord-runtime-proxy"};
  for (const std::string& argument : arguments)
    argv.push_back(argument.c_str());
  return TranslateKoordFlags(static_cast<int>(argv.size()), argv.data());
}

// The flags of cri-resmgr that result.
StatusOr<Flags> Parsed(const std::vector<std::string>& arguments) {
  RESMGR_ASSIGN_OR_RETURN(const KoordCommandLine line, Translate(arguments));
  std::vector<const char*> argv;
  for (const std::string& argument : line.arguments)
    argv.push_back(argument.c_str());
  ConfigChecks checks;
  checks.policies = {"null", "static"};
  return ParseFlags(static_cast<int>(argv.size()), argv.data(), checks);
}

TEST(KoordFlagsTest, AreForALinkOfTheirProxysName) {
  EXPECT_TRUE(IsKoordProgram("koord-runtime-proxy"));
  EXPECT_TRUE(IsKoordProgram("/usr/local/bin/koord-runtime-proxy"));
  EXPECT_FALSE(IsKoordProgram("/usr/bin/cri-resmgr"));
  EXPECT_FALSE(IsKoordProgram("/koord-runtime-proxy/cri-resmgr"));
}

TEST(KoordFlagsTest, WithoutFlagsTheirDefaultsCount) {
  const auto flags = Parsed({});
  ASSERT_EQ(flags.status(), OkStatus());
  EXPECT_EQ(flags->relay_socket, "/var/run/koord-runtimeproxy/runtimeproxy.sock");
  EXPECT_EQ(flags->runtime_socket, "/var/run/containerd/containerd.sock");
  EXPECT_EQ(flags->mode, Mode::kRelay);
  EXPECT_EQ(flags->config.policy.active, "null");
  EXPECT_EQ(flags->config.hooks.directory, "/etc/runtime/hookserver.d");
  EXPECT_EQ(flags->config.hooks.skip_key, "runtimeproxy.koordinator.sh/skip-hookserver");
  EXPECT_THAT(Translate({})->warnings, IsEmpty());
}

// The command line of Koordinator's installation page.
TEST(KoordFlagsTest, TakesADocumentedCommandLine) {
  const std::vector<std::string> documented = {
      "--remote-runtime-service-endpoint=/run/containerd/containerd.sock",
      "--remote-image-service-endpoint=/run/containerd/images.sock"};
  const auto flags = Parsed(documented);
  ASSERT_EQ(flags.status(), OkStatus());
  EXPECT_EQ(flags->runtime_socket, "/run/containerd/containerd.sock");
  EXPECT_EQ(flags->ImageSocket(), "/run/containerd/images.sock");
  EXPECT_THAT(Translate(documented)->warnings, IsEmpty());
}

TEST(KoordFlagsTest, TakesEveryFlagInEveryForm) {
  const auto flags =
      Parsed({"-koord-runtimeproxy-endpoint", "unix:///run/p.sock", "--backend-runtime-mode",
              "Containerd", "--runtime-hook-server-key=example.com/skip",
              "--runtime-hook-server-val", "yes", "-admin-socket", "/run/admin.sock"});
  ASSERT_EQ(flags.status(), OkStatus());
  EXPECT_EQ(flags->relay_socket, "/run/p.sock");
  EXPECT_EQ(flags->config.hooks.skip_key, "example.com/skip");
  EXPECT_EQ(flags->config.hooks.skip_value, "yes");
  EXPECT_EQ(flags->admin_socket, "/run/admin.sock");
}

TEST(KoordFlagsTest, FlagsWithoutAMeaningAreWarnings) {
  const auto line = Translate({"-v=4", "--logtostderr", "--log_dir", "/var/log", "--vmodule", "a=1",
                               "--one_output=false", "-v", "2"});
  ASSERT_EQ(line.status(), OkStatus());
  EXPECT_THAT(
      line->warnings,
      ElementsAre(HasSubstr("-v of koord-runtime-proxy has no effect: use -logger-level"),
                  HasSubstr("-logtostderr"), HasSubstr("-log-dir"), HasSubstr("-logger-debug"),
                  HasSubstr("-logger-format"), HasSubstr("-v")));
  EXPECT_EQ(Parsed({"-v=4", "--logtostderr"}).status(), OkStatus());
}

TEST(KoordFlagsTest, DockersSocketIsTheRuntimesInDockerMode) {
  const auto line =
      Translate({"--remote-runtime-service-endpoint=/run/d.sock", "--backend-runtime-mode=Docker"});
  ASSERT_EQ(line.status(), OkStatus());
  const std::vector<std::string>& arguments = line->arguments;
  EXPECT_THAT(arguments, testing::IsSupersetOf({"-docker-socket", "/run/d.sock", "docker"}));
  EXPECT_THAT(arguments, testing::Not(testing::Contains("-runtime-socket")));
  const auto flags = Parsed({"--backend-runtime-mode=Docker"});
  ASSERT_EQ(flags.status(), OkStatus());
  EXPECT_EQ(flags->mode, Mode::kDocker);
  EXPECT_EQ(flags->config.policy.active, "null");
  EXPECT_EQ(flags->config.hooks.directory, "/etc/runtime/hookserver.d");
}

TEST(KoordFlagsTest, HelpListsTheFlagsOfThisName) {
  for (const char* const flag : {"-help", "--help", "-h"}) {
    const auto line = Translate({"--v=4", flag});
    ASSERT_EQ(line.status(), OkStatus());
    EXPECT_THAT(line->help, testing::StartsWith("Usage: koord-runtime-proxy [FLAG...]"));
    for (const char* const part :
         {"-koord-runtimeproxy-endpoint", "-remote-runtime-service-endpoint", "-log-file-max-size",
          "-backend-runtime-mode", "see `cri-resmgr -help`"})
      EXPECT_THAT(line->help, HasSubstr(part));
    EXPECT_THAT(line->help, testing::Not(HasSubstr("-pods-cgroup")));
  }
  EXPECT_EQ(Translate({"-v=4"})->help, "");
  EXPECT_EQ(Translate({"-help=music"}).status().code(), StatusCode::kInvalidArgument);
}

TEST(KoordFlagsTest, MistakesAreOneLine) {
  EXPECT_THAT(Message(Translate({"--backend-runtime-mode=docker"}).status()),
              HasSubstr("-backend-runtime-mode: \"docker\" is not one of Containerd, Docker"));
  EXPECT_THAT(Message(Translate({"--koord-runtimeproxy-endpoint"}).status()),
              HasSubstr("-koord-runtimeproxy-endpoint: needs a value"));
  EXPECT_EQ(Parsed({"--unknown"}).status().code(), StatusCode::kInvalidArgument);
}

// With -config, cri-resmgr's configuration file sets policy and hook directory instead.
TEST(KoordFlagsTest, AConfigurationFileSaysPolicyAndHookDirectory) {
  const auto line = Translate({"-config", "/etc/cri-resmgr.yaml"});
  ASSERT_EQ(line.status(), OkStatus());
  EXPECT_THAT(line->arguments, testing::Not(testing::Contains("-policy")));
  EXPECT_THAT(line->arguments, testing::Not(testing::Contains("-hook-dir")));
}

}  // namespace
}  // namespace resmgr
