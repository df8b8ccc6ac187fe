// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_merge.h"

#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace resmgr::hooks {
namespace {

const std::string kKoordlet = "koordlet.json";
const std::string kOther = "other.json";

api::ContainerResourceHookRequest SentToMerge() {
  api::ContainerResourceHookRequest request;
  auto& resources = *request.mutable_container_resources();
  resources.set_cpu_period(100'000);
  resources.set_cpu_quota(200'000);
  resources.set_cpu_shares(1024);
  resources.set_memory_limit_in_bytes(1 << 20);
  resources.set_oom_score_adj(900);
  resources.set_cpuset_cpus("0-3");
  resources.set_cpuset_mems("0");
  (*resources.mutable_unified())["memory.high"] = "5";
  auto& limit = *resources.add_hugepage_limits();
  limit.set_page_size("2MB");
  limit.set_limit(7);
  request.set_pod_cgroup_parent("/kubepods/pod1");
  (*request.mutable_container_annotations())["a"] = "1";
  (*request.mutable_container_envs())["PATH"] = "/bin";
  (*request.mutable_container_envs())["OPTS"] = "a=b=c";
  return request;
}

// koordlet's answer when it changes nothing.
api::ContainerResourceHookResponse Echo(const api::ContainerResourceHookRequest& request) {
  api::ContainerResourceHookResponse answer;
  *answer.mutable_container_annotations() = request.container_annotations();
  *answer.mutable_container_resources() = request.container_resources();
  answer.set_pod_cgroup_parent(request.pod_cgroup_parent());
  *answer.mutable_container_envs() = request.container_envs();
  return answer;
}

ContainerHookMerge Creation() {
  return {HookPoint::kPreCreateContainer, SentToMerge()};
}

TEST(HookMerge, AnEchoIsNoChange) {
  ContainerHookMerge merge = Creation();
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, Echo(SentToMerge())).ok());
  EXPECT_TRUE(merge.changes().empty());
}

TEST(HookMerge, AnEmptyAnswerIsNoChange) {
  for (const AnswerStyle style : {AnswerStyle::kEcho, AnswerStyle::kSparse}) {
    ContainerHookMerge merge = Creation();
    ASSERT_TRUE(merge.Add(kKoordlet, style, {}).ok());
    EXPECT_TRUE(merge.changes().empty());
  }
}

TEST(HookMerge, K11EmptyCpusetClearsAndQuotaIsLifted) {
  ContainerHookMerge merge = Creation();
  auto answer = Echo(SentToMerge());
  answer.mutable_container_resources()->clear_cpuset_cpus();
  answer.mutable_container_resources()->set_cpu_quota(-1);
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  EXPECT_TRUE(merge.changes().clears_cpus());
  EXPECT_FALSE(merge.changes().clears_mems());
  const Adjustment& adjustment = merge.changes();
  EXPECT_FALSE(adjustment.values.cpus);
  EXPECT_EQ(adjustment.values.cpu_quota, -1);
  const std::vector<FieldChange> changes{{.field = Field::kCpusetCpus},
                                         {.field = Field::kCpuQuota}};
  EXPECT_EQ(adjustment.Changes(), changes);
}

// koordlet sends this for each best effort container without a limit of batch memory. CRI-O and
// dockerd refuse a request with it.
TEST(HookMerge, NumbersThatAreNegativeAreNoChange) {
  for (const HookPoint point :
       {HookPoint::kPreCreateContainer, HookPoint::kPreUpdateContainerResources}) {
    for (const bool limited : {true, false}) {
      auto sent = SentToMerge();
      auto& resources = *sent.mutable_container_resources();
      if (!limited) resources.clear_memory_limit_in_bytes();
      ContainerHookMerge merge(point, sent);
      auto answer = Echo(sent);
      answer.mutable_container_resources()->set_memory_limit_in_bytes(-1);
      answer.mutable_container_resources()->set_memory_swap_limit_in_bytes(-1);
      answer.mutable_container_resources()->set_cpu_shares(-1);
      answer.mutable_container_resources()->set_cpu_period(-1);
      ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
      EXPECT_TRUE(merge.changes().empty());
      EXPECT_EQ(merge.request().container_resources().memory_limit_in_bytes(),
                limited ? 1 << 20 : 0);
    }
  }
}

TEST(HookMerge, NumbersWhoseNegativeValuesMeanSomethingPass) {
  ContainerHookMerge merge = Creation();
  auto answer = Echo(SentToMerge());
  answer.mutable_container_resources()->set_cpu_quota(-1);
  answer.mutable_container_resources()->set_oom_score_adj(-998);
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  EXPECT_EQ(merge.changes().values.cpu_quota, -1);
  ASSERT_NE(merge.changes().wide(), nullptr);
  EXPECT_EQ(merge.changes().wide()->oom_score_adj, -998);
}

TEST(HookMerge, K12SparseAnswerChangesOnlyWhatItSets) {
  ContainerHookMerge merge = Creation();
  api::ContainerResourceHookResponse answer;
  answer.mutable_container_resources()->set_cpu_shares(512);
  (*answer.mutable_container_envs())["NEW"] = "1";
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kSparse, answer).ok());
  EXPECT_FALSE(merge.changes().clears_cpus());
  EXPECT_FALSE(merge.changes().clears_mems());
  const std::vector<FieldChange> changes{{.field = Field::kCpuShares},
                                         {.field = Field::kEnvironment, .key = "NEW"}};
  EXPECT_EQ(merge.changes().Changes(), changes);
}

