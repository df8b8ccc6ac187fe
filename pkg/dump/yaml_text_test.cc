// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/yaml_text.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "test/support/seed.h"

namespace resmgr::dump {
namespace {

using nlohmann::json;

TEST(YamlTextTest, SortsKeysAndNestsBlocks) {
  const json tree = {{"zebra", 1},
                     {"config", {{"metadata", {{"name", "c0"}}}, {"empty", json::object()}}},
                     {"args", {"a", "b c"}},
                     {"envs", {{{"value", "v"}, {"key", "k"}}, {{"key", "k2"}}}}};
  EXPECT_EQ(ToYaml(tree),
            "args:\n"
            "- a\n"
            "- b c\n"
            "config:\n"
            "  empty: {}\n"
            "  metadata:\n"
            "    name: c0\n"
            "envs:\n"
            "- key: k\n"
            "  value: v\n"
            "- key: k2\n"
            "zebra: 1\n");
}

TEST(YamlTextTest, WritesScalarsAsJsonDoes) {
  const json tree = {{"a", true},
                     {"b", -5},
                     {"c", std::numeric_limits<uint64_t>::max()},
                     {"d", 0.5},
                     {"e", std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(ToYaml(tree), "a: true\nb: -5\nc: 18446744073709551615\nd: 0.5\ne: .inf\n");
}

TEST(YamlTextTest, EmptyTreeIsBraces) {
  EXPECT_EQ(ToYaml(json::object()), "{}\n");
  EXPECT_EQ(ToYaml(json()), "{}\n");
}

TEST(YamlTextTest, QuotesOnlyWhatWouldBeMisread) {
  const auto value = [](const std::string& text) {
    const std::string yaml = ToYaml({{"k", text}});
    return yaml.substr(3, yaml.size() - 4);
  };
  for (const std::string plain :
       {"abc", "0-3,8", "/kubepods/besteffort", "docker.io/local/busybox:1", "1.2.3", "a:b", "-1x",
        "750m", "<redacted>", "sha256:0a1b", "12ab34", "grün", "it's", "a#b", "-flag"}) {
    EXPECT_EQ(value(plain), plain);
  }
  for (const std::string text : {"", "true", "No", "null", "~", "1", "-1", "0x1f", "1.5", "1e3",
                                 "1:20", "2024-01-02", ".5", "y", "12_000"}) {
    EXPECT_EQ(value(text), "\"" + text + "\"");
  }
  for (const std::string text : {"a: b", "a #b", "- a", "[a]", "{a}", "*a", "&a", "%a", "a:", " a",
                                 "a ", "-", "# a", "---"}) {
    EXPECT_EQ(value(text), "'" + text + "'");
  }
  EXPECT_EQ(value("'a"), "'''a'");
  EXPECT_EQ(value("a\tb"), "\"a\\tb\"");
  EXPECT_EQ(value("a\x01\"\\"), "\"a\\x01\\\"\\\\\"");
  EXPECT_EQ(value("\xe2\x80\xa8"), "\"\\u2028\"");
  EXPECT_EQ(value("\xff"), "\"\\xff\"");
}

TEST(YamlTextTest, WritesLinesAsLiteralBlock) {
  EXPECT_EQ(ToYaml({{"k", "a\n\n  b"}}), "k: |-\n  a\n\n    b\n");
  EXPECT_EQ(ToYaml({{"k", "a\nb\n"}}), "k: |\n  a\n  b\n");
  EXPECT_EQ(ToYaml({{"k", "a\n\n"}}), "k: |+\n  a\n\n");
  EXPECT_EQ(ToYaml({{"k", {"a\nb"}}}), "k:\n- |-\n  a\n  b\n");
  EXPECT_EQ(ToYaml({{"k", " a\nb"}}), "k: \" a\\nb\"\n");
  EXPECT_EQ(ToYaml({{"k", "\n"}}), "k: \"\\n\"\n");
}

// Random text of characters most of which have a meaning in YAML.
std::string RandomText(std::mt19937& random) {
  static constexpr std::string_view kAlphabet = "ab01 \n\t-:#'\"\\[]{}&*!|>%@`,?~.=<+eExyn_";
  std::string text(std::uniform_int_distribution<size_t>(0, 12)(random), ' ');
  std::uniform_int_distribution<size_t> pick(0, kAlphabet.size() - 1);
  for (char& c : text)
    c = kAlphabet[pick(random)];
  return text;
}

TEST(YamlTextTest, AnyTextReadsBackAsItself) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 500; ++i) {
    std::string key = RandomText(random);
    key += 'k';
    const std::string first = RandomText(random);
    const std::string second = RandomText(random);
    const std::string yaml = ToYaml({{key, {{{"inner", first}}, second}}, {"z", second}});
    SCOPED_TRACE(yaml);
    const YAML::Node node = YAML::Load(yaml);
    EXPECT_EQ(node[key][0]["inner"].as<std::string>(), first);
    EXPECT_EQ(node[key][1].as<std::string>(), second);
    EXPECT_EQ(node["z"].as<std::string>(), second);
    EXPECT_TRUE(node["z"].IsScalar());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace resmgr::dump
