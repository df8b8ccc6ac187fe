// SPDX-License-Identifier: Apache-2.0
// Compares random answers of several servers with a second, simple implementation of the rules,
// value by value.
#include <array>
#include <map>
#include <optional>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "pkg/hooks/hook_merge.h"

namespace resmgr::hooks {
namespace {

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
Values Applied(Values values, const HookChanges& changes) {
  const auto number = [&values](const char* name, const std::optional<int64_t>& value) {
    if (value) values[name] = std::to_string(*value);
  };
  const ResourceValues& set = changes.adjustment.values;
  number("period", set.cpu_period);
  number("quota", set.cpu_quota);
  number("shares", set.cpu_shares);
  if (const WideAdjustment* const wide = changes.adjustment.wide()) {
    number("memory", wide->memory_limit);
    number("swap", wide->memory_swap_limit);
    number("oom", wide->oom_score_adj);
  }
  if (set.cpus) values["cpus"] = set.cpus->ToString();
  if (set.mems) values["mems"] = set.mems->ToString();
  if (changes.clears_cpus) values["cpus"] = "";
  if (changes.clears_mems) values["mems"] = "";
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
    const HookChanges& changes = merge.changes();
    const WideAdjustment& wide =
        changes.adjustment.wide() == nullptr ? none : *changes.adjustment.wide();
    ASSERT_EQ(Applied(ValuesOf(sent.container_resources()), changes), resources) << "seed " << seed;
    ASSERT_EQ(Edited(Copied(sent.container_envs()), wide.environment), envs) << "seed " << seed;
    ASSERT_EQ(Edited(Copied(sent.container_annotations()), wide.annotations), annotations);
    ASSERT_EQ(Edited(Copied(sent.container_resources().unified()), wide.unified), unified);
    for (const FieldChange& change : changes.adjustment.Changes())
      ASSERT_NE(merge.owners().Of(change), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace resmgr::hooks
