// SPDX-License-Identifier: Apache-2.0
// The sample ConfigMaps have the documented meaning, and so has the sample policy that separates
// agents.
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/selection.h"
#include "pkg/config/config.h"
#include "test/support/sample_documents.h"
#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using test::At;
using test::IsOk;
using test::OfKind;
using test::ReadDocuments;
using test::Texts;
using testing::Contains;
using testing::ElementsAre;
using testing::UnorderedElementsAreArray;

constexpr std::string_view kBase = "cri-resmgr-config";

std::vector<ConfigNode> SampleDocuments(const std::string& name) {
  return ReadDocuments(RESMGR_SOURCE_DIR "/sample-configs/" + name);
}

struct Sample {
  std::string name;
  StatusOr<Config> config;
};

Sample Load(const std::string& file) {
  const ConfigNode document = SampleDocuments(file).at(0);
  std::map<std::string, std::string> sections;
  for (const ConfigNode::Entry& entry : At(document, "data").entries)
    sections[entry.key] = entry.value.text;
  ConfigChecks checks;
  checks.policies = {"null", "static"};
  return {At(document, "metadata/name").text, ParseConfigMap(sections, file, checks)};
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

// Checks the policy as far as possible without an API server that knows it (Kubernetes 1.30).
class SampleAdmissionPolicyTest : public testing::Test {
 protected:
  const std::vector<ConfigNode> rbac_ = SampleDocuments("rbac-agent.yaml");
  const std::vector<ConfigNode> documents_ = SampleDocuments("agent-own-node.yaml");
  const ConfigNode policy_ = OfKind(documents_, "ValidatingAdmissionPolicy");
  const ConfigNode binding_ = OfKind(documents_, "ValidatingAdmissionPolicyBinding");
};

TEST_F(SampleAdmissionPolicyTest, IsBoundAndDenies) {
  for (const ConfigNode& document : documents_)
    EXPECT_EQ(At(document, "apiVersion").text, "admissionregistration.k8s.io/v1");
  EXPECT_EQ(At(binding_, "spec/policyName").text, At(policy_, "metadata/name").text);
  EXPECT_THAT(Texts(At(binding_, "spec/validationActions")), ElementsAre("Deny"));
  EXPECT_EQ(At(policy_, "spec/failurePolicy").text, "Fail");
  EXPECT_EQ(At(policy_, "spec/validations").items.size(), 1u);
}

TEST_F(SampleAdmissionPolicyTest, IsAboutTheAgentsAccount) {
  const ConfigNode account = OfKind(rbac_, "ServiceAccount");
  const std::string user = "system:serviceaccount:" + At(account, "metadata/namespace").text + ":" +
                           At(account, "metadata/name").text;
  EXPECT_THAT(At(policy_, "spec/matchConditions/0/expression").text,
              testing::HasSubstr("request.userInfo.username == '" + user + "'"));
  EXPECT_EQ(
      At(SampleDocuments("agent-daemonset.yaml").at(0), "spec/template/spec/serviceAccountName")
          .text,
      At(account, "metadata/name").text);
}

// Covers every write of an agent to nodes and to the objects with their names, and nothing else. A
// patch that applies an object also creates it.
TEST_F(SampleAdmissionPolicyTest, CoversWhatTheAgentMayWriteOfNodes) {
  using Writes = std::map<std::string, std::set<std::string>>;  // resources by API group
  const std::set<std::string> of_nodes = {"topology.node.k8s.io", "resource.k8s.io"};
  Writes allowed;
  for (const ConfigNode& rule : At(OfKind(rbac_, "ClusterRole"), "rules").items) {
    const std::vector<std::string> resources = Texts(At(rule, "resources"));
    if (resources == std::vector<std::string>{"events"}) continue;
    const std::string group = At(rule, "apiGroups").items.at(0).text;
    std::set<std::string> verbs = {"get", "list", "watch", "patch"};
    if (group == "topology.node.k8s.io") verbs = {"get", "create", "patch", "delete"};
    if (group == "resource.k8s.io") verbs = {"get", "list", "watch", "create", "update", "delete"};
    EXPECT_THAT(Texts(At(rule, "verbs")), testing::Each(testing::AnyOfArray(verbs))) << group;
    if (std::ranges::any_of(Texts(At(rule, "verbs")), [](const std::string& verb) {
          return verb == "patch" || verb == "update";
        }))
      allowed[group].insert(resources.begin(), resources.end());
  }
  Writes covered;
  for (const ConfigNode& rule : At(policy_, "spec/matchConstraints/resourceRules").items) {
    const std::string group = At(rule, "apiGroups").items.at(0).text;
    const std::vector<std::string> resources = Texts(At(rule, "resources"));
    covered[group].insert(resources.begin(), resources.end());
    const std::set<std::string> operations =
        of_nodes.contains(group) ? std::set<std::string>{"CREATE", "UPDATE", "DELETE"}
                                 : std::set<std::string>{"UPDATE"};
    EXPECT_THAT(Texts(At(rule, "operations")), UnorderedElementsAreArray(operations)) << group;
  }
  EXPECT_EQ(covered, allowed);
}

// An expression with a field that does not exist would refuse every agent.
TEST_F(SampleAdmissionPolicyTest, ItsExpressionsNameWhatExists) {
  const ConfigNode spec = At(policy_, "spec");
  std::vector<std::string> expressions;
  std::set<std::string> known = {"request.userInfo.username",
                                 "request.userInfo.groups",
                                 "request.userInfo.extra",
                                 "request.name",
                                 "request.resource.resource",
                                 "oldObject",
                                 "spec.nodeName",
                                 "object",
                                 "object.metadata.name",
                                 "null"};
  for (const char* part : {"matchConditions", "variables", "validations"}) {
    for (const ConfigNode& item : At(spec, part).items) {
      expressions.push_back(At(item, "expression").text);
      expressions.push_back(At(item, "messageExpression").text);
    }
  }
  for (const ConfigNode& variable : At(spec, "variables").items)
    known.insert("variables." + At(variable, "name").text);
  const std::regex literal("'[^']*'");
  const std::regex name("[A-Za-z_][A-Za-z_0-9]*([.][A-Za-z_][A-Za-z_0-9]*)*");
  for (const std::string& expression : expressions) {
    const std::string bare = std::regex_replace(std::regex_replace(expression, literal, "''"),
                                                std::regex("[.][?]"), ".");
    for (auto it = std::sregex_iterator(bare.begin(), bare.end(), name);
         it != std::sregex_iterator(); ++it) {
      if (it->str() == "in" || it->str() == "orValue") continue;
      EXPECT_THAT(known, Contains(it->str())) << expression;
    }
    for (const std::string_view pair : {"()", "[]"}) {
      EXPECT_EQ(std::ranges::count(bare, pair[0]), std::ranges::count(bare, pair[1]));
    }
  }
}

}  // namespace
}  // namespace resmgr::agent