TEST(HookMerge, AnEchoThatLeavesTheScoreOutSetsItToZero) {
  ContainerHookMerge merge = Creation();
  auto answer = Echo(SentToMerge());
  answer.mutable_container_resources()->set_oom_score_adj(0);
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  ASSERT_NE(merge.changes().wide(), nullptr);
  EXPECT_EQ(merge.changes().wide()->oom_score_adj, 0);
}

TEST(HookMerge, AScoreThatTheKernelDoesNotTakeIsNoChange) {
  ContainerHookMerge merge = Creation();
  auto answer = Echo(SentToMerge());
  answer.mutable_container_resources()->set_oom_score_adj(1001);
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  EXPECT_TRUE(merge.changes().empty());
}

TEST(HookMerge, K13OnlyTheVariableThatTheServerChangedIsEdited) {
  ContainerHookMerge merge = Creation();
  auto answer = Echo(SentToMerge());
  (*answer.mutable_container_envs())["NVIDIA_VISIBLE_DEVICES"] = "0,1";
  answer.mutable_container_envs()->erase("PATH");
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  ASSERT_NE(merge.changes().wide(), nullptr);
  const auto& environment = merge.changes().wide()->environment;
  EXPECT_EQ(std::distance(environment.begin(), environment.end()), 2);
  EXPECT_EQ(environment.Find("OPTS"), nullptr);
  ASSERT_NE(environment.Find("PATH"), nullptr);
  EXPECT_FALSE(environment.Find("PATH")->value);
  ASSERT_NE(environment.Find("NVIDIA_VISIBLE_DEVICES"), nullptr);
  EXPECT_EQ(environment.Find("NVIDIA_VISIBLE_DEVICES")->value, "0,1");
}

