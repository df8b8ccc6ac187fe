// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr/flags.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "pkg/config/config.h"
#include "pkg/config/config_file.h"
#include "pkg/config/config_key.h"
#include "pkg/config/print_config.h"
#include "pkg/hooks/hook_file.h"
#include "pkg/node/policy_setup.h"
#include "policies/builtin_policies.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using resmgr::test::Must;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

ConfigChecks Checks() {
  ConfigChecks checks;
  checks.policies = {"null", "static"};
  return checks;
}

StatusOr<Flags> Parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"cri-resmgr"};
  for (const std::string& argument : arguments)
    argv.push_back(argument.c_str());
  return ParseFlags(static_cast<int>(argv.size()), argv.data(), Checks());
}

std::string Error(const std::vector<std::string>& arguments) {
  const Status status = Parse(arguments).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  std::string message(Message(status));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

class FlagsFileTest : public ::testing::Test {
 protected:
  FlagsFileTest() {
    const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) /
            fmt::format("flags_{}_{}", test.name(), ::getpid());
  }
  ~FlagsFileTest() override { std::filesystem::remove(path_); }

  std::string Write(std::string_view text) {
    std::ofstream(path_) << text;
    return path_.string();
  }

  std::filesystem::path path_;
};

TEST(FlagsTest, HasTheDocumentedDefaults) {
  const Flags flags = Must(Parse({}));
  EXPECT_EQ(flags.relay_socket, "/var/run/cri-resmgr/cri-resmgr.sock");
  EXPECT_EQ(flags.runtime_socket, "/var/run/containerd/containerd.sock");
  EXPECT_EQ(flags.ImageSocket(), "/var/run/containerd/containerd.sock");
  EXPECT_EQ(flags.relay_dir, "/var/lib/cri-resmgr");
  EXPECT_EQ(flags.config_socket, "/var/run/cri-resmgr/cri-resmgr-config.sock");
  EXPECT_EQ(flags.AgentSocket(), "/var/run/cri-resmgr/cri-resmgr-agent.sock");
  EXPECT_EQ(flags.admin_socket, "/var/run/cri-resmgr/cri-resmgr-admin.sock");
  EXPECT_EQ(flags.PodResourcesSocket(), "/var/lib/kubelet/pod-resources/kubelet.sock");
  EXPECT_EQ(flags.metrics_address, "off");
  EXPECT_EQ(flags.topology, "live");
  EXPECT_FALSE(flags.dump_secrets);
  EXPECT_EQ(flags.config.policy.active, "null");
  EXPECT_EQ(flags.config.policy.start_failure, FailurePolicy::kFail);
  EXPECT_EQ(flags.config.logger.level, "info");
  EXPECT_EQ(flags.help, "");
}

// An options file may have each of them, also where it is read after the start.
TEST(FlagsTest, EachFlagIsOfTheConfigurationOrForTheStart) {
  std::set<std::string> of_configuration;
  const std::vector<ConfigKey> keys = DescribeConfig();
  for (const ConfigLeaf& leaf : LeavesOf(keys))
    of_configuration.insert(leaf.key->flag);
  const Flags flags = Must(Parse({"-help"}));
  const std::set<std::string> no_options = {"config", "force-config", "fallback-config", "help"};
  int for_the_start = 0;
  const std::regex line("\n  -([a-z-]+)");
  for (std::sregex_iterator at(flags.help.begin(), flags.help.end(), line), end; at != end; ++at) {
    const std::string name = (*at)[1];
    if (no_options.contains(name)) continue;
    EXPECT_NE(of_configuration.contains(name), IsStartOption(name)) << name;
    for_the_start += IsStartOption(name) ? 1 : 0;
  }
  EXPECT_EQ(for_the_start, 31);
}

TEST(FlagsTest, TakesTheOriginalsFirstCommandLine) {
  const Flags flags = Must(Parse({"-policy", "null", "-dump", "reset,full:.*", "--dump-file",
                                  "/tmp/cri.dump", "-dump", "off:Version"}));
  EXPECT_EQ(flags.config.policy.active, "null");
  EXPECT_THAT(flags.config.dump.specs, ElementsAre("reset,full:.*", "off:Version"));
  EXPECT_EQ(flags.config.dump.file, "/tmp/cri.dump");
}

