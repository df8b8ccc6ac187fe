// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/lifetime.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/wait.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LifetimeTest, ACallbackRunsAsLongAsTheObjectExists) {
  std::optional<Lifetime> lifetime(std::in_place);
  std::vector<std::string> told;
  const std::function<void(std::string)> tell =
      lifetime->Guard([&told](std::string what) { told.push_back(std::move(what)); });
  tell("one");
  lifetime.reset();
  tell("two");
  EXPECT_THAT(told, ElementsAre("one"));
}

TEST(LifetimeTest, ACallbackMayEndTheObject) {
  std::optional<Lifetime> lifetime(std::in_place);
  int calls = 0;
  const std::function<void()> end = lifetime->Guard([&] {
    ++calls;
    lifetime.reset();
  });
  end();
  end();
  EXPECT_EQ(calls, 1);
}

TEST(LifetimeTest, NothingRunsAfterTheEnd) {
  Lifetime lifetime;
  int calls = 0;
  const std::function<void()> before = lifetime.Guard([&calls] { ++calls; });
  lifetime.End();
  const std::function<void()> after = lifetime.Guard([&calls] { ++calls; });
  before();
  after();
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(lifetime.ended());
  EXPECT_TRUE(lifetime.token().expired());
}

class DestroyLaterTest : public testing::Test {
 protected:
  // Notes its end.
  struct Object {
    ~Object() {
      ended.push_back(name);
      if (then) then();
    }
    std::vector<std::string>& ended;
    std::string name;
    std::function<void()> then{};
  };
  std::unique_ptr<Object> Make(std::string name, std::function<void()> then = nullptr) {
    return std::unique_ptr<Object>(new Object{ended_, std::move(name), std::move(then)});
  }
  void Turn() { test::RunFor(loop_, std::chrono::milliseconds(1)); }

  EventLoop loop_;
  std::vector<std::string> ended_;
  std::optional<DestroyLater<std::unique_ptr<Object>>> later_{std::in_place, loop_};
};

TEST_F(DestroyLaterTest, ObjectsEndInTheNextTurnInTheirOrder) {
  later_->Add(Make("a"));
  later_->Add(Make("b"));
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_EQ(later_->objects().size(), 2U);
  Turn();
  EXPECT_THAT(ended_, ElementsAre("a", "b"));
}

TEST_F(DestroyLaterTest, TheEndOfOneMayAddOthers) {
  later_->Add(Make("a", [this] { later_->Add(Make("b")); }));
  Turn();
  Turn();
  EXPECT_THAT(ended_, ElementsAre("a", "b"));
}

TEST_F(DestroyLaterTest, WhatIsLeftEndsWithTheList) {
  later_->Add(Make("a"));
  later_.reset();
  EXPECT_THAT(ended_, ElementsAre("a"));
  Turn();
}

}  // namespace
}  // namespace resmgr