// The usual case in calls: dozens of variables are kept beside the message.
TEST(HookMerge, WhatIsBesideTheRequestCountsAsInIt) {
  api::PodSandboxHookRequest pod;
  pod.mutable_pod_meta()->set_name("p");
  pod.mutable_resources()->set_cpu_shares(7);
  (*pod.mutable_labels())["app"] = "web";
  (*pod.mutable_annotations())["note"] = "";
  auto own = SentToMerge();
  own.clear_container_envs();
  const auto make = [&] {
    return ContainerHookMerge(HookPoint::kPreCreateContainer, own, PlacementOwner::kServers,
                              {.pod = EncodedPodPart(pod, /*resources=*/true),
                               .environment = ToHookEnvironment({{.name = "A", .value = "1"},
                                                                 {.name = "B", .value = "\xff"},
                                                                 {.name = "A", .value = "2"}})});
  };
  ContainerHookMerge merge = make();
  api::ContainerResourceHookRequest sent;
  ASSERT_TRUE(sent.ParseFromString(merge.Encoded()));
  EXPECT_EQ(sent.pod_meta().name(), "p");
  EXPECT_EQ(sent.pod_resources().cpu_shares(), 7);
  EXPECT_EQ(sent.pod_labels().at("app"), "web");
  EXPECT_EQ(sent.pod_annotations().at("note"), "");
  ASSERT_EQ(sent.container_envs_size(), 2);
  EXPECT_EQ(sent.container_envs().at("A"), "2");
  EXPECT_EQ(sent.container_envs().at("B"), "\xef\xbf\xbd");
  EXPECT_EQ(sent.container_resources().cpu_shares(), 1024);

  api::ContainerResourceHookResponse answer = Echo(sent);
  const auto rest = merge.WithoutRepeatedEnvironment(answer.SerializeAsString());
  ASSERT_TRUE(rest.has_value());
  EXPECT_LT(rest->size(), answer.SerializeAsString().size());
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  EXPECT_TRUE(merge.changes().empty());

  merge = make();
  answer.mutable_container_envs()->erase("B");
  EXPECT_EQ(merge.WithoutRepeatedEnvironment(answer.SerializeAsString()), std::nullopt);
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  ASSERT_NE(merge.changes().wide(), nullptr);
  const auto& environment = merge.changes().wide()->environment;
  EXPECT_EQ(std::distance(environment.begin(), environment.end()), 1);
  ASSERT_NE(environment.Find("B"), nullptr);
  EXPECT_FALSE(environment.Find("B")->value);
  // The next server sees that, too.
  ASSERT_TRUE(sent.ParseFromString(merge.Encoded()));
  EXPECT_EQ(sent.container_envs_size(), 1);
}

TEST(HookMerge, K06LaterServerSeesTheFormerAndWinsAndTheConflictIsToldOnce) {
  ContainerHookMerge merge = Creation();
  auto answer = Echo(merge.request());
  answer.mutable_container_resources()->set_cpu_shares(2);
  answer.mutable_container_resources()->set_cpu_quota(-1);
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  EXPECT_EQ(merge.request().container_resources().cpu_shares(), 2);
  answer = Echo(merge.request());
  answer.mutable_container_resources()->set_cpu_shares(512);
  ASSERT_TRUE(merge.Add(kOther, AnswerStyle::kEcho, answer).ok());
  EXPECT_EQ(merge.changes().values.cpu_shares, 512);
  EXPECT_EQ(merge.changes().values.cpu_quota, -1);
  ASSERT_EQ(merge.owners().conflicts().size(), 1U);
  EXPECT_EQ(merge.owners().conflicts()[0].change.field, Field::kCpuShares);
  EXPECT_EQ(merge.owners().conflicts()[0].former, kKoordlet);
  EXPECT_EQ(merge.owners().conflicts()[0].later, kOther);
  EXPECT_EQ(merge.owners().Of({.field = Field::kCpuShares}), kOther);
  EXPECT_EQ(merge.owners().Of({.field = Field::kCpuQuota}), kKoordlet);
  EXPECT_EQ(merge.owners().Of({.field = Field::kCpuPeriod}), "");
}

TEST(HookMerge, WhereThePolicyOwnsThePlacementItIsShownAndKept) {
  ContainerHookMerge merge(HookPoint::kPreCreateContainer, SentToMerge(), PlacementOwner::kPolicy);
  auto answer = Echo(SentToMerge());
  answer.mutable_container_resources()->set_cpuset_cpus("7");
  answer.mutable_container_resources()->clear_cpuset_mems();
  answer.mutable_container_resources()->set_cpu_shares(77);
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  EXPECT_EQ(merge.request().container_resources().cpuset_cpus(), "0-3");
  EXPECT_EQ(merge.request().container_resources().cpuset_mems(), "0");
  EXPECT_EQ(merge.request().container_resources().cpu_shares(), 77);
  // The pipeline counts and drops this change.
  EXPECT_EQ(merge.changes().values.cpus, CpuSet{7});
  EXPECT_TRUE(merge.changes().clears_mems());
  answer = Echo(merge.request());
  answer.mutable_container_resources()->set_cpuset_cpus("5");
  ASSERT_TRUE(merge.Add(kOther, AnswerStyle::kEcho, answer).ok());
  EXPECT_TRUE(merge.owners().conflicts().empty());
}