TEST(FlagsTest, TakesEveryFlag) {
  const Flags flags = Must(Parse({"-relay-socket=unix:///a",
                                  "-runtime-socket=unix:///b",
                                  "-image-socket=/c",
                                  "-config-socket=/d",
                                  "-agent-socket=/e",
                                  "-admin-socket=/f",
                                  "-pod-resources-socket=unix:///p",
                                  "-relay-dir=/g",
                                  "-metrics-address=127.0.0.1:9",
                                  "-topology=synthetic:numa:2",
                                  "-pods-cgroup=/kubelet.slice",
                                  "-dump-dir=/h",
                                  "-cpu-file-dir=/i",
                                  "-dump-secrets",
                                  "-check-config",
                                  "-print-config",
                                  "-reset-policy",
                                  "-reset-config",
                                  "-policy=static",
                                  "-available-resources=CPU=0-3,6",
                                  "-reserved-resources=CPU=#0",
                                  "-start-failure-policy=ignore",
                                  "-logger-level=error",
                                  "-logger-debug=a,b",
                                  "-logger-source=c",
                                  "-logger-format=json"}));
  EXPECT_EQ(flags.relay_socket, "/a");
  EXPECT_EQ(flags.CpuFileDirectory(), "/i");
  EXPECT_EQ(flags.pods_cgroup, "/kubelet.slice");
  EXPECT_EQ(flags.runtime_socket, "/b");
  EXPECT_EQ(flags.ImageSocket(), "/c");
  EXPECT_EQ(flags.config_socket, "/d");
  EXPECT_EQ(flags.AgentSocket(), "/e");
  EXPECT_EQ(flags.admin_socket, "/f");
  EXPECT_EQ(flags.PodResourcesSocket(), "/p");
  EXPECT_EQ(flags.relay_dir, "/g");
  EXPECT_EQ(flags.metrics_address, "127.0.0.1:9");
  EXPECT_EQ(flags.topology, "synthetic:numa:2");
  EXPECT_TRUE(flags.dump_secrets && flags.check_config && flags.print_config &&
              flags.reset_policy && flags.reset_config);
  EXPECT_EQ(flags.config.policy.active, "static");
  EXPECT_EQ(flags.config.policy.available_cpus->cpus.ToString(), "0-3,6");
  EXPECT_EQ(flags.config.policy.reserved_cpus->cpus.ToString(), "0");
  EXPECT_EQ(flags.config.policy.start_failure, FailurePolicy::kIgnore);
  EXPECT_EQ(flags.config.logger.level, "error");
  EXPECT_EQ(flags.config.logger.debug, "a,b");
  EXPECT_EQ(flags.config.logger.source, "c");
  EXPECT_EQ(flags.config.logger.format, "json");
}

TEST(FlagsTest, WordsTurnSocketsOff) {
  const Flags flags =
      Must(Parse({"-image-socket", "-", "-agent-socket", "disabled", "-config-socket", "disabled",
                  "-admin-socket", "disabled", "-pod-resources-socket", "disabled"}));
  EXPECT_EQ(flags.ConfigSocket(), "");
  EXPECT_EQ(flags.AdminSocket(), "");
  EXPECT_EQ(flags.ImageSocket(), "");
  EXPECT_EQ(flags.AgentSocket(), "");
  EXPECT_EQ(flags.PodResourcesSocket(), "");
}

TEST_F(FlagsFileTest, ForcesTheFileOfEitherFlag) {
  const std::string file = Write("policy static\n");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"-force-config", file},
                                                    {"-config", file, "-force-config"},
                                                    {"-force-config", "-config", file},
                                                    {"-force-config=", "-config", file}}) {
    const Flags flags = Must(Parse(arguments));
    EXPECT_TRUE(flags.forced);
    EXPECT_EQ(flags.ConfigFile(), file);
    EXPECT_EQ(flags.config.policy.active, "static");
  }
  EXPECT_FALSE(Parse({"-config", file})->forced);
  EXPECT_THAT(Error({"-force-config"}), HasSubstr("-force-config: needs a file"));
  EXPECT_THAT(Error({"-force-config", "-fallback-config", file}), HasSubstr("needs a file"));
  EXPECT_THAT(Error({"-force-config", file, "-config", file}), HasSubstr("exclude each other"));
}

