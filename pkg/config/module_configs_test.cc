// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/module_configs.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/config/config.h"
#include "pkg/config/nri_config.h"
#include "pkg/config/runtimes_config.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::Must;
using testing::AllOf;
using testing::HasSubstr;

// One module of a configuration with this text.
template <typename Module>
StatusOr<Module> Read(Module Config::*module, std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
  return config.*module;
}

std::string ErrorOf(std::string_view text) {
  return std::string(Message(ParseConfig(text, "f", {}).status()));
}

TEST(AuditConfigTest, ReadsEveryKey) {
  const AuditConfig expected{.interval = std::chrono::milliseconds(90'000), .repair = true};
  EXPECT_EQ(Read(&Config::audit, "audit: {Interval: 1m30s, Repair: true}").value(), expected);
  EXPECT_EQ(Read(&Config::audit, "audit: {Interval: disabled}").value().interval.count(), 0);
  for (const std::string_view text : {"", "audit:", "audit: {}"})
    EXPECT_EQ(Read(&Config::audit, text).value(), AuditConfig()) << text;
}

TEST(AuditConfigTest, MistakesHaveTheirPlace) {
  const std::string range = "is not a time from 1s to 24h, as in 1m30s, and not \"disabled\"";
  for (const char* const wrong : {"0s", "500ms", "25h", "60", "never"}) {
    EXPECT_EQ(ErrorOf(fmt::format("audit: {{Interval: {}}}", wrong)),
              fmt::format("f:1: audit.Interval: \"{}\" {}", wrong, range));
  }
  EXPECT_EQ(ErrorOf("audit:\n  Intervall: 1m"),
            "f:2: audit.Intervall: unknown key; did you mean Interval?");
}

TEST(UsageConfigTest, ReadsEveryKey) {
  const UsageConfig expected{.interval = std::chrono::seconds(30),
                             .per_container_metrics = true,
                             .rebalance_every = std::chrono::minutes(10),
                             .rebalance_moves = 2};
  EXPECT_EQ(Read(&Config::usage,
                 "usage: {Interval: 30s, PerContainerMetrics: true, RebalanceInterval: "
                 "10m, RebalanceMoves: 2}")
                .value(),
            expected);
  for (const std::string_view text : {"", "usage:", "usage: {}"})
    EXPECT_EQ(Read(&Config::usage, text).value(), UsageConfig()) << text;
  EXPECT_EQ(UsageConfig().interval, std::chrono::seconds(10));
}

TEST(UsageConfigTest, NothingMovesByItselfUnlessItIsSaid) {
  EXPECT_EQ(UsageConfig().rebalance_every.count(), 0);
  EXPECT_EQ(Read(&Config::usage, "usage: {RebalanceInterval: disabled}").value(), UsageConfig());
  for (const char* const wrong :
       {"RebalanceInterval: 59s", "RebalanceMoves: 0", "RebalanceMoves: 101"})
    EXPECT_FALSE(Read(&Config::usage, fmt::format("usage: {{{}}}", wrong)).ok()) << wrong;
}

TEST(UsageConfigTest, MistakesHaveTheirPlace) {
  for (const char* const wrong : {"0s", "500ms", "6m", "10", "disabled"}) {
    EXPECT_EQ(
        ErrorOf(fmt::format("usage: {{Interval: {}}}", wrong)),
        fmt::format("f:1: usage.Interval: \"{}\" is not a time from 1s to 5m, as in 1m30s", wrong));
  }
}

TEST(CpuFilesConfigTest, ReadsEveryKey) {
  const CpuFilesConfig expected{.containers = CpuFilesConfig::Containers::kAnnotated,
                                .mount_path = "/etc/cpus"};
  EXPECT_EQ(
      Read(&Config::cpu_files, "cpuFiles: {Containers: annotated, MountPath: /etc/cpus}").value(),
      expected);
  EXPECT_EQ(Read(&Config::cpu_files, "cpuFiles: {Containers: all}").value().containers,
            CpuFilesConfig::Containers::kAll);
  for (const std::string_view text : {"", "cpuFiles:", "cpuFiles: {Containers: none}"})
    EXPECT_EQ(Read(&Config::cpu_files, text).value(), CpuFilesConfig()) << text;
}

TEST(CpuFilesConfigTest, MistakesHaveTheirPlace) {
  EXPECT_EQ(ErrorOf("cpuFiles: {Containers: annotatd}"),
            "f:1: cpuFiles.Containers: \"annotatd\" is not one of none, annotated, all; did you "
            "mean annotated?");
  EXPECT_EQ(ErrorOf("cpuFiles:\n  Mountpat: /a"),
            "f:2: cpuFiles.Mountpat: unknown key; did you mean MountPath?");
  for (const char* const wrong :
       {"''", "cpus", "/", "/run/", "/run//cpus", "/run/../cpus", "/run/./cpus"}) {
    EXPECT_THAT(ErrorOf(fmt::format("cpuFiles: {{MountPath: {}}}", wrong)),
                HasSubstr("is not an absolute path of a directory"))
        << wrong;
  }
  EXPECT_THAT(ErrorOf("cpuFiles: {MountPath: /a:b}"), HasSubstr("a character that mounts"));
  EXPECT_THAT(ErrorOf("cpuFiles: {MountPath: \"/a,b\"}"), HasSubstr("a character that mounts"));
  for (const char* const kernels : {"/dev", "/proc/cpus", "/sys/fs/cgroup"}) {
    EXPECT_THAT(ErrorOf(fmt::format("cpuFiles: {{MountPath: {}}}", kernels)),
                HasSubstr("the kernel's own files"))
        << kernels;
  }
  EXPECT_TRUE(Read(&Config::cpu_files, "cpuFiles: {MountPath: /devices}").ok());
}

TEST(NrtConfigTest, PublishesUnlessItIsSaid) {
  for (const std::string_view text : {"", "nrt:", "nrt: {}"})
    EXPECT_EQ(Read(&Config::nrt, text).value(), NrtConfig()) << text;
  EXPECT_TRUE(NrtConfig().publish);
  EXPECT_EQ(NrtConfig().alignment, NrtAlignment::kPrefer);
}

TEST(NrtConfigTest, ReadsEveryKey) {
  EXPECT_EQ(Read(&Config::nrt, "nrt: {Publish: false, Alignment: Refuse}").value(),
            (NrtConfig{.publish = false, .alignment = NrtAlignment::kRefuse}));
  EXPECT_EQ(ErrorOf("nrt: {Alignment: strict}"),
            "f:1: nrt.Alignment: \"strict\" is not one of prefer, refuse");
}

TEST(DraConfigTest, IsOffUnlessItIsSaid) {
  for (const std::string_view text : {"", "dra:", "dra: {}"})
    EXPECT_EQ(Read(&Config::dra, text).value(), DraConfig()) << text;
  EXPECT_FALSE(DraConfig().enable);
  EXPECT_EQ(DraConfig().DriverName(), "cpu.cri-resmgr.intel.com");
}

TEST(DraConfigTest, ReadsEveryKey) {
  const DraConfig config =
      Read(&Config::dra, "dra: {Enable: true, Driver: cpu.example.com, Compatible: true}").value();
  EXPECT_EQ(config, (DraConfig{.enable = true, .driver = "cpu.example.com", .compatible = true}));
  EXPECT_EQ(config.DriverName(), "dra.cpu") << "manifests of dra-driver-cpu select it";
}

TEST(DraConfigTest, RefusesNamesThatTheApiRefuses) {
  for (const std::string& name : {std::string("'a/b'"), std::string("CPU.example.com"),
                                  std::string("'.'"), std::string(64, 'a'), std::string("''")}) {
    EXPECT_THAT(ErrorOf("dra: {Driver: " + name + "}"), HasSubstr("dra.Driver: ")) << name;
  }
}

TEST(HooksConfigTest, ReadsEveryKey) {
  const auto hooks = Must(Read(
      &Config::hooks,
      "hooks: {directory: /etc/hooks, Timeout: 500ms, SkipKey: example.com/skip, SkipValue: yes}"));
  const HooksConfig expected{.directory = "/etc/hooks",
                             .timeout = std::chrono::milliseconds(500),
                             .skip_key = "example.com/skip",
                             .skip_value = "yes"};
  EXPECT_EQ(hooks, expected);
}

TEST(HooksConfigTest, WithoutADirectoryNoServersAreAsked) {
  for (const std::string_view text :
       {"", "hooks:", "hooks: {Directory: }", "hooks.Directory: disabled", "hooks.Directory: ''"}) {
    const auto hooks = Must(Read(&Config::hooks, text));
    EXPECT_EQ(hooks.directory, "");
    EXPECT_EQ(hooks, HooksConfig());
  }
}

TEST(HooksConfigTest, MistakesHaveTheirPlace) {
  EXPECT_EQ(ErrorOf("hooks:\n  Directry: /x"),
            "f:2: hooks.Directry: unknown key; did you mean Directory?");
  EXPECT_EQ(ErrorOf("hooks: {Directory: hookserver.d}"),
            "f:1: hooks.Directory: \"hookserver.d\" is neither an absolute path nor \"disabled\"");
  EXPECT_EQ(ErrorOf("hooks: {Timeout: 2}"),
            "f:1: hooks.Timeout: \"2\" is not a time from 1ms to 2m, as in 1m30s");
  EXPECT_EQ(ErrorOf("hooks: {Timeout: 0ms}"),
            "f:1: hooks.Timeout: \"0ms\" is not a time from 1ms to 2m, as in 1m30s");
  EXPECT_EQ(ErrorOf("hooks: {SkipKey: a/b/c}"),
            "f:1: hooks.SkipKey: \"a/b/c\" is not a valid label key");
  EXPECT_EQ(ErrorOf("hooks: {SkipKey: [a]}"),
            "f:1: hooks.SkipKey: must be a single value, not a list");
}

constexpr std::string_view kWholeModule = R"(
nri:
  host:
    Socket: /run/nri.sock
    PluginPath: disabled
    PluginConfigPath: /etc/nri
    ExternalPlugins: false
    RegistrationTimeout: 10s
    RequestTimeout: 500ms
    SyncTimeout: 1m30s
    CallTimeout: 5s
    Strikes: 0
    Validator:
      RejectOCIHooks: true
      RejectRuntimeDefaultSeccomp: true
      RejectUnconfinedSeccomp: true
      RejectCustomSeccomp: true
      RejectNamespaces: true
      RejectSysctls: true
      TolerateMissingPluginsAnnotation: example.com/tolerate
    Unsupported: {Rlimits: ignore, OciHooks: fail}
    Plugins:
      10-logger: {FailurePolicy: fail, RequestTimeout: 1s, Required: true}
      99-last.one:
)";

TEST(NriConfigTest, ReadsEveryKey) {
  const auto host = Must(Read(&Config::nri, kWholeModule));
  const NriHostConfig expected{
      .socket = "/run/nri.sock",
      .plugin_path = "",
      .plugin_config_path = "/etc/nri",
      .external_plugins = false,
      .registration_timeout = milliseconds(10'000),
      .request_timeout = milliseconds(500),
      .sync_timeout = milliseconds(90'000),
      .call_timeout = milliseconds(5'000),
      .strikes = 0,
      .validator = {.reject_oci_hooks = true,
                    .reject_runtime_default_seccomp = true,
                    .reject_unconfined_seccomp = true,
                    .reject_custom_seccomp = true,
                    .reject_namespaces = true,
                    .reject_sysctls = true,
                    .tolerate_missing_annotation = "example.com/tolerate"},
      .unsupported = {{"Rlimits", FailurePolicy::kIgnore}, {"OciHooks", FailurePolicy::kFail}},
      .plugins = {{"10-logger",
                   {.failure = FailurePolicy::kFail,
                    .request_timeout = milliseconds(1'000),
                    .required = true}},
                  {"99-last.one", {}}}};
  EXPECT_EQ(host, expected);
}

TEST(NriConfigTest, WithoutASocketNoPluginsAreServed) {
  for (const std::string_view text : {"", "nri:", "nri: {Host: }", "nri.Host.Socket: disabled"}) {
    const auto host = Must(Read(&Config::nri, text));
    EXPECT_EQ(host.socket, "");
    EXPECT_EQ(host, NriHostConfig());
  }
}

TEST(NriConfigTest, MistakesHaveTheirPlace) {
  EXPECT_EQ(ErrorOf("nri:\n  Host: {Sockets: /x}"),
            "f:2: nri.Host.Sockets: unknown key; did you mean Socket?");
  for (const char* const key : {"Socket", "PluginPath", "PluginConfigPath"}) {
    EXPECT_EQ(ErrorOf(fmt::format("nri: {{Host: {{{}: run/nri}}}}", key)),
              fmt::format("f:1: nri.Host.{}: \"run/nri\" is neither an absolute path nor "
                          "\"disabled\"",
                          key));
  }
  EXPECT_EQ(ErrorOf("nri:\n  Host:\n    RequestTimeout: 2"),
            "f:3: nri.Host.RequestTimeout: \"2\" is not a time from 1ms to 2m, as in 1m30s");
  EXPECT_EQ(ErrorOf("nri: {Host: {CallTimeout: 1h}}"),
            "f:1: nri.Host.CallTimeout: \"1h\" is not a time from 1ms to 2m, as in 1m30s");
  EXPECT_EQ(ErrorOf("nri: {Host: {Plugins: {10-a: {FailurePolicy: maybe, Requird: true}}}}"),
            "f:1: nri.Host.Plugins.10-a.FailurePolicy: \"maybe\" is not one of fail, ignore\n"
            "f:1: nri.Host.Plugins.10-a.Requird: unknown key; did you mean Required?");
}

TEST(NriConfigTest, WhatTheCriCannotExpressIsRefusedOrLeftOut) {
  EXPECT_EQ(ErrorOf("nri: {Host: {Unsupported: {Rlimits: warn, OciHooks: [fail]}}}"),
            "f:1: nri.Host.Unsupported.Rlimits: \"warn\" is not one of fail, ignore\n"
            "f:1: nri.Host.Unsupported.OciHooks: must be a single value, not a list");
}

TEST(NriConfigTest, PluginsHaveAnIndexAndAName) {
  for (const std::string_view name :
       {"logger", "1-logger", "100-logger", "10-", "10-a/b", "10-\u00e9", "a0-logger"}) {
    EXPECT_EQ(ErrorOf(fmt::format("nri: {{Host: {{Plugins: {{\"{}\": {{}}}}}}}}", name)),
              fmt::format("f:1: nri.Host.Plugins: \"{}\" is not a plugin's index and name, such as "
                          "10-logger",
                          Printable(name)));
  }
  EXPECT_TRUE(Read(&Config::nri, "nri: {Host: {Plugins: {00-A.b_c+d-9: {}}}}").ok());
  // As plugins that connect.
  const std::string longest(kLongestNriPluginName, 'p');
  EXPECT_TRUE(Read(&Config::nri, "nri: {Host: {Plugins: {10-" + longest + ": {}}}}").ok());
  EXPECT_THAT(ErrorOf("nri: {Host: {Plugins: {10-" + longest + "p: {}}}}"),
              HasSubstr("is not a plugin's index and name"));
}

TEST(NriConfigTest, NamesOfPluginsHaveACase) {
  const auto host =
      Must(Read(&Config::nri, "nri: {Host: {Plugins: {10-a: {Required: true}, 10-A: {}}}}"));
  EXPECT_EQ(host.plugins.size(), 2U);
  EXPECT_TRUE(host.plugins.at("10-a").required);
}

constexpr std::string_view kBothModules = R"(
runtimes:
  kata: {Socket: unix:///run/kata/cri.sock}
  old: {socket: /run/old.sock}
runtimeclasses:
  "": {Hooks: false}
  kata: {Runtime: kata, Pinning: Sandbox, Overhead: {cpu: 250m, memory: 160Mi}}
  gvisor: {Pinning: none}
  runc-pinned: {Handler: runc}
  plain: {Handler: ""}
)";

TEST(RuntimesConfigTest, ReadsEveryKey) {
  const auto read = Must(Read(&Config::runtimes, kBothModules));
  RuntimesConfig expected;
  expected.runtimes["kata"].socket = "/run/kata/cri.sock";
  expected.runtimes["old"].socket = "/run/old.sock";
  expected.classes[""].hooks = false;
  expected.classes["kata"] = {.runtime = "kata",
                              .pinning = Pinning::kSandbox,
                              .overhead = {.cpu = {250}, .memory = {160 << 20}}};
  expected.classes["gvisor"].pinning = Pinning::kNone;
  expected.classes["runc-pinned"].handler = "runc";
  expected.classes["plain"].handler = "";
  EXPECT_EQ(read, expected);
  EXPECT_EQ(read.ClassOf("kata").runtime, "kata");
  EXPECT_EQ(read.ClassOf("unheard-of"), RuntimeClassConfig());
}

TEST(RuntimesConfigTest, ConfigMapHasAKeyForEachModule) {
  const auto config = Must(ParseConfigMap(
      {{"runtimeClasses", "kata: {Runtime: kata}"}, {"runtimes", "kata: {Socket: /run/kata.sock}"}},
      "map", {}));
  EXPECT_EQ(config.runtimes.ClassOf("kata").runtime, "kata");
}

TEST(RuntimesConfigTest, MistakesAreToldWithTheirPlace) {
  EXPECT_THAT(ErrorOf("runtimes: {kata: {Socket: /a}}\nruntimeClasses: {vm: {Runtime: katta}}"),
              AllOf(HasSubstr("f:2: runtimeClasses.vm.Runtime"),
                    HasSubstr("there is no runtime \"katta\"; did you mean kata?")));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Runtime: x}}"), HasSubstr("there are default"));
  EXPECT_THAT(ErrorOf("runtimes: {kata: }"), HasSubstr("kata needs a Socket"));
  EXPECT_THAT(ErrorOf("runtimes: {kata: {Socket: run/a}}"), HasSubstr("not an absolute path"));
  EXPECT_THAT(ErrorOf("runtimes: {a: {Socket: /x}, b: {Socket: /x}}"),
              HasSubstr("is the socket of a, too"));
  EXPECT_THAT(ErrorOf("runtimes: {default: {Socket: /x}}"), HasSubstr("-runtime-socket"));
  EXPECT_THAT(ErrorOf("runtimes: {'a b': {Socket: /x}}"),
              HasSubstr("\"a b\" is not a valid runtime's name"));
  EXPECT_THAT(ErrorOf("runtimes: {a: {Socket: /x, Sockets: /y}}"),
              AllOf(HasSubstr("runtimes.a.Sockets"), HasSubstr("unknown key")));
  EXPECT_THAT(ErrorOf("runtimes: {a: 1}"), HasSubstr("a needs a Socket"));
  EXPECT_THAT(ErrorOf("runtimes: 1"), HasSubstr("runtimes: must be a map"));
}

TEST(RuntimesConfigTest, ClassesAreStrict) {
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Pining: none}}"),
              HasSubstr("runtimeClasses.vm.Pining: unknown key; did you mean Pinning?"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Pinning: all}}"),
              HasSubstr("\"all\" is not one of container, sandbox, none"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Hooks: maybe}}"), HasSubstr("Hooks"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Overhead: {cpu: -1}}}"),
              HasSubstr("runtimeClasses.vm.Overhead.cpu"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Overhead: {memory: 160m}}}"),
              HasSubstr("\"160m\" is not a quantity: m means thousandths of a byte"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {vm: {Overhead: {disk: 1}}}"), HasSubstr("unknown key"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {'a/b': }"), HasSubstr("\"a/b\" is not a valid handler"));
}

