// SPDX-License-Identifier: Apache-2.0
// The pages' tables of configuration keys and the chart's schema, against the description of the
// keys: each key has one row with its default and the beginning of its meaning.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/config/config.h"
#include "pkg/policy/registry.h"
#include "policies/builtin_policies.h"

namespace resmgr {
namespace {

using testing::StartsWith;

const std::filesystem::path kSource = RESMGR_SOURCE_DIR;

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {(std::istreambuf_iterator<char>(file)), {}};
}

// The keys of the modules and of the policies that the daemon has.
std::vector<ConfigKey> AllKeys() {
  const PolicyRegistry policies = BuiltinPolicies();
  ConfigChecks checks;
  checks.policies = policies.Names();
  checks.policy_section = [&policies](std::string_view policy, const ConfigNode& section,
                                      std::vector<ConfigKey>* keys) {
    return policies.Find(policy)->read_section(section, keys);
  };
  return AllConfigKeys(checks);
}

struct Row {
  std::string default_text;
  std::string meaning;
};

// Adds the rows of the tables of a page that begin with "| key |" or "| key of `X` |". `section` is
// put before the former's keys.
void AddRows(const std::string& page, const std::string& section,
             std::map<std::string, Row>& rows) {
  static const std::regex kHead("\\| key(?: of `([^`]+)`)? \\| default \\| meaning \\|");
  static const std::regex kRow("\\| `([^`]+)` \\| (.*?) \\| (.*) \\|");
  std::istringstream lines(Read(kSource / page));
  std::string prefix;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, kHead)) {
      inside = true;
      prefix = found[1].matched ? found[1].str() + '.' : section;
    } else if (!line.starts_with('|')) {
      inside = false;
    } else if (inside && line != "| --- | --- | --- |") {
      ASSERT_TRUE(std::regex_match(line, found, kRow)) << page << ": " << line;
      std::string usual = found[2];
      std::erase(usual, '`');
      const bool first = rows.emplace(prefix + found[1].str(), Row{usual, found[3]}).second;
      EXPECT_TRUE(first) << page << " has " << prefix << found[1] << " twice";
    }
  }
}

TEST(ConfigurationKeysTest, EachKeyHasOneRowInThePages) {
  const std::vector<ConfigKey> keys = AllKeys();
  std::map<std::string, Row> rows;
  AddRows("docs/configuration.md", "", rows);
  for (const char* const policy : {"static", "static-plus", "topology-aware", "balloons"}) {
    AddRows(fmt::format("policies/{}/README.md", policy), fmt::format("policy.{}.", policy), rows);
  }
  for (const ConfigLeaf& leaf : LeavesOf(keys)) {
    const auto row = rows.find(leaf.path);
    const std::string expected =
        fmt::format("| `{}` | `{}` | {} |", leaf.path, DefaultText(*leaf.key), leaf.key->help);
    if (row == rows.end()) {
      ADD_FAILURE() << "missing: " << expected;
      continue;
    }
    EXPECT_EQ(row->second.default_text, DefaultText(*leaf.key)) << expected;
    EXPECT_THAT(row->second.meaning, StartsWith(leaf.key->help)) << expected;
    rows.erase(row);
  }
  for (const auto& [path, row] : rows)
    ADD_FAILURE() << "there is no key " << path;
}

// Keys and words match without regard to case, which a schema cannot express. The chart leaves
// those below a policy to the daemon, since options of other programs are taken as they are spelled
// there.
void AllowOtherSpellings(nlohmann::json& schema) {
  if (schema.is_object() && schema.contains("additionalProperties") &&
      schema["additionalProperties"] == false) {
    schema.erase("additionalProperties");
  }
  if (schema.is_object() && schema.contains("enum")) schema.erase("enum");
  for (nlohmann::json& part : schema) {
    if (part.is_structured()) AllowOtherSpellings(part);
  }
}

TEST(ConfigurationKeysTest, TheChartsSchemaIsTheKeysOne) {
  auto schema = nlohmann::json::parse(ConfigSchema(AllKeys()));
  for (const std::string& policy : BuiltinPolicies().Names())
    AllowOtherSpellings(schema["properties"]["policy"]["properties"][policy]);
  const auto chart = nlohmann::json::parse(Read(kSource / "charts/cri-resmgr/values.schema.json"));
  nlohmann::json modules = chart["definitions"]["configuration"]["properties"];
  // Modules that a delivered configuration cannot change have no effect in a chart's.
  std::vector<std::string> expected, names;
  for (const auto& [name, module] : schema["properties"].items()) {
    if (name != "nri" && name != "runtimes" && name != "runtimeClasses") expected.push_back(name);
  }
  for (const auto& [name, module] : modules.items())
    names.push_back(name);
  ASSERT_EQ(names, expected);
  // An agent's configuration must name its policy.
  EXPECT_EQ(modules["policy"]["required"], nlohmann::json({"Active"}));
  modules["policy"].erase("required");
  for (const auto& [name, module] : modules.items()) {
    EXPECT_EQ(module, schema["properties"][name])
        << name << ": after a change of the keys: cri-resmgr -print-schema";
  }
}

}  // namespace
}  // namespace resmgr