TEST(HookMerge, MapsAreJoined) {
  ContainerHookMerge merge = Creation();
  api::ContainerResourceHookResponse answer;
  (*answer.mutable_container_annotations())["b"] = "2";
  (*answer.mutable_container_resources()->mutable_unified())["cpu.idle"] = "1";
  auto& limit = *answer.mutable_container_resources()->add_hugepage_limits();
  limit.set_page_size("1GB");
  limit.set_limit(9);
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kSparse, answer).ok());
  EXPECT_EQ(merge.request().container_annotations_size(), 2);
  EXPECT_EQ(merge.request().container_resources().unified_size(), 2);
  EXPECT_EQ(merge.request().container_resources().hugepage_limits_size(), 2);
  const std::vector<FieldChange> changes{{.field = Field::kHugepageLimits, .key = "1GB"},
                                         {.field = Field::kUnified, .key = "cpu.idle"},
                                         {.field = Field::kAnnotations, .key = "b"}};
  EXPECT_EQ(merge.changes().Changes(), changes);
}

TEST(HookMerge, CpusetFilesAreCountedAndNotShownWhereThePolicyOwnsThem) {
  ContainerHookMerge merge(HookPoint::kPreCreateContainer, SentToMerge(), PlacementOwner::kPolicy);
  auto answer = Echo(SentToMerge());
  (*answer.mutable_container_resources()->mutable_unified())["cpuset.cpus"] = "8-9";
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  EXPECT_FALSE(merge.request().container_resources().unified().contains("cpuset.cpus"));
  EXPECT_NE(merge.changes().wide()->unified.Find("cpuset.cpus"), nullptr);
}

TEST(HookMerge, TheLaterOfAFileAndANumberIsTheWord) {
  ContainerHookMerge merge = Creation();
  auto answer = Echo(merge.request());
  (*answer.mutable_container_resources()->mutable_unified())["cpu.max"] = "70000 100000";
  (*answer.mutable_container_resources()->mutable_unified())["cpu.weight"] = "5";
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  EXPECT_EQ(merge.owners().Of({.field = Field::kCpuQuota}), kKoordlet);
  answer = Echo(merge.request());
  answer.mutable_container_resources()->set_cpu_shares(2);
  ASSERT_TRUE(merge.Add(kOther, AnswerStyle::kEcho, answer).ok());
  EXPECT_FALSE(merge.request().container_resources().unified().contains("cpu.weight"));
  EXPECT_TRUE(merge.request().container_resources().unified().contains("cpu.max"));
  EXPECT_EQ(merge.owners().Of({.field = Field::kCpuShares}), kOther);
  EXPECT_EQ(merge.owners().Of({Field::kUnified, "cpu.weight"}), "");
  Adjustment adjustment = merge.TakeChanges();
  adjustment.TranslateFiles();
  adjustment.YieldToFiles();
  EXPECT_EQ(adjustment.values,
            (ResourceValues{.cpu_shares = 2, .cpu_quota = 70'000, .cpu_period = 100'000}));
}

TEST(HookMerge, KeysOfTheKubeletAreNotShownToTheNextServer) {
  ContainerHookMerge merge = Creation();
  api::ContainerResourceHookResponse answer;
  (*answer.mutable_container_annotations())["io.kubernetes.container.hash"] = "0";
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kSparse, answer).ok());
  EXPECT_FALSE(merge.request().container_annotations().contains("io.kubernetes.container.hash"));
  // The pipeline counts and drops this change.
  EXPECT_FALSE(merge.changes().empty());
  PodHookMerge pod({});
  api::PodSandboxHookResponse of_pod;
  (*of_pod.mutable_labels())["io.kubernetes.pod.uid"] = "x";
  ASSERT_TRUE(pod.Add(kKoordlet, of_pod).ok());
  EXPECT_TRUE(pod.request().labels().empty());
  EXPECT_FALSE(pod.changes().empty());
}