TEST(FlagsTest, HelpVersionAndListNeedNoFile) {
  const Flags help = Must(Parse({"-config", "/no/such/file", "-help"}));
  for (const char* name : {"-config FILE",
                           "-policy NAME",
                           "-list-policies",
                           "-reserved-resources",
                           "-available-resources",
                           "-start-failure-policy fail|ignore",
                           "-dump SPEC",
                           "-dump-file FILE",
                           "-dump-dir DIR",
                           "-cpu-file-dir DIR",
                           "-relay-socket",
                           "-runtime-socket",
                           "-image-socket",
                           "-relay-dir",
                           "-config-socket",
                           "-agent-socket",
                           "-admin-socket",
                           "-metrics-address",
                           "-topology",
                           "-force-config",
                           "-fallback-config",
                           "-reset-policy",
                           "-reset-config",
                           "-check-config",
                           "-print-config",
                           "-print-schema",
                           "-logger-level",
                           "-logger-debug LIST",
                           "-logger-source LIST",
                           "-nri-host SOCKET",
                           "-hook-dir DIR",
                           "-hook-skip-key KEY",
                           "-hook-skip-value VALUE",
                           "-version",
                           "-help",
                           "-dump-secrets"}) {
    EXPECT_THAT(help.help, HasSubstr(fmt::format("  {}", name)));
  }
  EXPECT_TRUE(Parse({"-config", "/no/such/file", "-version"})->version);
  EXPECT_TRUE(Parse({"-config", "/no/such/file", "-list-policies"})->list_policies);
}

TEST(FlagsTest, MistakesAreOneLine) {
  EXPECT_EQ(Error({"-polic", "null"}), "unknown flag -polic; did you mean -policy?");
  EXPECT_EQ(Error({"-policy", "statik"}),
            "-policy: there is no policy \"statik\"; did you mean static?");
  EXPECT_EQ(Error({"-reserved-resources", "CPU=0"}),
            "-reserved-resources: must be more than 0 CPUs");
  EXPECT_EQ(Error({"-start-failure-policy", "perhaps"}),
            "-start-failure-policy: \"perhaps\" is not one of fail, ignore");
  EXPECT_THAT(Error({"-logger-level", "loud"}), StartsWith("-logger-level: "));
  EXPECT_THAT(Error({"serve"}), HasSubstr("unexpected argument \"serve\""));
  EXPECT_EQ(Error({"-config", "a", "-force-config", "b"}),
            "-config and -force-config exclude each other: give one file");
  EXPECT_EQ(Error({"-relay-socket", "/a", "-runtime-socket", "unix:///a"}),
            "-relay-socket and -runtime-socket are both /a");
  EXPECT_EQ(Error({"-relay-socket="}), "-relay-socket: needs a path");
  EXPECT_THAT(Error({"-config", "/no/such/file"}), HasSubstr("/no/such/file"));
  EXPECT_THAT(Error({"-config", "/tmp"}), HasSubstr("/tmp"));
}

TEST(FlagsTest, SocketsMustBePossibleAndDifferent) {
  const std::string too_long = "/" + std::string(150, 'x');
  for (const std::string flag :
       {"-relay-socket", "-config-socket", "-admin-socket", "-runtime-socket", "-image-socket",
        "-agent-socket", "-pod-resources-socket"}) {
    EXPECT_THAT(Error({flag, too_long}), AllOf(StartsWith(flag + ": "), HasSubstr("151 bytes")));
  }
  EXPECT_EQ(Error({"-admin-socket", "/a", "-config-socket", "unix:///a"}),
            "-config-socket and -admin-socket are both /a");
  EXPECT_EQ(Error({"-admin-socket", "/a", "-relay-socket", "/a"}),
            "-relay-socket and -admin-socket are both /a");
  EXPECT_EQ(Error({"-agent-socket", "/a", "-config-socket", "/a"}),
            "-config-socket and -agent-socket are both /a");
  EXPECT_TRUE(Parse({"-runtime-socket", "/a", "-image-socket", "/a"}).ok());
}

