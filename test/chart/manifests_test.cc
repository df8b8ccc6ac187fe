// SPDX-License-Identifier: Apache-2.0
// The manifests that the chart makes fit each other.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
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

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr char kNamespace[] = "cri-resmgr";

std::vector<std::string> Names(const std::string& sample) {
  std::vector<std::string> names;
  for (const ConfigNode& document : Rendered(sample))
    names.push_back(NameOf(document));
  return names;
}

TEST(ChartManifestsTest, AreThoseOfTheSample) {
  EXPECT_THAT(Names("plugin"),
              UnorderedElementsAre(
                  "DaemonSet cri-resmgr-nri", "DaemonSet cri-resmgr-agent",
                  "ServiceAccount cri-resmgr-agent", "ClusterRole cri-resmgr-agent",
                  "ClusterRoleBinding cri-resmgr-agent", "Role cri-resmgr-agent",
                  "RoleBinding cri-resmgr-agent", "Role cri-resmgr-agent-events",
                  "RoleBinding cri-resmgr-agent-events", "ConfigMap cri-resmgr-config.default",
                  "Deployment cri-resmgr-webhook", "Service cri-resmgr-webhook",
                  "PodDisruptionBudget cri-resmgr-webhook", "NetworkPolicy cri-resmgr-webhook",
                  "MutatingWebhookConfiguration cri-resmgr-webhook"));
  EXPECT_THAT(Names("relay"),
              UnorderedElementsAre(
                  "DaemonSet cri-resmgr-relay", "DaemonSet cri-resmgr-agent",
                  "ServiceAccount cri-resmgr-agent", "ClusterRole cri-resmgr-agent",
                  "ClusterRoleBinding cri-resmgr-agent", "Role cri-resmgr-agent",
                  "RoleBinding cri-resmgr-agent", "Role cri-resmgr-agent-events",
                  "RoleBinding cri-resmgr-agent-events", "ConfigMap cri-resmgr-config.default"));
  EXPECT_THAT(Names("relay-remove"), ElementsAre("DaemonSet cri-resmgr-relay"));
  EXPECT_THAT(Names("webhook"),
              UnorderedElementsAre("Deployment cri-resmgr-webhook", "Service cri-resmgr-webhook",
                                   "PodDisruptionBudget cri-resmgr-webhook",
                                   "NetworkPolicy cri-resmgr-webhook",
                                   "MutatingWebhookConfiguration cri-resmgr-webhook"));
  // All objects of plugin mode, and the additional ones.
  std::vector<std::string> more = Names("everything");
  for (const std::string& name : Names("plugin"))
    EXPECT_EQ(std::erase(more, name), 1U) << name;
  EXPECT_THAT(more,
              UnorderedElementsAre(
                  "ConfigMap cri-resmgr-config.group.hpc", "ConfigMap cri-resmgr-config.group.llm",
                  "ConfigMap cri-resmgr-config.node.worker-1", "ConfigMap cri-resmgr-dashboard",
                  "NetworkPolicy cri-resmgr-daemon", "PrometheusRule cri-resmgr",
                  "Service cri-resmgr-metrics", "ServiceMonitor cri-resmgr",
                  "ValidatingAdmissionPolicy cri-resmgr-agent-own-node",
                  "ValidatingAdmissionPolicyBinding cri-resmgr-agent-own-node"));
}

