// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_file.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::StartsWith;

StatusOr<Config> ParseFile(std::string_view text) {
  ConfigChecks checks;
  checks.policies = {"null", "static"};
  return ParseConfigFile(text, "f", checks);
}

TEST(ConfigFileTest, TakesBothFormats) {
  for (const char* text : {"policy:\n  Active: static\n  ReservedResources: {CPU: 1}\n",
                           "policy static\nreserved-resources CPU=1\n"}) {
    const StatusOr<Config> config = ParseFile(text);
    ASSERT_TRUE(config.ok()) << Message(config.status());
    EXPECT_EQ(config->policy.active, "static");
    EXPECT_EQ(config->policy.reserved_cpus->quantity.value, 1000);
  }
}

TEST(ConfigFileTest, TakesAConfigMapAsTheAgentDoes) {
  const std::string head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n";
  const StatusOr<Config> config =
      ParseFile(head + "data:\n  policy: |\n    Active: static\n  logger: |\n    Level: debug\n");
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->policy.active, "static");
  EXPECT_EQ(config->logger.level, "debug");
  EXPECT_EQ(Message(ParseFile(head + "data:\n  policy: |\n    Actve: static\n").status()),
            "f key policy:1: policy.Actve: unknown key; did you mean Active?");
  EXPECT_EQ(Message(ParseFile(head + "data:\n  polcy: |\n    Active: static\n").status()),
            "f key polcy:1: polcy: unknown key; did you mean policy?");
}

TEST(ConfigFileTest, RefusesAConfigMapThatAnApiServerRefuses) {
  const std::string head = "apiVersion: v1\nkind: ConfigMap\n";
  EXPECT_EQ(Message(ParseFile(head + "data:\n  policy:\n    Active: static\n").status()),
            "f:5: data.policy: must be a text: begin it with |");
  EXPECT_EQ(Message(ParseFile(head + "data: [policy]\nx:\n").status()),
            "f:3: data: must be a map, not a list");
}

TEST(ConfigFileTest, RefusesAConfigMapThatAnAgentDoesNotDeliver) {
  const std::string head = "apiVersion: v1\nkind: ConfigMap\n";
  for (const char* data : {"", "data:\n", "data: {}\n", "metadata: {name: x}\n"}) {
    EXPECT_EQ(Message(ParseFile(head + data).status()),
              "f:1: it has no data; delete it where another ConfigMap should apply")
        << data;
  }
  const std::string with_data = head + "data:\n  policy: |\n    Active: static\n";
  EXPECT_THAT(Message(ParseFile(with_data + "binaryData:\n  policy.yaml: //4=\n").status()),
              StartsWith("f:7: policy.yaml is in binaryData"));
  EXPECT_TRUE(ParseFile(with_data + "binaryData:\nimmutable: true\n").ok());
}

TEST(ConfigFileTest, PassesOverWhatIsForTheDaemonsStart) {
  const StatusOr<Config> config = ParseFile(
      "relay-socket /r\npolicy static\nrelay-dir /d\nmetrics-address off\ndump-secrets\n"
      "mode relay\nnri-plugin-name p\nnri-plugin-index 10\nnri-socket /n\n"
      "host-root /host\npods-cgroup /pods\nmetrics-page\ndocker-others fit\ntake-over\n");
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->policy.active, "static");
}

TEST(ConfigFileTest, UnknownOptionsAreRefused) {
  EXPECT_THAT(Message(ParseFile("relay-sockt /r\n").status()),
              StartsWith("f:1: unknown option relay-sockt"));
  EXPECT_THAT(Message(ParseFile("my-socket /r\n").status()),
              StartsWith("f:1: unknown option my-socket"));
}

TEST(ConfigFileTest, TheHookDirectoryIsNoPlaceOfTheDaemonItself) {
  const StatusOr<Config> config = ParseFile("hook-dir /etc/hooks\n");
  ASSERT_TRUE(config.ok()) << Message(config.status());
  EXPECT_EQ(config->hooks.directory, "/etc/hooks");
}

TEST(ConfigFileTest, NamesThePlaceOfAMistakeInBoth) {
  EXPECT_THAT(Message(ParseFile("policy:\n  Actve: static\n").status()), StartsWith("f:2: "));
  EXPECT_THAT(Message(ParseFile("policy static\npolcy static\n").status()), StartsWith("f:2: "));
}

// Appends `line` of increasing numbers until the text has `bytes` bytes.
std::string Repeat(const std::function<std::string(int)>& line, size_t bytes,
                   const std::string& head = "") {
  std::string text = head;
  for (int i = 0; text.size() < bytes; ++i)
    text += line(i);
  return text;
}