TEST(FlagsTest, AnNriPluginHasASocketANameAndAnIndex) {
  const Flags flags =
      Must(Parse({"-mode", "nri-plugin", "-nri-socket", "unix:///n", "-nri-plugin-index=05"}));
  EXPECT_EQ(flags.mode, Mode::kNriPlugin);
  EXPECT_EQ(flags.nri_socket, "/n");
  EXPECT_EQ(flags.nri_plugin_name, "cri-resmgr");
  EXPECT_EQ(flags.nri_plugin_index, "05");
  EXPECT_EQ(Parse({})->mode, Mode::kRelay);
  EXPECT_EQ(Error({"-mode", "proxy"}), "-mode: \"proxy\" is not one of relay, nri-plugin, docker");
  EXPECT_THAT(Error({"-mode", "nri-plugin", "-nri-plugin-index", "5"}),
              HasSubstr("index \"5\" is not two digits"));
  EXPECT_THAT(Error({"-mode", "nri-plugin", "-nri-plugin-name", "a/b"}),
              HasSubstr("name \"a/b\" is not of 1 to 64 letters"));
  EXPECT_THAT(Error({"-mode", "nri-plugin", "-nri-plugin-name", std::string(65, 'a')}),
              HasSubstr("is not of 1 to 64 letters"));
  EXPECT_EQ(Error({"-mode", "nri-plugin", "-nri-socket", ""}), "-nri-socket: needs a path");
}

TEST(FlagsTest, WhatIsTakenOverIsASocketOfOurs) {
  const auto flags = Must(Parse({"-take-over", "-mode", "docker"}));
  EXPECT_TRUE(flags.take_over);
  EXPECT_EQ(Error({"-take-over", "-mode", "nri-plugin"}),
            "-take-over: with -mode nri-plugin there is no socket to take over");
}

TEST(FlagsTest, ADockerEngineHasASocketThatIsNotOurs) {
  const Flags flags = Must(Parse({"-mode", "docker", "-docker-socket", "unix:///d"}));
  EXPECT_EQ(flags.mode, Mode::kDocker);
  EXPECT_EQ(flags.docker_socket, "/d");
  EXPECT_EQ(Parse({})->docker_socket, "/var/run/docker.sock");
  EXPECT_EQ(Error({"-mode", "docker", "-docker-socket", ""}), "-docker-socket: needs a path");
  EXPECT_EQ(Error({"-mode", "docker", "-docker-socket", "/d", "-relay-socket", "/d"}),
            "-relay-socket and -docker-socket are both /d");
  EXPECT_TRUE(Parse({"-docker-socket", "/d", "-relay-socket", "/d"}).ok());
  EXPECT_FALSE(flags.docker_others_share);
  EXPECT_TRUE(Parse({"-docker-others", "share"})->docker_others_share);
  EXPECT_EQ(Error({"-docker-others", "all"}), "-docker-others: \"all\" is not one of pass, share");
}

TEST_F(FlagsFileTest, NriPluginsAreServedWhereAFlagOrTheFileSays) {
  EXPECT_EQ(Parse({})->config.nri.socket, "");
  EXPECT_EQ(Parse({"-nri-host", "unix:///n"})->config.nri.socket, "/n");
  const std::string yaml = Write("nri: {Host: {Socket: /file.sock, Strikes: 7}}");
  EXPECT_EQ(Parse({"-config", yaml})->config.nri.socket, "/file.sock");
  const StatusOr<Flags> flag = Parse({"-config", yaml, "-nri-host", "/flag.sock"});
  EXPECT_EQ(flag->config.nri.socket, "/flag.sock");
  EXPECT_EQ(flag->config.nri.strikes, 7);
  EXPECT_EQ(Parse({"-config", yaml, "-nri-host", "disabled"})->config.nri.socket, "");
  EXPECT_EQ(Parse({"-config", Write("nri-host /option.sock\n")})->config.nri.socket,
            "/option.sock");
  EXPECT_EQ(Error({"-nri-host", "/a", "-relay-socket", "/a"}),
            "-nri-host: /a is another socket's path");
  EXPECT_EQ(Error({"-config", Write("nri: {Host: {Socket: /a}}"), "-runtime-socket", "/a"}),
            "nri.Host.Socket: /a is another socket's path");
  EXPECT_EQ(Error({"-nri-host", "/a", "-mode", "nri-plugin"}),
            "-nri-host: NRI plugins are served with -mode relay or docker");
  EXPECT_THAT(Error({"-config", Write("nri: {Host: {Unsupported: {Rlimit: fail}}}")}),
              HasSubstr("NRI has no field \"Rlimit\""));
  EXPECT_THAT(Error({"-nri-host", "/" + std::string(150, 'x')}), HasSubstr("151 bytes"));
}

