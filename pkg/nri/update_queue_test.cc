// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/update_queue.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/messages.h"

namespace resmgr::nri {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class UpdateQueueTest : public testing::Test {
 protected:
  void Add(const std::string& id, const CpuSet& cpus) {
    const auto done = std::make_shared<const RuntimeClient::UpdatesDone>(
        [this, id](size_t, const Status& status) {
          told_.push_back(id + (status.ok() ? " done" : " failed"));
        });
    queue_->Add(ContainerId(id), queue_->ChangeOf({.cpus = cpus, .cpu_shares = 2}), {done, 0});
  }
  // Takes the updates for the answer to an event of that container.
  api::CreateContainerResponse Answer(const std::string& own) {
    std::string encoded =
        Make<api::CreateContainerResponse>("adjust { args: '/bin/app' }").SerializeAsString();
    queue_->TakeForAnswer(ContainerId(own), api::CreateContainerResponse::kUpdateFieldNumber,
                          encoded);
    api::CreateContainerResponse answer;
    EXPECT_TRUE(answer.ParseFromString(encoded));
    return answer;
  }
  void RunPosted() {
    loop_.Post([this] { loop_.Stop(); });
    loop_.Run();
  }

  EventLoop loop_;
  std::vector<std::string> told_;
  std::optional<UpdateQueue> queue_{
      std::in_place, loop_,
      [this](const ContainerId& id, const LinuxResources& resources) {
        told_.push_back(std::string(id.value()) + " has " + *resources.cpuset_cpus);
      },
      [](const ContainerId&) { return true; }};
};

TEST_F(UpdateQueueTest, ChangesOfOthersAreInTheAnswer) {
  Add("a", {1, 2});
  Add("own", {3});
  Add("b", {1, 2});
  Add("c", {4});
  EXPECT_THAT(Answer("own"), Is(R"(
    adjust { args: "/bin/app" }
    update {
      container_id: "a" ignore_failure: true
      linux { resources { cpu { shares { value: 2 } cpus: "1-2" } } }
    }
    update {
      container_id: "b" ignore_failure: true
      linux { resources { cpu { shares { value: 2 } cpus: "1-2" } } }
    }
    update {
      container_id: "c" ignore_failure: true
      linux { resources { cpu { shares { value: 2 } cpus: "4" } } }
    })"));
  EXPECT_THAT(told_, IsEmpty()) << "within the call";
  EXPECT_THAT(Answer("next"), Is(R"(
    adjust { args: "/bin/app" }
    update {
      container_id: "own" ignore_failure: true
      linux { resources { cpu { shares { value: 2 } cpus: "3" } } }
    })"));
  RunPosted();
  EXPECT_THAT(told_, ElementsAre("a has 1-2", "a done", "b has 1-2", "b done", "c has 4", "c done",
                                 "own has 3", "own done"));
}

TEST_F(UpdateQueueTest, WithoutChangesAnAnswerStays) {
  EXPECT_THAT(Answer("own"), Is("adjust { args: '/bin/app' }"));
}

TEST_F(UpdateQueueTest, AQueueThatIsGoneTellsNothing) {
  Add("a", {1});
  EXPECT_EQ(Answer("own").update_size(), 1);
  queue_.reset();
  RunPosted();
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace resmgr::nri
