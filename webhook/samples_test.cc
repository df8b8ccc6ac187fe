// SPDX-License-Identifier: Apache-2.0
// The sample files are valid YAML and keep the promises that make the webhook safe.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/sample_documents.h"

namespace resmgr::webhook {
namespace {

using test::At;
using test::OfKind;
using test::Texts;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;

std::vector<ConfigNode> Documents(const std::string& name) {
  return test::ReadDocuments(RESMGR_SOURCE_DIR "/sample-configs/webhook/" + name);
}

TEST(SamplesTest, TheConfigurationCannotLockAClusterOut) {
  const auto documents = Documents("webhook-configuration.yaml");
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(At(documents[0], "kind").text, "MutatingWebhookConfiguration");
  ASSERT_EQ(At(documents[0], "webhooks").items.size(), 1u);
  const ConfigNode webhook = At(documents[0], "webhooks/0");
  EXPECT_EQ(At(webhook, "failurePolicy").text, "Ignore");
  EXPECT_EQ(At(webhook, "sideEffects").text, "None");
  EXPECT_LE(std::stoi(At(webhook, "timeoutSeconds").text), 5);
  EXPECT_THAT(Texts(At(webhook, "admissionReviewVersions")), ElementsAre("v1", "v1beta1"));
  EXPECT_THAT(Texts(At(webhook, "rules/0/operations")), ElementsAre("CREATE", "UPDATE"));
  EXPECT_THAT(Texts(At(webhook, "rules/0/resources")), ElementsAre("pods", "pods/status"));
  // The author of a pod chooses its labels and could use them to avoid the webhook.
  EXPECT_TRUE(At(webhook, "objectSelector").entries.empty());
  const ConfigNode selector = At(webhook, "namespaceSelector/matchExpressions/0");
  EXPECT_EQ(At(selector, "key").text, "kubernetes.io/metadata.name");
  EXPECT_EQ(At(selector, "operator").text, "NotIn");
  EXPECT_THAT(Texts(At(selector, "values")), Contains("kube-system"));
  EXPECT_THAT(Texts(At(selector, "values")),
              Contains(At(webhook, "clientConfig/service/namespace").text));
}

// Before Kubernetes 1.21 namespaces have only the labels that they were given.
TEST(SamplesTest, TheWebhookNeverWaitsForItselfInOldClustersEither) {
  for (const ConfigNode& document : Documents("webhook.yaml")) {
    if (At(document, "kind").text == "Namespace") {
      EXPECT_THAT(
          At(document, "metadata/labels").entries,
          Contains(AllOf(Field(&ConfigNode::Entry::key, "kubernetes.io/metadata.name"),
                         Field(&ConfigNode::Entry::value,
                               Field(&ConfigNode::text, At(document, "metadata/name").text)))));
    }
  }
}

TEST(SamplesTest, TheDeploymentFitsItsServiceAndTheConfiguration) {
  const auto documents = Documents("webhook.yaml");
  const ConfigNode service = OfKind(documents, "Service");
  const ConfigNode client =
      At(Documents("webhook-configuration.yaml").at(0), "webhooks/0/clientConfig/service");
  EXPECT_EQ(At(service, "metadata/name").text, At(client, "name").text);
  EXPECT_EQ(At(service, "metadata/namespace").text, At(client, "namespace").text);
  EXPECT_EQ(At(service, "spec/ports/0/port").text, At(client, "port").text);

  const ConfigNode pod = At(OfKind(documents, "Deployment"), "spec/template");
  const ConfigNode container = At(pod, "spec/containers/0");
  EXPECT_EQ(At(service, "spec/ports/0/targetPort").text, At(container, "ports/0/name").text);
  EXPECT_THAT(Texts(At(container, "args")),
              Contains("-port=" + At(container, "ports/0/containerPort").text));
  EXPECT_EQ(At(container, "readinessProbe/httpGet/path").text, "/healthz");
  EXPECT_EQ(At(pod, "metadata/labels").entries.at(0).value.text,
            At(service, "spec/selector").entries.at(0).value.text);
  EXPECT_EQ(OfKind(documents, "NetworkPolicy").kind, ConfigNode::Kind::kMap);
}

}  // namespace
}  // namespace resmgr::webhook