TEST_F(FlagsFileTest, AHookDirectoryIsForTheRelayAndDocker) {
  EXPECT_EQ(Parse({})->config.hooks.directory, "");
  EXPECT_EQ(Error({"-hook-dir", "/etc/hooks", "-mode", "nri-plugin"}),
            "-hook-dir: hook servers are asked with -mode relay or docker");
  const Flags relay = Must(Parse({"-hook-dir", "/etc/hooks"}));
  EXPECT_EQ(relay.config.hooks.directory, "/etc/hooks");
  const Flags docker =
      Must(Parse({"-mode", "docker", "-hook-dir", "/etc/hooks", "-nri-host", "/n"}));
  EXPECT_EQ(docker.config.hooks.directory, "/etc/hooks");
  EXPECT_EQ(docker.config.nri.socket, "/n");
  EXPECT_EQ(Error({"-mode", "docker", "-docker-socket", "/d", "-nri-host", "/d"}),
            "-nri-host: /d is another socket's path");
  const std::string yaml = Write("hooks: {Directory: /etc/hooks, SkipValue: off}");
  EXPECT_EQ(Error({"-config", yaml, "-mode", "nri-plugin"}),
            "hooks.Directory: hook servers are asked with -mode relay or docker");
  // The flag wins over the file.
  const Flags off = Must(Parse({"-config", yaml, "-hook-dir", "disabled"}));
  EXPECT_EQ(off.config.hooks.directory, "");
  EXPECT_EQ(off.config.hooks.skip_value, "off");
  EXPECT_EQ(Error({"-hook-dir", "hooks"}),
            "-hook-dir: \"hooks\" is neither an absolute path nor \"disabled\"");
}

TEST(FlagsTest, AddressesAndDirectoriesAreCheckedAtOnce) {
  EXPECT_EQ(Error({"-metrics-address", "here"}),
            "-metrics-address: metrics address \"here\" is not HOST:PORT");
  EXPECT_EQ(Error({"-relay-dir="}), "-relay-dir: needs a path");
  EXPECT_EQ(Error({"-cpu-file-dir", "files"}),
            "-cpu-file-dir: \"files\" is not absolute, as the runtime needs it");
  EXPECT_EQ(Parse({"-relay-socket", "/run/a.sock"})->CpuFileDirectory(), "/run/a.sock.cpus");
  EXPECT_EQ(Parse({"-metrics-address", "off"})->MetricsAddress(), "");
  EXPECT_EQ(Parse({"-metrics-address", ":9"})->MetricsAddress(), ":9");
  EXPECT_FALSE(Parse({"-metrics-address", ":9"})->metrics_page);
  EXPECT_TRUE(Parse({"-metrics-address", ":9", "-metrics-page"})->metrics_page);
  EXPECT_EQ(Error({"-metrics-page"}), "-metrics-page: needs -metrics-address, where it is served");
}

TEST_F(FlagsFileTest, FlagsWinOverYaml) {
  const std::string file = Write(
      "policy: {Active: static, ReservedResources: {CPU: 1}}\n"
      "dump: {Config: 'off:.*', File: /file}\nlogger: {Level: warn}\n");
  const Flags flags =
      Must(Parse({"-policy", "null", "-dump", "full:.*", "-config", file, "-logger-level=debug"}));
  EXPECT_EQ(flags.config.policy.active, "null");
  EXPECT_EQ(flags.config.policy.reserved_cpus->quantity.value, 1000);
  EXPECT_THAT(flags.config.dump.specs, ElementsAre("full:.*"));
  EXPECT_EQ(flags.config.dump.file, "/file");
  EXPECT_EQ(flags.config.logger.level, "debug");
  EXPECT_EQ(flags.overrides.policy(), "null");
  EXPECT_FALSE(flags.overrides.Has("reserved-resources"));
}

