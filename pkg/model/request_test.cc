// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/request.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

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

}  // namespace
}  // namespace resmgr
