// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/warnings.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/resource_manager.h"
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

TEST_F(AnnotationWarningsTest, AMistypedValueInAMapIsToldToo) {
  Create("map", {{"cri-resource-manager.intel.com/prefer-shared-cpus", "map: maybe"}});
  EXPECT_THAT(log_.With("prefer-shared-cpus"),
              ElementsAre(HasSubstr("map ignored: \"maybe\" is not true or false")));
}

TEST_F(AnnotationWarningsTest, AlsoOfWhatIsFoundRunningAndUnderAnotherPolicy) {
  Create("asks", {{"ask", "true"}});
  log_.lines.clear();
  node_.Restart();
  EXPECT_THAT(log_.With("annotation ask"), ElementsAre(HasSubstr("ns/asks/asks")));
  log_.lines.clear();
  std::optional<Status> done;
  node_.manager().policy_changes().Set(std::make_unique<Deaf>(node_.machine()),
                                       [&done](const Status& status) { done = status; });
  EXPECT_THAT(log_.With("annotation ask"), ElementsAre(HasSubstr("ns/asks/asks")));
  EXPECT_EQ(done, OkStatus());
}

class LimitWarningsTest : public testing::Test {
 protected:
  static ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.runtimes.classes["runc"] = {};
    options.runtimes.classes["gvisor"] = {.pinning = Pinning::kNone};
    options.runtimes.classes["kata"] = {.pinning = Pinning::kSandbox};
    return options;
  }
  // A container in a pod of its own.
  void Create(const std::string& name, const std::string& handler, int64_t quota) {
    const PodSandboxId id("sandbox-of-" + name);
    Pod pod;
    pod.id = id;
    pod.name = name;
    pod.namespace_name = "ns";
    pod.runtime_handler = handler;
    node_.runtime.held.pods.push_back(pod);
    node_.manager().PodCreated(std::move(pod));
    CreateRequest request = TestNode::Request(id, name, 500);
    request.resources.cpu_quota = quota;
    const auto created = node_.Create(request);
    EXPECT_TRUE(created.ok()) << created.status();
  }

  test::CapturedLog warnings_{"has a CPU limit"};
  TestNode node_{test::S1Ht(), test::FirstFit, Options()};
};

// R08: declared, where it cannot be enforced.
TEST_F(LimitWarningsTest, R08OneForEachHandlerWhoseLimitsMayHaveNoEffect) {
  Create("first", "gvisor", 50'000);
  EXPECT_THAT(warnings_.lines, ElementsAre(AllOf(HasSubstr("ns/first/first"), HasSubstr("gvisor"),
                                                 HasSubstr("Pinning none"))));
  Create("second", "gvisor", 50'000);
  EXPECT_EQ(warnings_.lines.size(), 1U);
  Create("vm", "kata", 50'000);
  ASSERT_EQ(warnings_.lines.size(), 2U);
  EXPECT_THAT(warnings_.lines[1], AllOf(HasSubstr("ns/vm/vm"), HasSubstr("Pinning sandbox")));
}

TEST_F(LimitWarningsTest, NoneWithoutALimitOrWhereContainersAreBound) {
  Create("unlimited", "gvisor", -1);
  Create("unset", "gvisor", 0);
  Create("bound", "runc", 50'000);
  Create("other", "not-configured", 50'000);
  EXPECT_THAT(warnings_.lines, IsEmpty());
}

TEST_F(LimitWarningsTest, WhatIsFoundRunningIsReportedToo) {
  Create("first", "gvisor", 50'000);
  warnings_.lines.clear();
  node_.Restart();
  EXPECT_THAT(warnings_.lines, ElementsAre(HasSubstr("ns/first/first")));
}

}  // namespace
}  // namespace resmgr