TEST_F(FlagsFileTest, FlagsWinOverOptionLines) {
  const std::string file =
      Write("policy static\ndump a\ndump b\nrelay-socket = /file\nimage-socket: -\ndump-secrets\n");
  const Flags flags = Must(Parse({"-config", file, "-relay-socket", "/flag"}));
  EXPECT_EQ(flags.config.policy.active, "static");
  EXPECT_EQ(flags.overrides.policy(), std::nullopt);
  EXPECT_THAT(flags.config.dump.specs, ElementsAre("a", "b"));
  EXPECT_EQ(flags.relay_socket, "/flag");
  EXPECT_EQ(flags.ImageSocket(), "");
  EXPECT_TRUE(flags.dump_secrets);
  EXPECT_EQ(flags.config_file, file);
  EXPECT_THAT(Parse({"-config", file, "-dump", "c"})->config.dump.specs, ElementsAre("c"));
  EXPECT_FALSE(Parse({"-config", file, "-dump-secrets=false"})->dump_secrets);
}

TEST_F(FlagsFileTest, AnEmptyFileIsTheDefaults) {
  for (const char* text : {"", "\n", "# nothing\n", "policy:\n"}) {
    const Flags flags = Must(Parse({"-config", Write(text)}));
    EXPECT_EQ(PrintConfig(flags.config), PrintConfig(Config{}));
  }
}

TEST_F(FlagsFileTest, ByteOrderMarkAndWindowsLinesDoNotMatter) {
  EXPECT_EQ(Parse({"-config", Write("\xef\xbb\xbfpolicy:\r\n  Active: static\r\n")})
                ->config.policy.active,
            "static");
  EXPECT_EQ(
      Parse({"-config", Write("\xef\xbb\xbfpolicy static\r\ndump-file /x\r\n")})->config.dump.file,
      "/x");
}

TEST_F(FlagsFileTest, ForcedAndFallbackFilesAreReadToo) {
  const std::string file = Write("policy: {Active: static}");
  EXPECT_EQ(Parse({"-force-config", file})->config.policy.active, "static");
  EXPECT_EQ(Parse({"-fallback-config", file})->config.policy.active, "static");
}

TEST_F(FlagsFileTest, MistakesInFilesAreOneLineWithFileAndLine) {
  const std::string yaml = Write("policy:\n  Active: statik\n");
  EXPECT_EQ(Error({"-config", yaml}),
            yaml + ":2: policy.Active: there is no policy \"statik\"; did you mean static?");
  const std::string options = Write("policy null\nrelay-sock /x\n");
  EXPECT_EQ(Error({"-config", options}),
            options + ":2: unknown option relay-sock; did you mean relay-socket?");
  const std::string twice = Write("policy null\ndump a\ndump b\npolicy static\n");
  EXPECT_EQ(Error({"-config", twice}), twice + ":4: policy: given twice, first at " + twice + ":1");
  const std::string tab = Write("policy:\n\tActive: static\n");
  EXPECT_EQ(Error({"-config", tab}), tab + ":2: illegal map value; tabs do not indent in YAML");
  const std::string nested = Write("\nconfig /x\n");
  EXPECT_EQ(Error({"-config", nested}),
            nested + ":2: config: a configuration file cannot name another");
  const std::string broken = Write("policy:\n  Active: [static\n");
  EXPECT_THAT(Error({"-config", broken}), StartsWith(broken + ":"));
}