TEST(HookMerge, NothingIsTakenOfAnAnswerWithABrokenList) {
  for (const char* const list : {"zero", "3-1", "0-99999999"}) {
    ContainerHookMerge merge = Creation();
    auto answer = Echo(SentToMerge());
    answer.mutable_container_resources()->set_cpu_shares(2);
    answer.mutable_container_resources()->set_cpuset_mems(list);
    (*answer.mutable_container_annotations())["b"] = "2";
    const Status added = merge.Add(kKoordlet, AnswerStyle::kEcho, answer);
    EXPECT_EQ(added.code(), StatusCode::kInvalidArgument) << list;
    EXPECT_TRUE(merge.changes().empty());
    EXPECT_EQ(merge.request().SerializeAsString().size(), SentToMerge().SerializeAsString().size());
  }
}

TEST(HookMerge, NothingIsTakenOfAnAnswerWithAWrongVariable) {
  ContainerHookMerge merge = Creation();
  auto answer = Echo(SentToMerge());
  (*answer.mutable_container_envs())["A=B"] = "x";
  EXPECT_EQ(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(merge.changes().empty());
}

TEST(HookMerge, AnUpdateTakesNeitherVariablesNorCgroupParent) {
  ContainerHookMerge merge(HookPoint::kPreUpdateContainerResources, SentToMerge());
  auto answer = Echo(SentToMerge());
  answer.set_pod_cgroup_parent("/elsewhere");
  (*answer.mutable_container_envs())["NEW"] = "1";
  answer.mutable_container_resources()->set_cpuset_cpus("4");
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  const std::vector<FieldChange> changes{{.field = Field::kCpusetCpus}};
  EXPECT_EQ(merge.changes().Changes(), changes);
}

TEST(HookMerge, AStartChangesNothing) {
  ContainerHookMerge merge(HookPoint::kPreStartContainer, SentToMerge());
  api::ContainerResourceHookResponse answer;
  answer.mutable_container_resources()->set_cpu_shares(2);
  ASSERT_TRUE(merge.Add(kKoordlet, AnswerStyle::kEcho, answer).ok());
  EXPECT_TRUE(merge.changes().empty());
}

TEST(HookMerge, APodTakesLabelsAnnotationsAndCgroupParent) {
  api::PodSandboxHookRequest request;
  (*request.mutable_labels())["l"] = "1";
  request.set_cgroup_parent("/kubepods/pod1");
  PodHookMerge merge(request);
  api::PodSandboxHookResponse answer;
  (*answer.mutable_labels())["l"] = "1";
  answer.set_cgroup_parent("/kubepods/pod1");
  ASSERT_TRUE(merge.Add(kKoordlet, answer).ok());
  EXPECT_TRUE(merge.changes().empty());
  (*answer.mutable_labels())["l"] = "2";
  (*answer.mutable_annotations())["a"] = "3";
  answer.set_cgroup_parent("/kubepods/besteffort/pod1");
  answer.mutable_resources()->set_cpu_shares(2);
  ASSERT_TRUE(merge.Add(kOther, answer).ok());
  const std::vector<FieldChange> changes{{.field = Field::kLabels, .key = "l"},
                                         {.field = Field::kAnnotations, .key = "a"},
                                         {.field = Field::kCgroupParent}};
  EXPECT_EQ(merge.changes().Changes(), changes);
  EXPECT_EQ(merge.request().labels().at("l"), "2");
}

// In Docker the request that creates the pause container has a place for them.
TEST(HookMerge, ResourcesOfAPodAreThoseOfItsPauseContainer) {
  api::PodSandboxHookRequest request;
  request.set_cgroup_parent("/kubepods/pod1");
  PodHookMerge merge(request, PodResources::kTaken);
  api::PodSandboxHookResponse answer;
  ASSERT_TRUE(merge.Add(kKoordlet, answer).ok());
  answer.mutable_resources()->set_cpu_shares(1024);
  answer.mutable_resources()->set_cpu_quota(-1);
  answer.mutable_resources()->set_memory_limit_in_bytes(-1);
  ASSERT_TRUE(merge.Add(kKoordlet, answer).ok());
  answer.mutable_resources()->set_cpu_shares(512);
  ASSERT_TRUE(merge.Add(kOther, answer).ok());
  EXPECT_EQ(merge.request().resources().cpu_shares(), 512) << "as the next server sees it";
  EXPECT_EQ(merge.owners().Of({.field = Field::kCpuShares}), kOther);
  EXPECT_EQ(merge.owners().Of({.field = Field::kCpuQuota}), kKoordlet);
  ASSERT_EQ(merge.owners().conflicts().size(), 1U);
  answer.mutable_resources()->set_cpuset_cpus("zero");
  EXPECT_EQ(merge.Add(kOther, answer).code(), StatusCode::kInvalidArgument);
  const Adjustment changes = merge.TakeChanges();
  EXPECT_EQ(changes.values, (ResourceValues{.cpu_shares = 512, .cpu_quota = -1}));
  EXPECT_EQ(changes.wide(), nullptr) << "no memory limit";
}

// Compares random answers of several servers with a second, simple implementation of the rules,
// value by value.
using Values = std::map<std::string, std::string>;

class RandomAnswers {
 public:
  explicit RandomAnswers(unsigned seed) : random_(seed) {}

  int Below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }
  int64_t Number() {
    static constexpr std::array<int64_t, 5> kNumbers{0, -1, 100, 1'000, 100'000};
    return kNumbers[static_cast<size_t>(Below(5))];
  }
  std::string List() {
    static const std::array<std::string, 4> kLists{"", "0", "0-3", "1,3"};
    return kLists[static_cast<size_t>(Below(4))];
  }
  template <typename Map>
  void Fill(Map& map) {
    for (const char* const key : {"a", "b", "c"})
      if (Below(2) == 0) map[key] = std::to_string(Below(2));
  }
  void Fill(api::LinuxContainerResources& resources) {
    resources.set_cpu_period(Number());
    resources.set_cpu_quota(Number());
    resources.set_cpu_shares(Number());
    resources.set_memory_limit_in_bytes(Number());
    resources.set_memory_swap_limit_in_bytes(Number());
    resources.set_oom_score_adj(Number());
    resources.set_cpuset_cpus(List());
    resources.set_cpuset_mems(List());
    Fill(*resources.mutable_unified());
  }

 private:
  std::mt19937 random_;
};

