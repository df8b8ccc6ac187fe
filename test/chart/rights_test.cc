// SPDX-License-Identifier: Apache-2.0
// The chart gives its pods no more rights than the samples of sample-configs/, and its webhook
// cannot lock a cluster out.
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/chart/rendered.h"

namespace resmgr::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAreArray;

std::vector<ConfigNode> Sample(const std::string& name) {
  return ReadDocuments(RESMGR_SOURCE_DIR "/sample-configs/" + name);
}

// "Kind in NAMESPACE: resource verb", one for each right that roles give.
std::set<std::string> Rights(const std::vector<ConfigNode>& documents) {
  std::set<std::string> rights;
  for (const char* const kind : {"Role", "ClusterRole"}) {
    for (const ConfigNode& role : AllOfKind(documents, kind)) {
      std::string where = At(role, "metadata/namespace").text;
      // The namespace of the release, and of the samples.
      if (where == "cri-resmgr" || where == "kube-system") where = "its own";
      for (const ConfigNode& rule : At(role, "rules").items) {
        for (const std::string& group : Texts(At(rule, "apiGroups")))
          for (const std::string& resource : Texts(At(rule, "resources")))
            for (const std::string& verb : Texts(At(rule, "verbs")))
              rights.insert(fmt::format("{} in {}: {}/{} {}", kind, where, group, resource, verb));
      }
    }
  }
  return rights;
}

TEST(ChartRightsTest, RolesGiveWhatTheSampleGives) {
  const std::set<std::string> sample = Rights(Sample("rbac-agent.yaml"));
  ASSERT_EQ(sample.size(), 22U);
  EXPECT_EQ(Rights(Rendered("everything")), sample);
  // Without claims.
  std::set<std::string> less = sample;
  EXPECT_EQ(std::erase_if(less,
                          [](const std::string& right) {
                            return right.find("resource.k8s.io") != std::string::npos;
                          }),
            7U);
  EXPECT_EQ(Rights(Rendered("plugin")), less);
  // Without Events of pods, too.
  EXPECT_EQ(std::erase_if(less,
                          [](const std::string& right) {
                            return right.starts_with("ClusterRole in : /events");
                          }),
            2U);
  // Removes the rights for the schedulers' objects, too.
  EXPECT_EQ(std::erase_if(less,
                          [](const std::string& right) {
                            return right.find("topology.node.k8s.io") != std::string::npos;
                          }),
            4U);
  EXPECT_EQ(Rights(Rendered("relay")), less);
  for (const char* const name : {"webhook", "relay-remove", "nothing"})
    EXPECT_THAT(Rights(Rendered(name)), IsEmpty()) << name;
}

TEST(ChartRightsTest, RolesAreTheAgentsAlone) {
  const auto documents = Rendered("everything");
  const std::string account = At(OfKind(documents, "ServiceAccount"), "metadata/name").text;
  std::vector<ConfigNode> bindings = AllOfKind(documents, "RoleBinding");
  bindings.push_back(OfKind(documents, "ClusterRoleBinding"));
  ASSERT_EQ(bindings.size(), 3U);
  for (const ConfigNode& binding : bindings) {
    ASSERT_EQ(At(binding, "subjects").items.size(), 1U);
    EXPECT_EQ(At(binding, "subjects/0/kind").text, "ServiceAccount");
    EXPECT_EQ(At(binding, "subjects/0/name").text, account);
    EXPECT_EQ(At(binding, "subjects/0/namespace").text, "cri-resmgr");
    EXPECT_EQ(At(binding, "roleRef/name").text, At(binding, "metadata/name").text);
    EXPECT_EQ(At(binding, "roleRef/kind").text + "Binding", At(binding, "kind").text);
  }
  for (const ConfigNode& workload : Workloads(documents)) {
    const ConfigNode pod = At(workload, "spec/template/spec");
    const bool agent = At(workload, "metadata/name").text == "cri-resmgr-agent";
    EXPECT_EQ(At(pod, "serviceAccountName").text, agent ? account : "") << NameOf(workload);
    EXPECT_EQ(At(pod, "automountServiceAccountToken").text, agent ? "" : "false")
        << NameOf(workload);
  }
}