TEST(ChartManifestsTest, SayWhatTheyAreAndWhere) {
  const std::map<std::string, std::string> versions = {
      {"ClusterRole", "rbac.authorization.k8s.io/v1"},
      {"ClusterRoleBinding", "rbac.authorization.k8s.io/v1"},
      {"ConfigMap", "v1"},
      {"DaemonSet", "apps/v1"},
      {"Deployment", "apps/v1"},
      {"MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1"},
      {"NetworkPolicy", "networking.k8s.io/v1"},
      {"PodDisruptionBudget", "policy/v1"},
      {"PrometheusRule", "monitoring.coreos.com/v1"},
      {"Role", "rbac.authorization.k8s.io/v1"},
      {"RoleBinding", "rbac.authorization.k8s.io/v1"},
      {"Service", "v1"},
      {"ServiceAccount", "v1"},
      {"ServiceMonitor", "monitoring.coreos.com/v1"},
      {"ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1"},
      {"ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1"},
  };
  const std::set<std::string> cluster_wide = {
      "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration",
      "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"};
  for (const std::string& sample : ChartSamples()) {
    std::set<std::string> seen;
    for (const ConfigNode& document : Rendered(sample)) {
      const std::string name = sample + ": " + NameOf(document);
      const std::string kind = At(document, "kind").text;
      ASSERT_TRUE(versions.contains(kind)) << name;
      EXPECT_EQ(At(document, "apiVersion").text, versions.at(kind)) << name;
      EXPECT_THAT(At(document, "metadata/name").text, Not(IsEmpty())) << name;
      const std::string where = At(document, "metadata/namespace").text;
      if (cluster_wide.contains(kind)) {
        EXPECT_EQ(where, "") << name;
      } else if (!name.ends_with("-events")) {
        EXPECT_EQ(where, kNamespace) << name;
      }
      EXPECT_TRUE(seen.insert(name).second) << name << " is there twice";
      EXPECT_THAT(At(document, "metadata/labels").entries, SizeIs(testing::Ge(6))) << name;
    }
  }
}

// The workloads of a sample whose pods have these labels.
std::vector<std::string> Selected(const std::vector<ConfigNode>& documents,
                                  const ConfigNode& labels) {
  std::vector<std::string> selected;
  for (const ConfigNode& workload : Workloads(documents)) {
    if (Selects(labels, At(workload, "spec/template/metadata/labels"))) {
      selected.push_back(At(workload, "metadata/name").text);
    }
  }
  return selected;
}

TEST(ChartManifestsTest, SelectorsSelectWhatTheyShould) {
  const std::map<std::string, std::string> expected = {
      {"Service cri-resmgr-webhook", "cri-resmgr-webhook"},
      {"Service cri-resmgr-metrics", "cri-resmgr-nri"},
      {"PodDisruptionBudget cri-resmgr-webhook", "cri-resmgr-webhook"},
      {"NetworkPolicy cri-resmgr-webhook", "cri-resmgr-webhook"},
      {"NetworkPolicy cri-resmgr-daemon", "cri-resmgr-nri"},
  };
  size_t looked_at = 0;
  for (const std::string& sample : ChartSamples()) {
    const auto documents = Rendered(sample);
    for (const ConfigNode& workload : Workloads(documents)) {
      EXPECT_THAT(Selected(documents, At(workload, "spec/selector/matchLabels")),
                  ElementsAre(At(workload, "metadata/name").text))
          << sample;
    }
    for (const ConfigNode& document : documents) {
      const std::string kind = At(document, "kind").text;
      const char* const path = kind == "Service"               ? "spec/selector"
                               : kind == "NetworkPolicy"       ? "spec/podSelector/matchLabels"
                               : kind == "PodDisruptionBudget" ? "spec/selector/matchLabels"
                                                               : nullptr;
      if (path == nullptr) continue;
      EXPECT_THAT(Selected(documents, At(document, path)),
                  ElementsAre(expected.at(NameOf(document))))
          << sample << ": " << NameOf(document);
      ++looked_at;
    }
  }
  EXPECT_EQ(looked_at, 11U);
}

// Names of the ports of all workloads that are selected, and their numbers.
std::set<std::string> PortsOf(const std::vector<ConfigNode>& documents, const ConfigNode& labels) {
  std::set<std::string> ports;
  for (const ConfigNode& workload : Workloads(documents)) {
    if (!Selects(labels, At(workload, "spec/template/metadata/labels"))) continue;
    for (const ConfigNode& container : Containers(workload)) {
      for (const ConfigNode& port : At(container, "ports").items) {
        ports.insert(At(port, "name").text);
        ports.insert(At(port, "containerPort").text);
      }
    }
  }
  return ports;
}

