// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/nri_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/config/config.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;

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

StatusOr<NriHostConfig> Read(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
  return config.nri;
}

std::string Error(std::string_view text) {
  return std::string(Message(Read(text).status()));
}

TEST(NriConfigTest, ReadsEveryKey) {
  const auto host = Read(kWholeModule);
  ASSERT_TRUE(host.ok()) << Describe(host.status());
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
  EXPECT_EQ(*host, expected);
}

TEST(NriConfigTest, WithoutASocketNoPluginsAreServed) {
  for (const std::string_view text : {"", "nri:", "nri: {Host: }", "nri.Host.Socket: disabled"}) {
    const auto host = Read(text);
    ASSERT_TRUE(host.ok()) << Describe(host.status());
    EXPECT_EQ(host->socket, "");
    EXPECT_EQ(*host, NriHostConfig());
  }
}

TEST(NriConfigTest, MistakesHaveTheirPlace) {
  EXPECT_EQ(Error("nri:\n  Host: {Sockets: /x}"),
            "f:2: nri.Host.Sockets: unknown key; did you mean Socket?");
  EXPECT_EQ(Error("nri:\n  Host:\n    RequestTimeout: 2"),
            "f:3: nri.Host.RequestTimeout: \"2\" is not a time from 1ms to 2m, as in 1m30s");
  EXPECT_EQ(Error("nri: {Host: {CallTimeout: 1h}}"),
            "f:1: nri.Host.CallTimeout: \"1h\" is not a time from 1ms to 2m, as in 1m30s");
  EXPECT_EQ(Error("nri: {Host: {Plugins: {10-a: {FailurePolicy: maybe, Requird: true}}}}"),
            "f:1: nri.Host.Plugins.10-a.FailurePolicy: \"maybe\" is not one of fail, ignore\n"
            "f:1: nri.Host.Plugins.10-a.Requird: unknown key; did you mean Required?");
}

TEST(NriConfigTest, WhatTheCriCannotExpressIsRefusedOrLeftOut) {
  EXPECT_EQ(Error("nri: {Host: {Unsupported: {Rlimits: warn, OciHooks: [fail]}}}"),
            "f:1: nri.Host.Unsupported.Rlimits: \"warn\" is not one of fail, ignore\n"
            "f:1: nri.Host.Unsupported.OciHooks: must be a single value, not a list");
}

TEST(NriConfigTest, PluginsHaveAnIndexAndAName) {
  for (const std::string_view name :
       {"logger", "1-logger", "100-logger", "10-", "10-a/b", "10-\u00e9", "a0-logger"}) {
    EXPECT_EQ(Error(fmt::format("nri: {{Host: {{Plugins: {{\"{}\": {{}}}}}}}}", name)),
              fmt::format("f:1: nri.Host.Plugins: \"{}\" is not a plugin's index and name, such as "
                          "10-logger",
                          Printable(name)));
  }
  EXPECT_TRUE(Read("nri: {Host: {Plugins: {00-A.b_c+d-9: {}}}}").ok());
}

TEST(NriConfigTest, NamesOfPluginsHaveACase) {
  const auto host = Read("nri: {Host: {Plugins: {10-a: {Required: true}, 10-A: {}}}}");
  ASSERT_TRUE(host.ok()) << Describe(host.status());
  EXPECT_EQ(host->plugins.size(), 2U);
  EXPECT_TRUE(host->plugins.at("10-a").required);
}

}  // namespace
}  // namespace resmgr