TEST(ChartRightsTest, AnAgentMayChangeItsOwnNodeOnly) {
  const auto documents = Rendered("everything");
  const ConfigNode policy = OfKind(documents, "ValidatingAdmissionPolicy");
  const ConfigNode sample = OfKind(Sample("agent-own-node.yaml"), "ValidatingAdmissionPolicy");
  EXPECT_EQ(At(policy, "spec/matchConditions/0/expression").text,
            "request.userInfo.username == 'system:serviceaccount:cri-resmgr:cri-resmgr-agent'");
  for (const char* const path :
       {"spec/failurePolicy", "spec/variables/0/expression", "spec/variables/1/expression",
        "spec/validations/0/messageExpression", "spec/matchConstraints/resourceRules/0/resources/1",
        "spec/matchConstraints/resourceRules/0/operations/0",
        "spec/matchConstraints/resourceRules/1/resources/0",
        "spec/matchConstraints/resourceRules/1/operations/0",
        "spec/matchConstraints/resourceRules/1/operations/1",
        "spec/matchConstraints/resourceRules/1/operations/2",
        "spec/matchConstraints/resourceRules/2/resources/0",
        "spec/matchConstraints/resourceRules/2/operations/0",
        "spec/matchConstraints/resourceRules/2/operations/1",
        "spec/matchConstraints/resourceRules/2/operations/2"}) {
    EXPECT_THAT(At(policy, path).text, Not(IsEmpty())) << path;
    EXPECT_EQ(At(policy, path).text, At(sample, path).text) << path;
  }
  // The expression of the sample, without certificates, which pods do not have.
  EXPECT_EQ(At(policy, "spec/validations/0/expression").text,
            At(sample, "spec/variables/2/expression").text);
  const ConfigNode binding = OfKind(documents, "ValidatingAdmissionPolicyBinding");
  EXPECT_EQ(At(binding, "spec/policyName").text, At(policy, "metadata/name").text);
  EXPECT_THAT(Texts(At(binding, "spec/validationActions")), ElementsAre("Deny"));
}

TEST(ChartRightsTest, ContainersAreClosed) {
  size_t containers = 0;
  for (const std::string& name : ChartSamples()) {
    for (const ConfigNode& workload : Workloads(Rendered(name))) {
      const ConfigNode pod = At(workload, "spec/template/spec");
      // The relay's installer asks the host's systemd.
      const bool relay = At(workload, "metadata/name").text == "cri-resmgr-relay";
      EXPECT_EQ(At(pod, "hostPID").text, relay ? "true" : "") << name;
      EXPECT_NE(At(pod, "hostIPC").text, "true");
      for (const ConfigNode& container : Containers(workload)) {
        const std::string what = name + ": " + NameOf(workload);
        const ConfigNode context = At(container, "securityContext");
        EXPECT_EQ(At(context, "privileged").text, "false") << what;
        EXPECT_EQ(At(context, "allowPrivilegeEscalation").text, "false") << what;
        EXPECT_EQ(At(context, "readOnlyRootFilesystem").text, "true") << what;
        EXPECT_THAT(Texts(At(context, "capabilities/drop")), ElementsAre("ALL")) << what;
        EXPECT_TRUE(At(context, "capabilities/add").items.empty()) << what;
        const bool own = !At(context, "seccompProfile/type").text.empty();
        EXPECT_EQ(At(own ? context : At(pod, "securityContext"), "seccompProfile/type").text,
                  "RuntimeDefault")
            << what;
        for (const char* const amount : {"requests/cpu", "requests/memory", "limits/memory"})
          EXPECT_THAT(At(container, std::string("resources/") + amount).text, Not(IsEmpty()))
              << what << ": " << amount;
        ++containers;
      }
    }
  }
  EXPECT_EQ(containers, 12U);
}

// The settings that the level "restricted" of Pod Security demands.
TEST(ChartRightsTest, TheWebhookNeedsNoRightsOfTheNode) {
  const ConfigNode pod = At(OfKind(Rendered("webhook"), "Deployment"), "spec/template/spec");
  EXPECT_EQ(At(pod, "securityContext/runAsNonRoot").text, "true");
  EXPECT_NE(At(pod, "hostNetwork").text, "true");
  for (const ConfigNode& volume : At(pod, "volumes").items)
    EXPECT_TRUE(At(volume, "hostPath").entries.empty());
}

TEST(ChartRightsTest, HostPathsAreFewAndNoneIsTheRoot) {
  const std::set<std::string> allowed = {"/var/run/nri",
                                         "/var/run/cri-resmgr",
                                         "/run/cri-resmgr",
                                         "/var/lib/cri-resmgr",
                                         "/sys/fs/cgroup",
                                         "/opt/cri-resmgr",
                                         "/etc/systemd/system",
                                         "/run/systemd",
                                         "/run/containerd",
                                         "/var/lib/kubelet/pod-resources",
                                         "/var/run/cdi",
                                         "/var/lib/kubelet/plugins",
                                         "/var/lib/kubelet/plugins_registry"};
  std::set<std::string> found;
  for (const std::string& name : ChartSamples()) {
    for (const ConfigNode& workload : Workloads(Rendered(name))) {
      for (const ConfigNode& volume : At(workload, "spec/template/spec/volumes").items) {
        const std::string path = At(volume, "hostPath/path").text;
        if (!path.empty()) found.insert(path);
      }
      for (const ConfigNode& container : Containers(workload)) {
        for (const ConfigNode& mount : At(container, "volumeMounts").items) {
          const std::string volume = At(mount, "name").text;
          const bool others = volume == "cgroups" || volume == "runtime";
          EXPECT_TRUE(!others || At(mount, "readOnly").text == "true") << name;
        }
      }
    }
  }
  EXPECT_EQ(found, allowed);
}