TEST(ChartManifestsTest, ServicesLeadToPorts) {
  for (const std::string& sample : ChartSamples()) {
    const auto documents = Rendered(sample);
    for (const ConfigNode& service : AllOfKind(documents, "Service")) {
      for (const ConfigNode& port : At(service, "spec/ports").items) {
        EXPECT_THAT(PortsOf(documents, At(service, "spec/selector")),
                    testing::Contains(At(port, "targetPort").text))
            << sample << ": " << NameOf(service);
      }
    }
    for (const ConfigNode& policy : AllOfKind(documents, "NetworkPolicy")) {
      EXPECT_THAT(PortsOf(documents, At(policy, "spec/podSelector/matchLabels")),
                  testing::Contains(At(policy, "spec/ingress/0/ports/0/port").text))
          << sample << ": " << NameOf(policy);
    }
  }
}

TEST(ChartManifestsTest, ThePrometheusOperatorFindsTheDaemons) {
  const auto documents = Rendered("everything");
  const ConfigNode monitor = OfKind(documents, "ServiceMonitor");
  std::vector<std::string> found;
  for (const ConfigNode& service : AllOfKind(documents, "Service")) {
    if (Selects(At(monitor, "spec/selector/matchLabels"), At(service, "metadata/labels"))) {
      found.push_back(NameOf(service));
      EXPECT_EQ(At(service, "spec/ports/0/name").text, At(monitor, "spec/endpoints/0/port").text);
    }
  }
  EXPECT_THAT(found, ElementsAre("Service cri-resmgr-metrics"));
  // The alerts look for this job, and are those of the sample.
  EXPECT_EQ(At(monitor, "spec/endpoints/0/relabelings/0/replacement").text, "cri-resmgr");
  const ConfigNode rules = At(OfKind(documents, "PrometheusRule"), "spec/groups/0/rules");
  EXPECT_EQ(At(rules, "0/expr").text, "up{job=\"cri-resmgr\"} == 0");
  const ConfigNode sample =
      ReadDocuments(RESMGR_SOURCE_DIR "/sample-configs/monitoring/alerts.yaml").at(0);
  ASSERT_EQ(rules.items.size(), At(sample, "groups/0/rules").items.size());
  for (size_t i = 0; i < rules.items.size(); ++i) {
    const std::string path = fmt::format("groups/0/rules/{}/expr", i);
    EXPECT_EQ(At(rules.items[i], "expr").text, At(sample, path).text);
  }
}

TEST(ChartManifestsTest, WhatIsMountedIsThere) {
  for (const std::string& sample : ChartSamples()) {
    for (const ConfigNode& workload : Workloads(Rendered(sample))) {
      std::set<std::string> volumes;
      std::set<std::string> mounted;
      for (const ConfigNode& volume : At(workload, "spec/template/spec/volumes").items)
        volumes.insert(At(volume, "name").text);
      for (const ConfigNode& container : Containers(workload)) {
        for (const ConfigNode& mount : At(container, "volumeMounts").items)
          mounted.insert(At(mount, "name").text);
      }
      EXPECT_EQ(mounted, volumes) << sample << ": " << NameOf(workload);
      EXPECT_THAT(volumes, Not(IsEmpty())) << sample << ": " << NameOf(workload);
    }
  }
}

