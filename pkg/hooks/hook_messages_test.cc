// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_messages.h"

#include <gtest/gtest.h>

#include "pkg/api/runtimehook.pb.h"

namespace resmgr::hooks {
namespace {

Pod HookedPod() {
  Pod pod;
  pod.uid = PodUid("uid-1");
  pod.name = "web";
  pod.namespace_name = "shop";
  pod.cgroup_parent = "/kubepods/besteffort/poduid-1";
  pod.runtime_handler = "kata";
  pod.labels = {{"koordinator.sh/qosClass", "BE"}};
  pod.annotations = {{"note", "a\xff"}};
  pod.overhead.memory_limit = 160;
  pod.resources.cpu_shares = 512;
  return pod;
}

TEST(HookMessages, APodsRequestIsComplete) {
  const auto request = ToPodRequest(HookedPod(), 3);
  EXPECT_EQ(request.pod_meta().name(), "web");
  EXPECT_EQ(request.pod_meta().uid(), "uid-1");
  EXPECT_EQ(request.pod_meta().namespace_(), "shop");
  EXPECT_EQ(request.pod_meta().attempt(), 3U);
  EXPECT_EQ(request.runtime_handler(), "kata");
  EXPECT_EQ(request.labels().at("koordinator.sh/qosClass"), "BE");
  EXPECT_EQ(request.annotations().at("note"), "a\xEF\xBF\xBD");
  EXPECT_EQ(request.cgroup_parent(), "/kubepods/besteffort/poduid-1");
  EXPECT_EQ(request.overhead().memory_limit_in_bytes(), 160);
  EXPECT_EQ(request.resources().cpu_shares(), 512);
}

TEST(HookMessages, ACreationsRequestIsComplete) {
  CreateRequest create;
  create.name = "main";
  create.attempt = 2;
  create.annotations = {{"c", "1"}};
  create.resources.cpu_quota = -1;
  create.resources.cpuset_cpus = "0-1";
  create.resources.hugepage_limits["2MB"] = 4;
  ContainerDetails details;
  details.memory_swap_limit = 99;
  details.unified = {{"memory.high", "5"}};
  details.environment = {{"A", "1"}, {"B", "x=y"}, {"A", "2\xfe"}};
  details.cgroup_parent = "/kubepods/besteffort/poduid-1";
  api::ContainerResourceHookRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodedPodPart(ToPodRequest(HookedPod(), 3), true) +
                                      ToCreateRequest(create, details).SerializeAsString()));
  EXPECT_EQ(request.pod_meta().attempt(), 3U);
  EXPECT_EQ(request.container_meta().name(), "main");
  EXPECT_EQ(request.container_meta().attempt(), 2U);
  EXPECT_EQ(request.container_meta().id(), "");
  EXPECT_EQ(request.container_annotations().at("c"), "1");
  EXPECT_EQ(request.container_resources().cpu_quota(), -1);
  EXPECT_EQ(request.container_resources().cpuset_cpus(), "0-1");
  EXPECT_EQ(request.container_resources().memory_swap_limit_in_bytes(), 99);
  EXPECT_EQ(request.container_resources().unified().at("memory.high"), "5");
  ASSERT_EQ(request.container_resources().hugepage_limits_size(), 1);
  EXPECT_EQ(request.container_resources().hugepage_limits(0).limit(), 4U);
  EXPECT_EQ(request.pod_resources().cpu_shares(), 512);
  EXPECT_EQ(request.pod_labels().at("koordinator.sh/qosClass"), "BE");
  EXPECT_EQ(request.pod_annotations().size(), 1U);
  EXPECT_EQ(request.pod_cgroup_parent(), "/kubepods/besteffort/poduid-1");
  EXPECT_EQ(request.container_envs().at("A"), "2\xEF\xBF\xBD");
  EXPECT_EQ(request.container_envs().at("B"), "x=y");
}

TEST(HookMessages, K17AnEmptyCreationHasAMessageForEachPart) {
  const auto request = ToCreateRequest(CreateRequest(), ContainerDetails());
  EXPECT_TRUE(request.has_pod_meta());
  EXPECT_TRUE(request.has_container_meta());
  EXPECT_TRUE(request.has_container_resources());
  EXPECT_TRUE(request.has_pod_resources());
}

