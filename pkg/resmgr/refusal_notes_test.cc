// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/refusal_notes.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::TestNode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using enum QosClass;

// A daemon's history and notes on a state that outlives it.
class RefusalNotesTest : public testing::Test {
 protected:
  struct Daemon {
    explicit Daemon(const std::string& directory, const History::WallClock& now)
        : state(RealFileSystem(), directory, "machine", [](std::string_view) {}),
          history(History::kDefaultCapacity, now),
          notes(state, history) {
      observers.Add(history);
      observers.Add(notes);
    }

    StateStore state;
    History history;
    RefusalNotes notes;
    Observers observers;
  };

  void StartDaemon() {
    node_.reset();
    daemon_.reset();
    daemon_.emplace(dir_.path(), [this] { return now_ += std::chrono::seconds(1); });
    node_.emplace(test::S1Ht(), test::FirstFit, TestNode::Observed(daemon_->observers));
  }

  std::vector<std::string> Refused() const {
    std::vector<std::string> refused;
    for (const History::Entry* const entry : daemon_->history.Last(History::kDefaultCapacity)) {
      if (entry->event == History::Event::kRefused) refused.push_back(entry->container);
    }
    return refused;
  }

  const TempDir dir_;
  std::chrono::system_clock::time_point now_{std::chrono::hours(1)};
  std::optional<Daemon> daemon_;
  std::optional<TestNode> node_;
};

TEST_F(RefusalNotesTest, ARestartForgetsNoRefusal) {
  StartDaemon();
  EXPECT_FALSE(node_->Create("large", kGuaranteed, 9000).ok());
  const auto when = daemon_->history.Last(1).front()->time;
  StartDaemon();
  ASSERT_THAT(Refused(), ElementsAre("ns/large/large"));
  const History::Entry& entry = *daemon_->history.Last(1).front();
  EXPECT_EQ(entry.time, when);
  EXPECT_THAT(entry.error, HasSubstr("needs 9 CPUs"));
  ASSERT_NE(entry.asked, nullptr);
  EXPECT_EQ(entry.asked->requirements.cpu_request.value, 9000);
  EXPECT_EQ(entry.asked->qos, kGuaranteed);
}

TEST_F(RefusalNotesTest, ARefusalIsForgottenOnceItsContainerIsPlaced) {
  StartDaemon();
  const ContainerId dsp = node_->Run("dsp", kGuaranteed, 7000);
  EXPECT_FALSE(node_->Create("app", kGuaranteed, 2000).ok());
  node_->Stop(dsp);
  node_->Run("app", kGuaranteed, 2000);
  StartDaemon();
  EXPECT_THAT(Refused(), IsEmpty());
}

TEST_F(RefusalNotesTest, OnlyTheNewestAreKept) {
  StartDaemon();
  for (size_t i = 0; i < RefusalNotes::kMost + 3; ++i)
    EXPECT_FALSE(node_->Create(fmt::format("large-{:02}", i), kGuaranteed, 9000).ok());
  // A container that a kubelet tries again counts once, as the newest one.
  EXPECT_FALSE(node_->Create("large-10", kGuaranteed, 9000).ok());
  StartDaemon();
  const std::vector<std::string> refused = Refused();
  ASSERT_THAT(refused, SizeIs(RefusalNotes::kMost));
  EXPECT_EQ(refused.front(), "ns/large-03/large-03");
  EXPECT_EQ(refused.back(), "ns/large-10/large-10");
}

TEST_F(RefusalNotesTest, WhatIsNoRefusalIsDropped) {
  {
    StateStore state(RealFileSystem(), dir_.path(), "machine", [](std::string_view) {});
    state.PutNote(StateStore::PodNote::kRefusal, PodSandboxId("ns/a/b"), "junk");
    state.PutNote(StateStore::PodNote::kRefusal, PodSandboxId("no name"), EncodeRefusal({}));
  }
  StartDaemon();
  EXPECT_THAT(Refused(), IsEmpty());
  EXPECT_FALSE(daemon_->state.HasNotes());
}

}  // namespace
}  // namespace resmgr
