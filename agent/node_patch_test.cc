// SPDX-License-Identifier: Apache-2.0
#include "agent/node_patch.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/sanitizer.h"
#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using test::Fails;
using test::IsOk;
using test::Must;
using testing::HasSubstr;

const KeyRules kRules{.domains = {"ours.io"}, .reserved = {"ours.io/group"}};

Json Node() {
  return Json::parse(R"({
    "metadata": {"name": "n1", "resourceVersion": "42",
                 "labels": {"ours.io/a": "1", "theirs.io/b": "2", "ours.io/group": "g"},
                 "annotations": {"theirs.io/c": "3"}},
    "spec": {"podCIDR": "10.0.0.0/24",
             "taints": [{"key": "theirs.io/t", "effect": "NoSchedule"},
                        {"key": "ours.io/t", "effect": "NoExecute"}]},
    "status": {"capacity": {"cpu": "4"}}})");
}

StatusOr<std::optional<Json>> Plan(const std::vector<PatchOperation>& operations) {
  return PlanNodePatch(Node(), operations, kRules);
}
// The patch as a JSON value, or why there is none.
Json Merge(const std::vector<PatchOperation>& operations) {
  const auto plan = Plan(operations);
  if (!plan.ok()) return Describe(plan.status());
  return plan->value_or(Json());
}

TEST(NodePatchTest, SetsLabelsAndAnnotations) {
  EXPECT_EQ(Merge({{"add", "/metadata/labels/ours.io~1new", "\"x\""},
                   {"replace", "/metadata/labels/ours.io~1a", "\"y\""},
                   {"add", "/metadata/annotations/sub.ours.io~1k", "\"z\""}}),
            Json::parse(R"({"metadata": {"resourceVersion": "42",
              "labels": {"ours.io/new": "x", "ours.io/a": "y"},
              "annotations": {"sub.ours.io/k": "z"}}})"));
}

TEST(NodePatchTest, RemovesWhatIsOurs) {
  EXPECT_EQ(Merge({{"remove", "/metadata/labels/ours.io~1a", ""}}),
            Json::parse(R"({"metadata":{"resourceVersion":"42","labels":{"ours.io/a":null}}})"));
}

TEST(NodePatchTest, AddsAndRemovesTaintsOfOurs) {
  EXPECT_EQ(Merge({{"remove", "/spec/taints/1", ""},
                   {"add", "/spec/taints/-", R"({"key":"ours.io/u","effect":"NoSchedule"})"}}),
            Json::parse(R"({"metadata": {"resourceVersion": "42"}, "spec": {"taints": [
              {"key": "theirs.io/t", "effect": "NoSchedule"},
              {"key": "ours.io/u", "effect": "NoSchedule"}]}})"));
}

TEST(NodePatchTest, SendsNothingWhereNothingChanges) {
  EXPECT_EQ(Merge({}), Json());
  EXPECT_EQ(Merge({{"add", "/metadata/labels/ours.io~1a", "\"1\""},
                   {"test", "/metadata/name", "\"n1\""}}),
            Json());
}

TEST(NodePatchTest, RefusesWhatIsNotOurs) {
  const std::vector<PatchOperation> operations[] = {
      {{"add", "/metadata/labels/theirs.io~1b", "\"x\""}},
      {{"remove", "/metadata/labels/theirs.io~1b", ""}},
      {{"add", "/metadata/labels/plain", "\"x\""}},
      {{"add", "/metadata/labels/notours.io~1b", "\"x\""}},
      {{"add", "/metadata/labels/ours.io.evil~1b", "\"x\""}},
      {{"replace", "/metadata/labels/ours.io~1group", "\"other\""}},
      {{"remove", "/metadata/labels", ""}},
      {{"replace", "/metadata/annotations", "{}"}},
      {{"remove", "/spec/taints/0", ""}},
      {{"replace", "/spec/taints", "[]"}},
      {{"replace", "/spec/taints/1", R"({"key":"theirs.io/t","effect":"NoExecute"})"}},
      {{"add", "/spec/unschedulable", "true"}},
      {{"replace", "/metadata/name", "\"other\""}},
      {{"replace", "/status/capacity/cpu", "\"400\""}},
      {{"replace", "", "{}"}},
      {{"replace", "", "[]"}},
      {{"remove", "/spec", ""}},
  };
  for (const auto& list : operations) {
    EXPECT_EQ(Plan(list).status().code(), StatusCode::kPermissionDenied)
        << list[0].op << " " << list[0].path << ": " << Merge(list);
  }
}

TEST(NodePatchTest, OneForeignChangeRefusesThePatch) {
  EXPECT_THAT(Plan({{"add", "/metadata/labels/ours.io~1x", "\"1\""},
                    {"add", "/metadata/labels/theirs.io~1x", "\"1\""}}),
              Fails(StatusCode::kPermissionDenied,
                    testing::AllOf(HasSubstr("theirs.io/x"), HasSubstr("ours.io"))));
}

TEST(NodePatchTest, RefusesWhatIsNoPatch) {
  const PatchOperation operations[] = {
      {"add", "/metadata/labels/ours.io~1a", "unquoted"},
      {"add", "/metadata/labels/ours.io~1a", ""},
      {"add", "/metadata/labels/ours.io~1a", "5"},
      {"add", "no pointer", "\"1\""},
      {"add", "/no/such/parent", "\"1\""},
      {"remove", "/metadata/labels/ours.io~1zzz", ""},
      {"remove", "", ""},
      {"remove", "/spec/taints/77", ""},
      {"replace", "/spec/taints/-1", "{}"},
      {"test", "/metadata/name", "\"n2\""},
      {"copy", "/metadata/labels/ours.io~1a", "\"1\""},
      {"move", "/metadata/labels/ours.io~1a", "\"1\""},
      {"", "", ""},
  };
  for (const PatchOperation& operation : operations) {
    EXPECT_EQ(Plan({operation}).status().code(), StatusCode::kInvalidArgument)
        << operation.op << " " << operation.path << ": " << Merge({operation});
  }
  EXPECT_THAT(Plan(std::vector<PatchOperation>(1000)),
              Fails(StatusCode::kInvalidArgument, HasSubstr("limit")));
}