TEST(HookMessages, K14AnUpdateIsShownWithWhatTheContainerHas) {
  CreateRequest create;
  create.resources.cpu_shares = 1024;
  create.resources.cpuset_cpus = "0-1";
  create.resources.hugepage_limits["2MB"] = 4;
  ContainerDetails details;
  details.cgroup_parent = "/kubepods/besteffort/poduid-1";
  auto request = ToCreateRequest(create, details);
  LinuxResources update;
  update.cpuset_cpus = "2-3";
  update.hugepage_limits["2MB"] = 8;
  details.memory_swap_limit = 99;
  details.unified = {{"u", "1"}};
  SetUpdate(update, StringMap({{"a", "2"}, {"new", "3"}}), details, request);
  EXPECT_EQ(request.container_resources().cpu_shares(), 1024);
  EXPECT_EQ(request.container_resources().cpuset_cpus(), "2-3");
  ASSERT_EQ(request.container_resources().hugepage_limits_size(), 1);
  EXPECT_EQ(request.container_resources().hugepage_limits(0).limit(), 8U);
  EXPECT_EQ(request.container_resources().memory_swap_limit_in_bytes(), 99);
  EXPECT_EQ(request.container_annotations().at("a"), "2");
  EXPECT_EQ(request.container_annotations().at("new"), "3");
  EXPECT_EQ(request.container_resources().unified().at("u"), "1");
  EXPECT_EQ(request.pod_cgroup_parent(), "/kubepods/besteffort/poduid-1");
}

using HookResponse = ::runtime::v1alpha1::ContainerResourceHookResponse;
using Variables = google::protobuf::Map<std::string, std::string>;

Variables Sent() {
  Variables sent;
  sent["PATH"] = "/bin";
  sent["OPTS"] = "a=b";
  sent["EMPTY"] = "";
  return sent;
}

SentVariables Views(const Variables& variables) {
  return SentVariables(variables.begin(), variables.end());
}
// Views of variables that live as long as the test.
SentVariables SentViews() {
  static const auto* const kSent = new Variables(Sent());
  return Views(*kSent);
}

HookResponse Repeating(const Variables& variables) {
  HookResponse answer;
  answer.set_pod_cgroup_parent("/kubepods");
  (*answer.mutable_container_annotations())["a"] = "1";
  answer.mutable_container_resources()->set_cpu_shares(7);
  *answer.mutable_container_envs() = variables;
  return answer;
}

TEST(HookAnswerTest, LosesTheVariablesThatItRepeats) {
  HookResponse answer = Repeating(Sent());
  const auto rest = WithoutRepeatedEnvironment(answer.SerializeAsString(), SentViews());
  ASSERT_TRUE(rest.has_value());
  HookResponse left;
  ASSERT_TRUE(left.ParseFromString(*rest));
  answer.clear_container_envs();
  EXPECT_EQ(left.SerializeAsString(), answer.SerializeAsString());
}

TEST(HookAnswerTest, KeepsVariablesThatDiffer) {
  for (const auto& [name, value] : {std::pair("PATH", "/sbin"), std::pair("NEW", "1")}) {
    Variables variables = Sent();
    variables[name] = value;
    EXPECT_EQ(WithoutRepeatedEnvironment(Repeating(variables).SerializeAsString(), SentViews()),
              std::nullopt);
  }
  Variables fewer = Sent();
  fewer.erase("EMPTY");
  EXPECT_EQ(WithoutRepeatedEnvironment(Repeating(fewer).SerializeAsString(), SentViews()),
            std::nullopt);
  EXPECT_EQ(WithoutRepeatedEnvironment("", SentViews()), std::nullopt);
}

TEST(HookAnswerTest, OneThatIsRepeatedTwiceDoesNotHideAMissingOne) {
  Variables fewer = Sent();
  fewer.erase("EMPTY");
  Variables one;
  one["PATH"] = "/bin";
  HookResponse again;
  *again.mutable_container_envs() = one;
  EXPECT_EQ(WithoutRepeatedEnvironment(
                Repeating(fewer).SerializeAsString() + again.SerializeAsString(), SentViews()),
            std::nullopt);
}

TEST(HookAnswerTest, BytesThatAreNoAnswerAreLeftToTheParser) {
  const std::string whole = Repeating(Sent()).SerializeAsString();
  for (size_t cut = 1; cut < 8; ++cut) {
    EXPECT_EQ(WithoutRepeatedEnvironment(whole.substr(0, whole.size() - cut), SentViews()),
              std::nullopt);
  }
  // A number in the field of the variables, and an entry with a third field.
  EXPECT_EQ(WithoutRepeatedEnvironment(whole + "\x20\x01", SentViews()), std::nullopt);
  EXPECT_EQ(WithoutRepeatedEnvironment(whole + "\x22\x03\x1a\x01x", SentViews()), std::nullopt);
}

TEST(HookAnswerTest, NothingSentAndNothingRepeatedIsTheWholeAnswer) {
  const std::string whole = Repeating({}).SerializeAsString();
  EXPECT_EQ(WithoutRepeatedEnvironment(whole, {}), whole);
}

}  // namespace
}  // namespace resmgr::hooks