// All values of a container by unique names.
Values ValuesOf(const api::LinuxContainerResources& resources) {
  return {{"period", std::to_string(resources.cpu_period())},
          {"quota", std::to_string(resources.cpu_quota())},
          {"shares", std::to_string(resources.cpu_shares())},
          {"memory", std::to_string(resources.memory_limit_in_bytes())},
          {"swap", std::to_string(resources.memory_swap_limit_in_bytes())},
          {"oom", std::to_string(resources.oom_score_adj())},
          {"cpus", resources.cpuset_cpus()},
          {"mems", resources.cpuset_mems()}};
}

Values Reference(Values had, const api::LinuxContainerResources& answer, AnswerStyle style) {
  for (const auto& [name, value] : ValuesOf(answer)) {
    const bool clears_by_echo = name == "oom" || name == "cpus" || name == "mems";
    const bool may_be_negative = name == "oom" || name == "quota";
    const bool unset = value.empty() || value == "0" || (value == "-1" && !may_be_negative);
    const bool is_list = name == "cpus" || name == "mems";
    if (is_list ? value.empty() && style == AnswerStyle::kSparse
                : unset && !(clears_by_echo && style == AnswerStyle::kEcho)) {
      continue;
    }
    if (name == "oom" && value == "100000") continue;
    had[name] = value;
  }
  return had;
}

