// SPDX-License-Identifier: Apache-2.0
// The manifests that the chart makes fit each other.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/chart/rendered.h"

namespace resmgr::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
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

}  // namespace
}  // namespace resmgr::test
