// SPDX-License-Identifier: Apache-2.0
// The ConfigMaps that users copy say what they mean.
#include <map>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/selection.h"
#include "pkg/config/config.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/sys/files.h"
#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using test::IsOk;

constexpr size_t kMaxFile = 1 << 20;
constexpr std::string_view kBase = "cri-resmgr-config";

const ConfigNode* At(const ConfigNode& map, std::string_view key) {
  for (const ConfigNode::Entry& entry : map.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

struct Sample {
  std::string name;
  StatusOr<Config> config;
};

Sample Load(const std::string& file) {
  const std::string path = std::string(RESMGR_SOURCE_DIR) + "/sample-configs/" + file;
  const auto text = ReadFile(path, kMaxFile);
  if (!text.ok()) return {"", text.status()};
  const auto document = ParseYaml(*text, file);
  if (!document.ok()) return {"", document.status()};
  const ConfigNode* metadata = At(*document, "metadata");
  const ConfigNode* data = At(*document, "data");
  if (metadata == nullptr || data == nullptr) return {"", NotFound("no metadata or data")};
  std::map<std::string, std::string> sections;
  for (const ConfigNode::Entry& entry : data->entries)
    sections[entry.key] = entry.value.text;
  ConfigChecks checks;
  checks.policies = {"null", "static"};
  return {At(*metadata, "name")->text, ParseConfigMap(sections, file, checks)};
}

TEST(SampleConfigMapsTest, AreNamedAsTheAgentLooksForThem) {
  EXPECT_EQ(Load("configmap-default.yaml").name, DefaultMapName(kBase));
  EXPECT_EQ(Load("configmap-group.yaml").name, GroupMapName(kBase, "hpc"));
  EXPECT_EQ(Load("configmap-node.yaml").name, NodeMapName(kBase, "worker-1"));
}

TEST(SampleConfigMapsTest, AreConfigurationsOfTheDaemon) {
  const struct {
    const char* file;
    const char* policy;
  } cases[] = {{"configmap-default.yaml", "static"},
               {"configmap-group.yaml", "static"},
               {"configmap-node.yaml", "null"}};
  for (const auto& c : cases) {
    const auto config = Load(c.file).config;
    ASSERT_THAT(config, IsOk()) << c.file;
    EXPECT_EQ(config->policy.active, c.policy) << c.file;
  }
}

}  // namespace
}  // namespace resmgr::agent