// Ten times the text takes about ten times as long, for each form that was ever found to be slow.
TEST(ConfigFileTest, TheTimeIsInProportionToTheText) {
  const std::string filling(60, 'x');
  const std::map<std::string, std::function<std::string(size_t)>> forms = {
      {"dotted keys",
       [&](size_t n) {
         return Repeat([&](int i) { return fmt::format("policy.x{}{}:\n", i, filling); }, n);
       }},
      {"deep dotted keys",
       [&](size_t n) {
         return Repeat([&](int i) { return fmt::format("policy.a.b.c.x{}{}:\n", i, filling); }, n);
       }},
      {"unknown keys",
       [&](size_t n) {
         return Repeat([&](int i) { return fmt::format("  x{}{}:\n", i, filling); }, n,
                       "policy:\n");
       }},
      {"one line",
       [](size_t n) { return Repeat([](int) { return std::string("{a b "); }, n, "policy: "); }},
      {"many lines",
       [](size_t n) { return Repeat([](int) { return std::string("a\n "); }, n, "policy:\n "); }},
      {"anchors",
       [&](size_t n) {
         return Repeat([&](int i) { return fmt::format("x{0}: &a{0} {1}\n", i, filling); }, n);
       }},
      {"dump rules",
       [](size_t n) { return Repeat([](int) { return std::string("full:A,"); }, n, "dump: "); }},
  };
  const auto fast_enough = [](std::map<size_t, double>& milliseconds) {
    return milliseconds[1'000'000] < std::min(25 * milliseconds[100'000] + 50, 3000.0);
  };
  for (const auto& [name, form] : forms) {
    std::map<size_t, double> milliseconds;
    for (const size_t bytes : {size_t{10'000}, size_t{100'000}, size_t{1'000'000}}) {
      const std::string text = form(bytes);
      milliseconds[bytes] = 1e9;
      // The shortest processor time of some runs: other load only adds to it. A run of the longest
      // text that is fast enough is the last one.
      for (int i = 0; i < 3 && (bytes < 1'000'000 || !fast_enough(milliseconds)); ++i) {
        const std::clock_t begin = std::clock();
        static_cast<void>(ParseFile(text));
        const double took = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
        milliseconds[bytes] = std::min(milliseconds[bytes], took);
      }
    }
    const std::string shown = fmt::format("{:.1f}, {:.1f}, {:.1f} ms", milliseconds[10'000],
                                          milliseconds[100'000], milliseconds[1'000'000]);
    RecordProperty(name, shown);
    EXPECT_TRUE(fast_enough(milliseconds)) << name << ": " << shown;
  }
}

TEST(ConfigFormatTest, SectionsMakeYaml) {
  for (const char* text :
       {"policy:\n  Active: static\n", "# comment\n\npolicy:   # which one\n  Active: static\n",
        "logger: {Debug: '*'}\n", "policy.Active: static\n", "Policy.active: static\n",
        "{\"policy\": {\"Active\": \"static\"}}", "---\npolicy: static\n", "%YAML 1.2\n---\n",
        "\"policy\":\n  Active: static\n", "  policy:\n    Active: static\n",
        "plicy:\n  Active: x\n", "policy: &a {Active: static}\n", "policy: ~\n",
        "policy:\r\n  Active: x\r\n", "policy: static\nlogger:\n  Debug: '*'\n",
        "policy:\n  Active: [broken\n", "apiVersion: v1\nkind: ConfigMap\n"}) {
    EXPECT_EQ(DetectConfigFormat(text), ConfigFormat::kYaml) << text;
  }
}

TEST(ConfigFormatTest, LinesWithValuesAreOptions) {
  for (const char* text :
       {"", "\n\n# nothing\n", "policy null\n", "policy = null\n", "policy: static\n",
        "policy null\ndump reset,full:.*\ndump-file /tmp/cri.dump\n", "dump: reset,full:.*\n",
        "list-policies\n", "relay-socket=/run/a:b.sock\n", "relay-socket unix:///run/a.sock\n",
        "runtime-socket: unix:///run/a.sock\n", "reserved-resources CPU=cgroup:/kubepods\n",
        "dump off:\n", "topology synthetic:numa:2\n", "  policy null\n", "policy\tnull\n"}) {
    EXPECT_EQ(DetectConfigFormat(text), ConfigFormat::kOptions) << text;
  }
}

}  // namespace
}  // namespace resmgr