// `config show` prints the defaults of the active policy, too: none of them may count in place of a
// key of `classes`.
TEST(FlagsTest, TheShownConfigurationHasTheSameClasses) {
  const PolicyRegistry policies = BuiltinPolicies();
  const ConfigChecks checks = ChecksWith(policies);
  const std::string classes =
      "classes: {isolation: {Interrupts: isolate, Quota: lift}, irq: {Controllable: [eth*]},\n"
      "  memory: [{name: bronze, swaplimitratio: 0.5}, {name: silver, high: 1G, policy: {}},\n"
      "    {name: gold, policy: {mode: interleave, nodes: all}}],\n"
      "  scheduling: [{name: batch, policy: batch, nice: 5}]}\n";
  for (const char* const policy :
       {"{Active: static}", "{Active: static-plus}", "{Active: topology-aware}",
        "{Active: balloons}", "{Active: static, static: {undisturbed: {interrupts: leave}}}",
        "{Active: topology-aware, topology-aware: {controllableInterrupts: ['*']}}",
        "{Active: balloons, balloons: {controllableInterrupts: [nvme*]}}"}) {
    const auto config = Must(ParseConfig(classes + "policy: " + policy, "a", checks));
    const std::string shown = PrintConfig(WithDefaults(config, policies));
    const auto again = Must(ParseConfig(shown, "b", checks));
    EXPECT_EQ(ClassesInForce(again, policies), ClassesInForce(config, policies)) << shown;
  }
}

TEST_F(FlagsFileTest, PrintedConfigurationReadsBackToTheSame) {
  const Flags flags =
      Must(Parse({"-policy=static", "-reserved-resources=CPU=750m", "-dump=reset,full:.*"}));
  const std::string printed = PrintConfig(flags.config);
  const Flags again = Must(Parse({"-config", Write(printed)}));
  EXPECT_EQ(PrintConfig(again.config), printed);
}

// Kubernetes manifests are tested elsewhere.
bool IsManifest(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return text.find("\napiVersion:") != std::string::npos;
}

TEST(SampleConfigsTest, EveryFileIsRead) {
  const PolicyRegistry policies = BuiltinPolicies();
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(RESMGR_SOURCE_DIR "/sample-configs")) {
    if (!entry.is_regular_file() || IsManifest(entry.path())) continue;
    const std::string path = entry.path();
    const std::array<const char*, 3> argv = {"cri-resmgr", "-config", path.c_str()};
    const StatusOr<Flags> flags = ParseFlags(3, argv.data(), ChecksWith(policies));
    EXPECT_TRUE(flags.ok()) << Describe(flags.status());
    ++files;
  }
  EXPECT_GE(files, 5);
}

TEST(SampleConfigsTest, TheHookFileIsWithoutWarnings) {
  std::ifstream sample(RESMGR_SOURCE_DIR "/sample-configs/hookserver.d/koordlet.json");
  const std::string text((std::istreambuf_iterator<char>(sample)), {});
  const auto file = Must(hooks::ParseHookFile("koordlet.json", text, std::chrono::seconds(1)));
  EXPECT_THAT(file.warnings, IsEmpty());
  EXPECT_EQ(file.settings.points.count(), 3U);
}

TEST(SampleConfigsTest, WhatTheRelayDoesNotDoIsRefused) {
  const std::string path = testing::TempDir() + "several-runtimes.yaml";
  const auto error_of = [&path](std::string_view text) {
    std::ofstream(path) << text;
    return std::string(Message(Parse({"-config", path}).status()));
  };
  for (const char* taken : {"/run/relay.sock", "/run/runtime.sock", "/run/admin.sock"}) {
    std::ofstream(path) << "runtimes: {kata: {Socket: " << taken << "}}";
    EXPECT_THAT(std::string(Message(
                    Parse({"-config", path, "-relay-socket", "/run/relay.sock", "-runtime-socket",
                           "/run/runtime.sock", "-admin-socket", "/run/admin.sock"})
                        .status())),
                HasSubstr(fmt::format("runtimes.kata.Socket: {} is the path of -", taken)));
  }
  std::ofstream(path) << "runtimes: {kata: {Socket: /run/kata.sock}}";
  EXPECT_THAT(std::string(Message(Parse({"-config", path, "-mode", "nri-plugin"}).status())),
              HasSubstr("with -mode relay alone"));
  const std::string alias = "runtimeClasses:\n  pinned: {Handler: runc}\n";
  EXPECT_EQ(error_of(alias), "");
  std::ofstream(path) << alias;
  for (const char* mode : {"nri-plugin", "docker"}) {
    EXPECT_THAT(std::string(Message(Parse({"-config", path, "-mode", mode}).status())),
                HasSubstr("runtimeClasses.pinned.Handler: handlers have aliases with -mode relay"));
  }
  std::filesystem::remove(path);
}