TEST(RuntimesConfigTest, AliasIsOfAHandler) {
  EXPECT_THAT(ErrorOf("runtimeClasses: {'': {Handler: runc}}"), HasSubstr("cannot be an alias"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {a: {Handler: a}}"), HasSubstr("an alias of itself"));
  EXPECT_THAT(ErrorOf("runtimeClasses: {a: {Handler: b}, b: {Handler: c}}"),
              HasSubstr("runtimeClasses.a: is an alias of b, which is an alias itself"));
}

TEST(RuntimesConfigTest, NumberOfRuntimesAndHandlersIsBounded) {
  std::string runtimes = "runtimes:\n";
  for (size_t i = 0; i <= RuntimesConfig::kMostRuntimes; ++i)
    runtimes += fmt::format("  r{}: {{Socket: /run/{}}}\n", i, i);
  EXPECT_THAT(ErrorOf(runtimes), HasSubstr("more than 16 runtimes"));
  std::string classes = "runtimeClasses:\n";
  for (size_t i = 0; i <= RuntimesConfig::kMostClasses; ++i)
    classes += fmt::format("  h{}: {{}}\n", i);
  EXPECT_THAT(ErrorOf(classes), HasSubstr("more than 256 handlers"));
}

}  // namespace
}  // namespace resmgr