TEST(ChartManifestsTest, ImagesAreNamedAsTheValuesSay) {
  const auto image = [](const std::string& sample, const std::string& name) {
    for (const ConfigNode& workload : Workloads(Rendered(sample)))
      if (At(workload, "metadata/name").text == name)
        return At(workload, "spec/template/spec/containers/0/image").text;
    return std::string("none");
  };
  EXPECT_EQ(image("plugin", "cri-resmgr-nri"), "cri-resmgr:0.1.0");
  EXPECT_EQ(image("relay", "cri-resmgr-relay"), "cri-resmgr:0.1.0");
  EXPECT_EQ(image("everything", "cri-resmgr-webhook"),
            "images.example.org/node/cri-resmgr-webhook:0.1.0");
  EXPECT_EQ(image("everything", "cri-resmgr-agent"),
            "images.example.org/node/cri-resmgr-agent@sha256:"
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
}

// The chart's files fit each other: the rendered files are up to date, and schema and page have
// every value.

using nlohmann::json;

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

// The dashboard and the alerts of sample-configs/monitoring, and the runbook that they lead to.

std::string TextOfSource(const std::string& path) {
  std::ifstream file(std::string(RESMGR_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The headings of the runbook, as they are in addresses.
std::set<std::string> Runbooks() {
  const std::string page = TextOfSource("docs/troubleshooting.md");
  const std::regex heading("\n##+ ([^\n]*)");
  std::set<std::string> anchors;
  for (std::sregex_iterator at(page.begin(), page.end(), heading); at != std::sregex_iterator();
       ++at) {
    std::string anchor;
    for (const char c : (*at)[1].str()) {
      if (c == ' ' || c == '-') anchor += '-';
      if (std::isalnum(static_cast<unsigned char>(c)) != 0)
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(MonitoringTest, EachAlertHasASectionOfTheRunbook) {
  const std::string alerts = TextOfSource("sample-configs/monitoring/alerts.yaml");
  const std::set<std::string> runbooks = Runbooks();
  const std::regex alert(
      "- alert: (\\w+)\n(?:    [^\n]*\n)*?      runbook: docs/troubleshooting.md#([\\w-]+)\n");
  int found = 0;
  for (std::sregex_iterator at(alerts.begin(), alerts.end(), alert); at != std::sregex_iterator();
       ++at) {
    ++found;
    EXPECT_TRUE(runbooks.contains((*at)[2])) << (*at)[1];
  }
  const std::regex any("- alert: ");
  EXPECT_EQ(found, std::distance(std::sregex_iterator(alerts.begin(), alerts.end(), any),
                                 std::sregex_iterator()));
  EXPECT_GE(found, 13);
}

TEST(MonitoringTest, PanelsOfTheDashboardAreDescribedAndLeadToTheRunbook) {
  const json dashboard = json::parse(TextOfSource("sample-configs/monitoring/dashboard.json"));
  const std::set<std::string> runbooks = Runbooks();
  std::set<std::string> types;
  std::set<int> ids;
  int links = 0;
  for (const json& panel : dashboard.at("panels")) {
    const std::string title = panel.at("title");
    types.insert(panel.at("type"));
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << title;
    if (panel.at("type") == "row") continue;
    EXPECT_GE(panel.at("description").get<std::string>().size(), 15U) << title;
    for (const json& target : panel.at("targets")) {
      const bool percentile =
          target.at("expr").get<std::string>().find("histogram_quantile(0.99") != std::string::npos;
      EXPECT_EQ(percentile, title.find("p99") != std::string::npos) << title;
    }
    for (const json& link : panel.value("links", json::array())) {
      ++links;
      const std::string url = link.at("url");
      ASSERT_EQ(url.rfind("${runbook}#", 0), 0U) << url;
      EXPECT_TRUE(runbooks.contains(url.substr(url.find('#') + 1))) << url;
    }
  }
  EXPECT_THAT(types, testing::IsSupersetOf({"row", "stat", "table", "timeseries"}));
  EXPECT_GE(links, 15);
}

// Panels of a row of the grid do not cover each other.
TEST(MonitoringTest, PanelsOfTheDashboardDoNotOverlap) {
  const json dashboard = json::parse(TextOfSource("sample-configs/monitoring/dashboard.json"));
  std::set<std::pair<int, int>> taken;
  for (const json& panel : dashboard.at("panels")) {
    const json& at = panel.at("gridPos");
    ASSERT_LE(at.at("x").get<int>() + at.at("w").get<int>(), 24);
    for (int x = at.at("x"); x < at.at("x").get<int>() + at.at("w").get<int>(); ++x) {
      for (int y = at.at("y"); y < at.at("y").get<int>() + at.at("h").get<int>(); ++y)
        ASSERT_TRUE(taken.emplace(x, y).second) << panel.at("title");
    }
  }
}

}  // namespace
}  // namespace resmgr::test
