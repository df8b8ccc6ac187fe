// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/annotation_warnings.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/captured_log.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::FirstFitPolicy;
using test::TestNode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Heeds no annotation "ask" of pods.
class Deaf final : public FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::vector<std::string> Unheeded(const Pod& pod, const Container&) const override {
    if (!pod.annotations.contains("ask")) return {};
    return {"annotation ask ignored: namespace ns is not in policy.deaf.PrivilegedNamespaces"};
  }
};

class AnnotationWarningsTest : public testing::Test {
 protected:
  void Create(const std::string& name, StringMap annotations) {
    Pod pod;
    pod.id = PodSandboxId("sandbox-of-" + name);
    pod.name = name;
    pod.namespace_name = "ns";
    pod.annotations = std::move(annotations);
    const PodSandboxId id = pod.id;
    node_.runtime.held.pods.push_back(pod);
    node_.manager().PodCreated(std::move(pod));
    const auto created = node_.Create(TestNode::Request(id, name, 500));
    EXPECT_TRUE(created.ok()) << created.status();
  }

  test::CapturedLog log_;
  TestNode node_{test::S1Ht(),
                 [](const Machine& machine) { return std::make_unique<Deaf>(machine); }};
};

TEST_F(AnnotationWarningsTest, NamesPodAnnotationAndKeyWhenItIsPlaced) {
  Create("plain", {});
  EXPECT_THAT(log_.With("annotation ask"), IsEmpty());
  Create("asks", {{"ask", "true"}});
  EXPECT_THAT(log_.With("annotation ask"),
              ElementsAre(AllOf(HasSubstr("warning"), HasSubstr("ns/asks/asks"),
                                HasSubstr("annotation ask ignored"),
                                HasSubstr("policy.deaf.PrivilegedNamespaces"))));
}

TEST_F(AnnotationWarningsTest, AMistypedKeyIsToldOnce) {
  const std::string key = "aligment.resource-policy.nri.io/container.typo";
  Create("typo", {{key, "l3"}});
  EXPECT_THAT(log_.With("annotation aligment"),
              ElementsAre(AllOf(HasSubstr("pod ns/typo"), HasSubstr(key),
                                HasSubstr("did you mean alignment?"))));
  const auto second = node_.Create(TestNode::Request(PodSandboxId("sandbox-of-typo"), "b", 500));
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(log_.Times("annotation aligment"), 1);
}

TEST_F(AnnotationWarningsTest, AlsoOfWhatIsFoundRunningAndUnderAnotherPolicy) {
  Create("asks", {{"ask", "true"}});
  log_.lines.clear();
  node_.Restart();
  EXPECT_THAT(log_.With("annotation ask"), ElementsAre(HasSubstr("ns/asks/asks")));
  log_.lines.clear();
  std::optional<Status> done;
  node_.manager().SetPolicy(std::make_unique<Deaf>(node_.machine()),
                            [&done](const Status& status) { done = status; });
  EXPECT_THAT(log_.With("annotation ask"), ElementsAre(HasSubstr("ns/asks/asks")));
  EXPECT_EQ(done, OkStatus());
}

}  // namespace
}  // namespace resmgr
