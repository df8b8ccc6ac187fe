// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/history.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::TestNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;
using enum QosClass;

class HistoryTest : public testing::Test {
 protected:
  static constexpr size_t kCapacity = 8;

  // "placed ns/web/web 0-7", ...
  std::vector<std::string> Told() const {
    std::vector<std::string> told;
    for (const History::Entry* const entry : history_.Last(history_.capacity())) {
      told.push_back(
          fmt::format("{} {} {}{}", ToString(entry->event), entry->container,
                      entry->place->cpus.value_or(CpuSet()).ToString(),
                      entry->containers > 1 ? fmt::format(" x{}", entry->containers) : ""));
    }
    return told;
  }

  std::chrono::system_clock::time_point now_;
  History history_{kCapacity, [this] { return now_ += std::chrono::seconds(1); }};
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, TestNode::Observed(history_)};
};

TEST_F(HistoryTest, HasWhatAListFound) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 1000);
  node_.Restart();
  node_.runtime.Remove(dsp);
  node_.Reconnect();
  EXPECT_THAT(Told(),
              ElementsAre("placed ns/dsp/dsp 1", "adopted ns/dsp/dsp 1", "released ns/dsp/dsp 1"));
}

TEST_F(HistoryTest, HasEveryActInItsOrder) {
  node_.Run("web", kBurstable, 100);
  node_.Run("db", kBurstable, 100);
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 1000);
  EXPECT_FALSE(node_.Create("large", kGuaranteed, 8000).ok());
  node_.Stop(dsp);
  EXPECT_THAT(Told(),
              ElementsAre("placed ns/web/web 0-7", "placed ns/db/db 0-7", "placed ns/dsp/dsp 1",
                          "moved ns/web/web 0,2-7 x2", "refused ns/large/large ",
                          "released ns/dsp/dsp 1", "moved ns/web/web 0-7 x2"));
  const auto entries = history_.Last(4);
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(*entries[0]->reason, "for the sake of ns/dsp/dsp");
  EXPECT_THAT(entries[1]->error, HasSubstr("needs 8 CPUs, 6 are free"));
  EXPECT_EQ(*entries[2]->reason, "it ended");
  EXPECT_EQ(entries[2]->place->exclusive, CpuSet{1});
  EXPECT_LT(entries[0]->time, entries[3]->time);
}

TEST_F(HistoryTest, KeepsAsManyAsItMay) {
  for (int i = 0; i < 100; ++i)
    node_.Run(fmt::format("web-{}", i), kBurstable, 100);
  const auto entries = history_.Last(1000);
  ASSERT_EQ(entries.size(), kCapacity);
  for (size_t i = 0; i < kCapacity; ++i) {
    const std::string name = fmt::format("web-{}", 100 - kCapacity + i);
    EXPECT_EQ(entries[i]->container, fmt::format("ns/{}/{}", name, name));
  }
  EXPECT_EQ(history_.Last(2).front(), entries[kCapacity - 2]);
}

TEST_F(HistoryTest, ALongNameIsCut) {
  node_.Run(std::string(100'000, 'x'), kBurstable, 100);
  const std::string& name = history_.Last(1).front()->container;
  EXPECT_LE(name.size(), History::kLongestText);
  EXPECT_THAT(name, MatchesRegex("ns/x+/x+"));
}

// A kubelet asks for a refused container again and again, for hours.
TEST_F(HistoryTest, ARefusalThatComesAgainIsOneEntry) {
  node_.Run("web", kBurstable, 100);
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(node_.Create("large", kGuaranteed, 8000).ok());
    EXPECT_FALSE(node_.Create("larger", kGuaranteed, 9000).ok());
  }
  EXPECT_THAT(Told(), ElementsAre("placed ns/web/web 0-7", "refused ns/large/large ",
                                  "refused ns/larger/larger "));
  EXPECT_FALSE(node_.Create("large", kGuaranteed, 8000).ok());
  EXPECT_THAT(Told(), ElementsAre("placed ns/web/web 0-7", "refused ns/larger/larger ",
                                  "refused ns/large/large "));
  const auto entries = history_.Last(3);
  EXPECT_LT(entries[0]->time, entries[1]->time);
  EXPECT_LT(entries[1]->time, entries[2]->time);
}

TEST_F(HistoryTest, ARefusedStartIsInIt) {
  node_.Run("web", kBurstable, 100);
  const ContainerId dsp = *node_.Create("dsp", kGuaranteed, 1000);
  const test::AskedStart start(node_.manager(), dsp);
  ASSERT_TRUE(node_.RunUntil([&] { return start.answered(); }));
  ASSERT_FALSE(start.answer().ok());
  const History::Entry& last = *history_.Last(1).front();
  EXPECT_EQ(last.event, History::Event::kRefused);
  EXPECT_EQ(last.container, "ns/dsp/dsp");
  EXPECT_THAT(last.error, HasSubstr("ns/web/web"));
}

TEST_F(HistoryTest, AnUpdateThatChangesNothingIsNotInIt) {
  node_.Run("web", kBurstable, 100);
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 1000);
  const std::vector<std::string> before = Told();
  const auto update = node_.manager().AdmitUpdate(dsp, TestNode::Resources(1000));
  ASSERT_TRUE(update.ok());
  node_.manager().UpdateSucceeded(*update);
  EXPECT_EQ(Told(), before) << "and what the decision before it moved is not told again";
}

TEST_F(HistoryTest, WhatTheRuntimeFailedToDoIsInIt) {
  node_.Run("web", kBurstable, 100);
  ASSERT_TRUE(node_.Create("dsp", kGuaranteed, 1000).ok());
  ASSERT_EQ(node_.runtime.updates.size(), 1U);
  node_.runtime.Answer(0, Internal("the disk is on fire"));
  ASSERT_TRUE(node_.AnswerNextList());
  const History::Entry& last = *history_.Last(1).front();
  EXPECT_EQ(last.event, History::Event::kFailed);
  EXPECT_EQ(last.container, "ns/web/web");
  EXPECT_THAT(last.error, HasSubstr("the disk is on fire"));
}

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

// `history -f` would show an entry that differs as a new one.
TEST_F(RefusalNotesTest, ARestartForgetsNoPlace) {
  StartDaemon();
  node_->Run("web", kBurstable, 100);
  const ContainerId dsp = *node_->Create("dsp", kGuaranteed, 1000);
  std::optional<Status> decided;
  const auto wait =
      node_->manager().AdmitStart(dsp, [&](const Status& status) { decided = status; });
  ASSERT_TRUE(node_->RunUntil([&] { return decided.has_value(); }));
  ASSERT_FALSE(decided->ok());
  EXPECT_FALSE(node_->Create("large", kGuaranteed, 9000).ok());
  const Place placed = *daemon_->history.Last(2).front()->place;
  ASSERT_EQ(placed.exclusive, CpuSet{1});
  StartDaemon();
  ASSERT_THAT(Refused(), ElementsAre("ns/dsp/dsp", "ns/large/large"));
  EXPECT_EQ(*daemon_->history.Last(2).front()->place, placed);
  EXPECT_EQ(*daemon_->history.Last(1).front()->place, Place()) << "it never had one";
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