// Paths on the host and where the first container has them, "path at path".
std::set<std::string> Mounts(const ConfigNode& workload) {
  std::set<std::string> mounts;
  const ConfigNode pod = At(workload, "spec/template/spec");
  for (const ConfigNode& mount : At(pod, "containers/0/volumeMounts").items) {
    for (const ConfigNode& volume : At(pod, "volumes").items) {
      if (At(volume, "name").text == At(mount, "name").text) {
        mounts.insert(fmt::format("{} at {} {}", At(volume, "hostPath/path").text,
                                  At(mount, "mountPath").text, At(mount, "readOnly").text));
      }
    }
  }
  return mounts;
}

TEST(ChartRightsTest, ThePluginHasOfTheHostWhatTheSampleHas) {
  std::set<std::string> sample = Mounts(Sample("nri-plugin/daemonset.yaml").at(0));
  EXPECT_THAT(sample, Contains("/sys/fs/cgroup at /sys/fs/cgroup true")) << "the audit needs it";
  // The sample serves either runtime, the chart has the directory of the runtime's socket.
  EXPECT_EQ(sample.erase("/run/crio at /run/crio true"), 1U);
  const auto documents = Rendered("plugin");
  size_t compared = 0;
  for (const ConfigNode& workload : Workloads(documents)) {
    if (At(workload, "metadata/name").text != "cri-resmgr-nri") continue;
    EXPECT_EQ(Mounts(workload), sample);
    ++compared;
  }
  EXPECT_EQ(compared, 1U);
}

TEST(ChartRightsTest, TheWebhookCannotLockAClusterOut) {
  const ConfigNode sample = At(Sample("webhook/webhook-configuration.yaml").at(0), "webhooks/0");
  for (const char* const name : {"plugin", "everything", "webhook"}) {
    const auto documents = Rendered(name);
    const ConfigNode webhook = At(OfKind(documents, "MutatingWebhookConfiguration"), "webhooks/0");
    for (const char* const path :
         {"name", "failurePolicy", "timeoutSeconds", "sideEffects", "reinvocationPolicy",
          "rules/0/scope", "clientConfig/service/path", "clientConfig/service/port",
          "namespaceSelector/matchExpressions/0/key",
          "namespaceSelector/matchExpressions/0/operator"}) {
      EXPECT_EQ(At(webhook, path).text, At(sample, path).text) << name << ": " << path;
      EXPECT_THAT(At(webhook, path).text, Not(IsEmpty())) << name << ": " << path;
    }
    for (const char* const path :
         {"admissionReviewVersions", "rules/0/resources", "rules/0/operations"}) {
      EXPECT_EQ(Texts(At(webhook, path)), Texts(At(sample, path))) << name << ": " << path;
    }
    EXPECT_TRUE(At(webhook, "objectSelector").entries.empty()) << name;
    const auto excluded = Texts(At(webhook, "namespaceSelector/matchExpressions/0/values"));
    EXPECT_THAT(excluded, Contains("kube-system")) << name;
    EXPECT_THAT(excluded, Contains("cri-resmgr")) << name;
    const ConfigNode service = OfKind(documents, "Service");
    EXPECT_EQ(At(webhook, "clientConfig/service/namespace").text, "cri-resmgr");
    EXPECT_EQ(At(webhook, "clientConfig/service/name").text, "cri-resmgr-webhook");
  }
}

TEST(ChartRightsTest, NetworkPoliciesLetNothingOut) {
  size_t policies = 0;
  for (const std::string& name : ChartSamples()) {
    for (const ConfigNode& policy : AllOfKind(Rendered(name), "NetworkPolicy")) {
      EXPECT_THAT(Texts(At(policy, "spec/policyTypes")),
                  UnorderedElementsAreArray({"Ingress", "Egress"}));
      EXPECT_EQ(At(policy, "spec/egress").kind, ConfigNode::Kind::kList);
      EXPECT_TRUE(At(policy, "spec/egress").items.empty());
      EXPECT_EQ(At(policy, "spec/ingress").items.size(), 1U);
      ++policies;
    }
  }
  EXPECT_EQ(policies, 4U);
  const auto documents = Rendered("everything");
  for (const ConfigNode& policy : AllOfKind(documents, "NetworkPolicy")) {
    if (At(policy, "metadata/name").text != "cri-resmgr-daemon") continue;
    EXPECT_EQ(At(policy, "spec/ingress/0/from").items.size(), 1U) << "Prometheus alone";
  }
}

}  // namespace
}  // namespace resmgr::test