TEST(SampleConfigsTest, SayWhatTheyPromise) {
  const std::string samples = RESMGR_SOURCE_DIR "/sample-configs/";
  const Flags dump = Must(Parse({"-config", samples + "null-dump"}));
  const Flags same =
      Must(Parse({"-policy", "null", "-dump", "reset,full:.*", "-dump-file", "/tmp/cri.dump"}));
  EXPECT_EQ(PrintConfig(dump.config), PrintConfig(same.config));

  const Flags fixed = Must(Parse({"-config", samples + "static.yaml"}));
  EXPECT_EQ(fixed.config.policy.active, "static");
  EXPECT_EQ(fixed.config.policy.reserved_cpus->quantity.value, 750);

  const Flags classes = Must(Parse({"-config", samples + "runtime-classes.yaml"}));
  EXPECT_EQ(classes.config.runtimes.ClassOf("kata").pinning, Pinning::kSandbox);
  EXPECT_EQ(classes.config.runtimes.ClassOf("gvisor").pinning, Pinning::kNone);

  const Flags aliases = Must(Parse({"-config", samples + "handler-aliases.yaml"}));
  EXPECT_EQ(aliases.config.runtimes.ClassOf("runc-quiet").handler, "runc");
  EXPECT_EQ(aliases.config.runtimes.ClassOf("counted").handler, "");
  const Flags two = Must(Parse({"-config", samples + "runtimes.yaml"}));
  EXPECT_EQ(two.config.runtimes.ClassOf("kata").runtime, "kata");

  const Flags fallback = Must(Parse({"-fallback-config", samples + "fallback.cfg"}));
  EXPECT_EQ(fallback.config.policy.active, "static");
  EXPECT_EQ(fallback.config.policy.reserved_cpus->quantity.value, 750);
  EXPECT_THAT(fallback.config.dump.specs, IsEmpty());
}

// The arguments of the command lines in the files installed for plugin mode, without program and
// files.
std::vector<std::string> SampleCommand(const std::string& file) {
  std::ifstream text(RESMGR_SOURCE_DIR "/sample-configs/nri-plugin/" + file);
  std::vector<std::string> words;
  for (std::string line; std::getline(text, line);) {
    const bool unit = line.starts_with("ExecStart=");
    const size_t list = line.find("args: [-mode");
    if (!unit && list == std::string::npos) continue;
    line = unit ? line.substr(line.find(' ')) : line.substr(line.find('[') + 1);
    std::erase_if(line, [](char c) { return c == '"' || c == ',' || c == ']'; });
    std::istringstream all(line);
    for (std::string word; all >> word;)
      if (!word.starts_with('$')) words.push_back(word);
  }
  if (const auto config = std::ranges::find(words, "-config"); config != words.end())
    *std::next(config) = RESMGR_SOURCE_DIR "/sample-configs/static.yaml";
  return words;
}

TEST(SampleConfigsTest, PluginModeIsStartedByGoodCommandLines) {
  for (const char* const file : {"cri-resmgr-nri.service", "daemonset.yaml"}) {
    const StatusOr<Flags> flags = Parse(SampleCommand(file));
    ASSERT_TRUE(flags.ok()) << file << ": " << Describe(flags.status());
    EXPECT_EQ(flags->mode, Mode::kNriPlugin) << file;
  }
}

TEST(ConfigPageTest, HasEveryKeyWithItsDefault) {
  const PolicyRegistry policies = BuiltinPolicies();
  const std::vector<ConfigKey> keys = AllConfigKeys(ChecksWith(policies));
  const std::string page = ConfigManPage(keys);
  for (const ConfigLeaf& leaf : LeavesOf(keys)) {
    std::string path;
    for (const char c : leaf.path)
      path += c == '-' ? "\\-" : std::string(1, c);
    EXPECT_THAT(page, HasSubstr(".TP\n\\fB" + path + "\\fR\n"));
  }
  EXPECT_THAT(page, HasSubstr(".SH NAME\ncri\\-resmgr.yaml \\- configuration"));
  EXPECT_THAT(page, testing::Not(HasSubstr("`reset")));
}

}  // namespace
}  // namespace resmgr
