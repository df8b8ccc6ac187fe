// SPDX-License-Identifier: Apache-2.0
// The chart's files fit each other: the rendered files are up to date, and schema and page have
// every value.
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/sys/files.h"
#include "test/chart/rendered.h"

namespace resmgr::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsSupersetOf;

std::string Read(const std::filesystem::path& path) {
  const auto text = ReadFile(path.string(), size_t{1} << 20);
  EXPECT_TRUE(text.ok()) << path;
  return text.value_or("");
}

// A sub-schema with its $ref followed.
const json& Resolved(const json& root, const json& schema) {
  return schema.contains("$ref")
             ? root.at(json::json_pointer(schema.at("$ref").get<std::string>().substr(1)))
             : schema;
}

// Paths of values: "daemon.metrics.port". A map with keys of the user's own counts as one path.
void CollectSchema(const json& root, const json& schema, const std::string& path,
                   std::set<std::string>& paths) {
  const json& here = Resolved(root, schema);
  if (!here.contains("properties") || path == "config.default") {
    paths.insert(path);
    return;
  }
  EXPECT_EQ(here.value("additionalProperties", json(true)), json(false)) << path;
  for (const auto& [key, value] : here.at("properties").items())
    CollectSchema(root, value, path.empty() ? key : path + "." + key, paths);
}

void CollectValues(const ConfigNode& node, const std::string& path, std::set<std::string>& paths) {
  if (node.entries.empty()) paths.insert(path);
  for (const ConfigNode::Entry& entry : node.entries)
    CollectValues(entry.value, path.empty() ? entry.key : path + "." + entry.key, paths);
}

std::set<std::string> SchemaPaths() {
  const json schema = json::parse(Read(ChartDirectory() / "values.schema.json"));
  std::set<std::string> paths;
  CollectSchema(schema, schema, "", paths);
  return paths;
}

// The paths of values, without those below a map with keys of the user's own.
std::set<std::string> ValuePaths() {
  std::set<std::string> paths;
  CollectValues(ReadDocuments((ChartDirectory() / "values.yaml").string()).at(0), "", paths);
  std::erase_if(paths, [](const std::string& path) { return path.starts_with("config.default."); });
  return paths;
}

// Collects the values without a description, below the keys of the chart.
void CollectUndescribed(const json& schema, const std::string& path,
                        std::vector<std::string>& undescribed) {
  if (!schema.contains("properties")) return;
  for (const auto& [key, value] : schema.at("properties").items()) {
    const std::string inner = path.empty() ? key : path + "." + key;
    if (!value.contains("description")) undescribed.push_back(inner);
    CollectUndescribed(value, inner, undescribed);
  }
}

TEST(ChartFilesTest, EveryValueOfTheSchemaIsDescribed) {
  std::vector<std::string> undescribed;
  CollectUndescribed(json::parse(Read(ChartDirectory() / "values.schema.json")), "", undescribed);
  EXPECT_THAT(undescribed, testing::IsEmpty());
}

TEST(ChartFilesTest, WhatWasRenderedIsOfThisChart) {
  const std::string command = fmt::format(
      "cd {} && sha256sum --check --quiet test/chart/rendered/chart.sha256 && "
      "find -L charts/cri-resmgr -type f ! -name README.md ! -name .helmignore | LC_ALL=C sort | "
      "xargs sha256sum | cmp - test/chart/rendered/chart.sha256",
      RESMGR_SOURCE_DIR);
  EXPECT_EQ(std::system(command.c_str()), 0)  // NOLINT(cert-env33-c)
      << "after a change of the chart: scripts/test-chart --update";
}

TEST(ChartFilesTest, EverySampleIsRendered) {
  EXPECT_THAT(ChartSamples(),
              ElementsAre("everything", "nothing", "plugin", "relay", "relay-remove", "webhook"));
  for (const std::string& sample : ChartSamples())
    EXPECT_EQ(Rendered(sample).empty(), sample == "nothing") << sample;
}

TEST(ChartFilesTest, TheSchemaKnowsEveryValue) {
  const std::set<std::string> schema = SchemaPaths();
  ASSERT_GE(schema.size(), 70U);
  for (const std::string& path : ValuePaths()) {
    // Maps of the user's own keys, as resources have them, are one in the schema.
    const bool known = schema.contains(path) || path.find(".resources.") != std::string::npos;
    EXPECT_TRUE(known) << path;
  }
}

TEST(ChartFilesTest, EveryValueHasADefault) {
  std::set<std::string> values = ValuePaths();
  for (const std::string& path : SchemaPaths()) {
    if (path == "global" || path == "config.default") continue;
    // The user chooses the resources.
    if (path.find(".resources.") != std::string::npos) continue;
    EXPECT_TRUE(values.contains(path)) << path;
  }
}

TEST(ChartFilesTest, ItsPageHasEveryValue) {
  const std::string page = Read(ChartDirectory() / "README.md");
  for (std::string path : ValuePaths()) {
    if (const size_t at = path.find(".resources."); at != std::string::npos) path.resize(at + 10);
    EXPECT_NE(page.find('`' + path + '`'), std::string::npos) << path;
  }
}

TEST(ChartFilesTest, ItHasTheVersionOfThePrograms) {
  const ConfigNode chart = ReadDocuments((ChartDirectory() / "Chart.yaml").string()).at(0);
  const Output version = RunProgram("cri-resmgr", "-version");
  EXPECT_EQ("cri-resmgr " + At(chart, "appVersion").text + "\n", version.text);
  EXPECT_EQ(At(chart, "version").text, At(chart, "appVersion").text);
}

}  // namespace
}  // namespace resmgr::test
