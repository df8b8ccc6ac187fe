// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_inspectors.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/cri/testing/several_runtimes_fixture.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RuntimeInspectorsTest : public SeveralRuntimesTest {
 protected:
  RuntimeInspectorsTest() {
    thread_.Do([this] {
      inspectors_ =
          std::make_unique<RuntimeInspectors>(thread_.loop(), thread_.flushes(), *backends_);
    });
  }
  ~RuntimeInspectorsTest() override {
    thread_.Do([this] { inspectors_.reset(); });
  }
  // Asks on the loop's thread, and waits for the answer.
  template <typename Result, typename Ask>
  Result Answer(Ask ask) {
    auto answered = std::make_shared<std::promise<Result>>();
    auto result = answered->get_future();
    thread_.Do([&] { ask([answered](Result value) { answered->set_value(std::move(value)); }); });
    return result.get();
  }

  std::unique_ptr<RuntimeInspectors> inspectors_;
};

using Everything = StatusOr<RuntimeAccess::Everything>;

TEST_F(RuntimeInspectorsTest, AskTheRuntimeThatHasIt) {
  const std::string there = RunPod("there", "kata");
  const ContainerId container(CreateContainer(there));
  const auto inspect = [&](auto done) { inspectors_->InspectContainer(container, done); };
  ASSERT_TRUE(Answer<StatusOr<ContainerFacts>>(inspect).ok());
  EXPECT_THAT(first_.Calls("ContainerStatus"), IsEmpty());
  ForgetIds();
  EXPECT_TRUE(Answer<StatusOr<ContainerFacts>>(inspect).ok());
  EXPECT_THAT(first_.Calls("ContainerStatus"), SizeIs(1)) << "one after the other";
  EXPECT_TRUE(Answer<StatusOr<SandboxFacts>>([&](auto done) {
                inspectors_->InspectSandbox(PodSandboxId(there), done);
              }).ok());
  const auto missing = Answer<StatusOr<ContainerFacts>>(
      [&](auto done) { inspectors_->InspectContainer(ContainerId("none"), done); });
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(Answer<Status>([&](auto done) {
                inspectors_->StopContainer(container, std::chrono::seconds(1), done);
              }).ok());
}

TEST_F(RuntimeInspectorsTest, TellWhatAllHaveThatAreThere) {
  RunPod("here", "");
  RunPod("there", "kata");
  const auto inspect = [&](auto done) { inspectors_->InspectAll(done); };
  EXPECT_THAT(Answer<Everything>(inspect)->sandboxes, SizeIs(2));
  second_.Stop();
  EXPECT_THAT(Answer<Everything>(inspect)->sandboxes, SizeIs(1));
  first_.Script("ListPodSandbox", {.times = 1, .error = grpc::Status(grpc::INTERNAL, "the disk")});
  EXPECT_THAT(Message(Answer<Everything>(inspect).status()), HasSubstr("runtime default: "));
  first_.Stop();
  EXPECT_EQ(Answer<Everything>(inspect).status().code(), StatusCode::kUnavailable);
}

TEST_F(RuntimeInspectorsTest, C12OneThatHangsIsOneThatIsAway) {
  RunPod("here", "");
  const std::string there = RunPod("there", "kata");
  const auto inspect = [&](auto done) { inspectors_->InspectAll(done); };
  ASSERT_THAT(Answer<Everything>(inspect)->sandboxes, SizeIs(2));
  second_.Script("ListPodSandbox", {.hold = true});
  const auto begin = std::chrono::steady_clock::now();
  const auto all = Answer<Everything>(inspect);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10))
      << "its own patience";
  ASSERT_TRUE(all.ok()) << Describe(all.status());
  EXPECT_THAT(all->sandboxes, SizeIs(1));
  EXPECT_THAT(all->unlisted, testing::ElementsAre(there)) << "which is not gone";
}

// The refusal of a runtime that is down comes at once, and says nothing about how fast others are.
TEST_F(RuntimeInspectorsTest, ASlowOneIsWaitedForWhereTheOtherIsDown) {
  (void)CreateContainer(RunPod("here", ""));
  second_.Stop();
  first_.Script("ContainerStatus", {.times = 1, .delay = std::chrono::milliseconds(1'500)});
  const auto all = Answer<Everything>([&](auto done) { inspectors_->InspectAll(done); });
  ASSERT_TRUE(all.ok()) << Describe(all.status());
  EXPECT_THAT(all->sandboxes, SizeIs(1));
  EXPECT_THAT(all->containers, SizeIs(1));
}

TEST_F(RuntimeInspectorsTest, B5WhatTwoHaveIsTheFirstOnes) {
  const std::string here = RunPod("here", "");
  ::runtime::v1::ListPodSandboxResponse list;
  list.add_items()->set_id(here);
  second_.Script("ListPodSandbox", {.reply = {{list.SerializeAsString()}}});
  second_.Script("PodSandboxStatus", {.error = grpc::Status(grpc::INTERNAL, "the shim hangs")});
  ForgetIds();
  const auto all = Answer<Everything>([&](auto done) { inspectors_->InspectAll(done); });
  ASSERT_TRUE(all.ok()) << Describe(all.status());
  EXPECT_THAT(all->sandboxes, SizeIs(1));
  EXPECT_EQ(thread_.Do([&] { return backends_->calls(1).refused_claims; }), 1U);
}

}  // namespace
}  // namespace resmgr
