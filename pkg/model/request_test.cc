// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/request.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/model/environment.h"
#include "pkg/model/pod.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Counts the parts that are read.
class CountingSource final : public Request::Source {
 public:
  int creates = 0;
  int environments = 0;
  int mounts = 0;

  bool ReadCreate(CreateRequest& create) override {
    ++creates;
    create.name = "main";
    return true;
  }
  std::optional<Pod> ReadPod() override { return Pod(); }
  bool ReadDetails(DetailSet parts, ContainerDetails& details) override {
    if (parts.contains(Detail::kEnvironment)) {
      ++environments;
      details.environment.Add("A", "1");
    }
    if (parts.contains(Detail::kMounts)) {
      ++mounts;
      details.mounts.push_back({.container_path = "/data"});
    }
    return true;
  }
};

TEST(RequestTest, WhatWasTakenIsReadAnewForWhoeverAsksLater) {
  CountingSource source;
  Request request(Operation::kCreateContainer, source);
  request.body.emplace<CreateRequest>().name = "main";

  EXPECT_EQ(request.create()->name, "main");
  EXPECT_EQ(source.creates, 0);
  const CreateRequest taken = std::move(request.TakeCreate());
  EXPECT_EQ(taken.name, "main");
  EXPECT_EQ(request.create()->name, "main");
  EXPECT_EQ(request.create()->name, "main");
  EXPECT_EQ(source.creates, 1);
}

TEST(RequestTest, ReadsEachDetailOnce) {
  CountingSource source;
  Request request(Operation::kCreateContainer, source);

  EXPECT_THAT(request.Details({Detail::kEnvironment}).environment, SizeIs(1));
  EXPECT_THAT(request.Details({Detail::kEnvironment, Detail::kMounts}).mounts, SizeIs(1));
  EXPECT_THAT(request.Details({Detail::kEnvironment}).environment, SizeIs(1));
  EXPECT_EQ(source.environments, 1);
  EXPECT_EQ(source.mounts, 1);
}

TEST(RequestTest, DetailsThatAreKeptStayAsTheyAre) {
  CountingSource source;
  Request request(Operation::kCreateContainer, source);

  const auto kept = request.KeepDetails({Detail::kEnvironment});
  EXPECT_EQ(request.KeepDetails({Detail::kEnvironment}), kept);
  EXPECT_THAT(request.Details({Detail::kMounts}).mounts, SizeIs(1));
  EXPECT_THAT(request.Details({Detail::kEnvironment}).environment, SizeIs(1));
  EXPECT_THAT(kept->environment, SizeIs(1));
  EXPECT_THAT(kept->mounts, IsEmpty());
  EXPECT_EQ(source.environments, 1);
}

TEST(RequestTest, ReadsNothingOfAMessageThatWasGivenAway) {
  CountingSource source;
  Request request(Operation::kCreateContainer, source);
  request.body.emplace<CreateRequest>();
  request.TakeCreate();
  request.Close();

  EXPECT_EQ(request.create(), nullptr);
  EXPECT_EQ(request.ReadPod(), std::nullopt);
  EXPECT_THAT(request.Details({Detail::kMounts}).mounts, IsEmpty());
}

TEST(RequestTest, OnlyACreationHasACreateRequest) {
  CountingSource source;
  Request request(Operation::kStartContainer, source);
  EXPECT_EQ(request.create(), nullptr);
}

TEST(OperationSetTest, AllIsAllButTheOthers) {
  EXPECT_TRUE(OperationSet::All().contains(Operation::kUpdatePodSandboxResources));
  EXPECT_FALSE(OperationSet::All().contains(Operation::kOther));
  const OperationSet two =
      OperationSet{Operation::kStartContainer} | OperationSet{Operation::kStopContainer};
  EXPECT_TRUE(two.contains(Operation::kStartContainer));
  EXPECT_TRUE(two.contains(Operation::kStopContainer));
  EXPECT_FALSE(two.contains(Operation::kCreateContainer));
}

using namespace std::string_literals;

TEST(EnvironmentTest, KeepsWhatIsAddedInItsOrder) {
  Environment environment;
  EXPECT_THAT(environment, IsEmpty());
  environment.Add("A", "1");
  environment.Add("", "no name");
  environment.Add("B=C", "");
  environment.Add("A", "again\0and more"s);
  EXPECT_THAT(environment, ElementsAre(FieldsAre("A", "1"), FieldsAre("", "no name"),
                                       FieldsAre("B=C", ""), FieldsAre("A", "again\0and more"s)));
  EXPECT_EQ(environment.size(), 4U);
  EXPECT_EQ(environment[2].name, "B=C");
  EXPECT_EQ(environment.Text(1), "=no name");
}

TEST(EnvironmentTest, ReadsTexts) {
  Environment environment;
  for (const char* const text : {"A=1", "B=x=y", "C", "=", ""})
    environment.AddText(text);
  EXPECT_EQ(environment, (Environment{{"A", "1"}, {"B", "x=y"}, {"C", ""}, {"", ""}, {"", ""}}));
}

TEST(EnvironmentTest, AnotherDivisionOfTheSameBytesIsAnotherEnvironment) {
  EXPECT_NE((Environment{{"A", "B=1"}}), (Environment{{"A=B", "1"}}));
  EXPECT_NE((Environment{{"A", "1"}, {"B", "2"}}), (Environment{{"A", "1B=2"}}));
}

TEST(EnvironmentTest, CopiesAreTheirOwn) {
  Environment environment{{"A", "1"}};
  Environment copy = environment;
  copy.Add("B", std::string(1'000, 'x'));
  EXPECT_THAT(environment, ElementsAre(FieldsAre("A", "1")));
  const Environment moved = std::move(copy);
  EXPECT_THAT(moved, ElementsAre(FieldsAre("A", "1"), FieldsAre("B", std::string(1'000, 'x'))));
}

TEST(IdentityTest, LabelsFillWhatIsEmpty) {
  Pod pod;
  pod.name = "known";
  pod.labels = {{"io.kubernetes.pod.name", "other"},
                {"io.kubernetes.pod.namespace", "shop"},
                {"io.kubernetes.pod.uid", "u-1"}};
  pod.cgroup_parent = "/kubepods/podu-2";
  CompleteIdentity(pod);
  EXPECT_EQ(pod.name, "known");
  EXPECT_EQ(pod.namespace_name, "shop");
  EXPECT_EQ(pod.uid.value(), "u-1");
}

TEST(IdentityTest, TheCgroupTellsTheUid) {
  Pod pod;
  pod.cgroup_parent = "node-kubepods-burstable-poda_b.slice";
  CompleteIdentity(pod);
  EXPECT_EQ(pod.uid.value(), "a-b");
  EXPECT_EQ(pod.name, "");

  Pod none;
  CompleteIdentity(none);
  EXPECT_TRUE(none.uid.empty());
}

TEST(IdentityTest, ContainersHaveALabelToo) {
  EXPECT_EQ(ContainerNameOf({{"io.kubernetes.container.name", "web"}}), "web");
  EXPECT_EQ(ContainerNameOf({}), "");
}

}  // namespace
}  // namespace resmgr
