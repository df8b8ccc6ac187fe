// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_answer.h"

#include <gtest/gtest.h>

#include "pkg/api/runtimehook.pb.h"

namespace resmgr::hooks {
namespace {

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