TEST(NodePatchTest, RefusesDeepValues) {
  for (const size_t depth : {size_t{201}, size_t{200'000}}) {
    const std::string value = std::string(depth, '[') + std::string(depth, ']');
    const auto plan = PlanNodePatch(
        Json::object(), {{.op = "add", .path = "/metadata", .value = value}}, KeyRules{});
    EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument) << depth;
  }
}

TEST(NodePatchTest, ReservedKeysAreReservedInAnyCase) {
  const KeyRules rules{.domains = {"d.io"}, .reserved = {"d.io/config-status"}};
  EXPECT_FALSE(rules.Check("annotation", "d.io/Config-Status").ok());
  EXPECT_FALSE(rules.Check("annotation", "d.io/config-status").ok());
  EXPECT_TRUE(rules.Check("annotation", "d.io/config-state").ok());
}

TEST(NodePatchTest, TaintsAWholeNewNode) {
  const Json node = {{"metadata", {{"name", "n"}, {"resourceVersion", "1"}}},
                     {"spec", Json::object()}};
  const auto plan =
      Must(PlanNodePatch(node, {{"add", "/spec/taints", R"([{"key":"ours.io/t"}])"}}, kRules));
  EXPECT_EQ((*plan)["spec"]["taints"][0]["key"], "ours.io/t");
}

TEST(NodePatchTest, RefusesToPutSomethingIntoAScalar) {
  EXPECT_THAT(Plan({{"add", "/metadata/labels/ours.io~1a/b", "1"}}),
              Fails(StatusCode::kInvalidArgument, HasSubstr("/metadata/labels/ours.io~1a")));
  EXPECT_THAT(Plan({{"replace", "/metadata/labels", "7"}, {"add", "/metadata/labels/x", "1"}}),
              Fails(StatusCode::kInvalidArgument, HasSubstr("neither object nor list")));
}

// For any operations: the merge patch changes only our keys of the node, and has the same result as
// the operations.
TEST(NodePatchTest, NeverTouchesWhatIsNotOurs) {
  constexpr unsigned kSeed = 99;
  std::mt19937 random(kSeed);
  const std::vector<std::string> ops = {"add", "replace", "remove", "test"};
  const std::vector<std::string> paths = {"/metadata/labels/ours.io~1a",
                                          "/metadata/labels/theirs.io~1b",
                                          "/metadata/annotations/ours.io~1x",
                                          "/metadata/annotations",
                                          "/metadata/labels",
                                          "/spec/taints/0",
                                          "/spec/taints/1",
                                          "/spec/taints/-",
                                          "/spec/podCIDR"};
  const std::vector<std::string> values = {
      "\"1\"", "\"2\"", "{}", "[]", "7", R"({"key":"ours.io/k"})", R"({"key":"theirs.io/t"})"};
  int accepted = 0;
  constexpr int kRounds = test::kSanitized ? 4'000 : 20'000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<PatchOperation> operations;
    for (size_t i = random() % 3 + 1; i > 0; --i) {
      operations.push_back({ops[random() % ops.size()], paths[random() % paths.size()],
                            values[random() % values.size()]});
    }
    const auto plan = Plan(operations);
    if (!plan.ok() || !*plan) continue;
    ++accepted;
    Json patch = **plan;
    ASSERT_EQ(patch["metadata"]["resourceVersion"], "42");
    Json after = Node();
    after.merge_patch(patch);
    EXPECT_EQ(after["metadata"]["labels"]["theirs.io/b"], "2") << "seed " << kSeed;
    EXPECT_EQ(after["metadata"]["labels"]["ours.io/group"], "g");
    EXPECT_EQ(after["metadata"]["annotations"]["theirs.io/c"], "3");
    EXPECT_EQ(after["spec"]["podCIDR"], "10.0.0.0/24");
    EXPECT_EQ(after["status"], Node()["status"]);
    int foreign = 0;
    for (const Json& taint : after["spec"]["taints"])
      foreign += taint["key"] == "theirs.io/t" ? 1 : 0;
    EXPECT_GE(foreign, 1);
  }
  EXPECT_GT(accepted, 100);
}

TEST(CapacityPatchTest, SetsResourcesOfOurs) {
  const auto patch = Must(PlanCapacityPatch({{"ours.io/cpus", "4"}}, kRules));
  EXPECT_EQ(patch, Json::parse(R"({"status":{"capacity":{"ours.io/cpus":"4"}}})"));
}

TEST(CapacityPatchTest, RefusesForeignResourcesAndBadQuantities) {
  EXPECT_EQ(PlanCapacityPatch({{"cpu", "400"}}, kRules).status().code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(PlanCapacityPatch({{"theirs.io/x", "4"}}, kRules).status().code(),
            StatusCode::kPermissionDenied);
  EXPECT_THAT(PlanCapacityPatch({{"ours.io/x", "many"}}, kRules),
              Fails(StatusCode::kInvalidArgument, HasSubstr("ours.io/x")));
}

}  // namespace
}  // namespace resmgr::agent