// The request's values with the changes applied.
Values Applied(Values values, const Adjustment& changes) {
  const auto number = [&values](const char* name, const std::optional<int64_t>& value) {
    if (value) values[name] = std::to_string(*value);
  };
  const ResourceValues& set = changes.values;
  number("period", set.cpu_period);
  number("quota", set.cpu_quota);
  number("shares", set.cpu_shares);
  if (const WideAdjustment* const wide = changes.wide()) {
    number("memory", wide->memory_limit);
    number("swap", wide->memory_swap_limit);
    number("oom", wide->oom_score_adj);
  }
  if (set.cpus) values["cpus"] = set.cpus->ToString();
  if (set.mems) values["mems"] = set.mems->ToString();
  if (changes.clears_cpus()) values["cpus"] = "";
  if (changes.clears_mems()) values["mems"] = "";
  return values;
}

template <typename Map>
Values Copied(const Map& map) {
  return {map.begin(), map.end()};
}

Values Edited(Values values, const KeyedEdits<std::string>& edits) {
  for (const auto& edit : edits) {
    values.erase(edit.key);
    if (edit.value) values[edit.key] = *edit.value;
  }
  return values;
}

void JoinInto(const google::protobuf::Map<std::string, std::string>& answer, Values& values) {
  for (const auto& [key, value] : answer)
    values[key] = value;
}

TEST(HookMergeProperty, AnyAnswersGiveWhatTheRulesSay) {
  for (unsigned seed = 0; seed < 3'000; ++seed) {
    RandomAnswers random(seed);
    api::ContainerResourceHookRequest sent;
    random.Fill(*sent.mutable_container_resources());
    random.Fill(*sent.mutable_container_envs());
    random.Fill(*sent.mutable_container_annotations());
    ContainerHookMerge merge(HookPoint::kPreCreateContainer, sent);
    Values resources = ValuesOf(sent.container_resources());
    Values envs = Copied(sent.container_envs());
    Values annotations = Copied(sent.container_annotations());
    Values unified = Copied(sent.container_resources().unified());
    for (int server = 0; server < 3; ++server) {
      const AnswerStyle style = random.Below(2) == 0 ? AnswerStyle::kEcho : AnswerStyle::kSparse;
      api::ContainerResourceHookResponse answer;
      if (random.Below(4) != 0) {
        random.Fill(*answer.mutable_container_resources());
        resources = Reference(resources, answer.container_resources(), style);
        JoinInto(answer.container_resources().unified(), unified);
      }
      random.Fill(*answer.mutable_container_envs());
      random.Fill(*answer.mutable_container_annotations());
      if (style == AnswerStyle::kEcho && !answer.container_envs().empty()) envs.clear();
      JoinInto(answer.container_envs(), envs);
      JoinInto(answer.container_annotations(), annotations);
      ASSERT_TRUE(merge.Add(std::to_string(server), style, answer).ok()) << "seed " << seed;
      // The next server sees the result.
      ASSERT_EQ(ValuesOf(merge.request().container_resources()), resources) << "seed " << seed;
      ASSERT_EQ(Copied(merge.request().container_envs()), envs) << "seed " << seed;
    }
    const WideAdjustment none;
    const Adjustment& changes = merge.changes();
    const WideAdjustment& wide = changes.wide() == nullptr ? none : *changes.wide();
    ASSERT_EQ(Applied(ValuesOf(sent.container_resources()), changes), resources) << "seed " << seed;
    ASSERT_EQ(Edited(Copied(sent.container_envs()), wide.environment), envs) << "seed " << seed;
    ASSERT_EQ(Edited(Copied(sent.container_annotations()), wide.annotations), annotations);
    ASSERT_EQ(Edited(Copied(sent.container_resources().unified()), wide.unified), unified);
    for (const FieldChange& change : changes.Changes())
      ASSERT_NE(merge.owners().Of(change), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace resmgr::hooks
