// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/hint_finder.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunFor;
using resmgr::test::RunUntil;
using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsNull;
using testing::NotNull;
using testing::SizeIs;

constexpr std::chrono::seconds kPatience{20};

// Finds each path as a hint of that name; access to "dead" blocks until the disks come back. Shared
// with threads that outlive the finder.
class Disks {
 public:
  HintFinder::Hints Find(const std::vector<HintPath>& paths) {
    HintFinder::Hints hints;
    for (const HintPath& path : paths) {
      if (path.path == "dead") Hang();
      hints.push_back({.source = path.source, .cpus = {}, .nodes = {}});
    }
    return hints;
  }
  void ComeBack() {
    const std::lock_guard lock(mutex_);
    back_ = true;
    changed_.notify_all();
  }
  int hanging() const { return hanging_; }

 private:
  void Hang() {
    ++hanging_;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return back_; });
    --hanging_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool back_ = false;
  std::atomic<int> hanging_ = 0;
};

class HintFinderTest : public testing::Test {
 protected:
  ~HintFinderTest() override { disks_->ComeBack(); }

  HintFinder::Options Options(milliseconds deadline) const {
    HintFinder::Options options;
    options.find = [disks = disks_](const auto& paths) { return disks->Find(paths); };
    options.deadline = deadline;
    options.most_threads = 2;
    return options;
  }
  static std::vector<HintPath> Paths(const std::string& path) {
    return {{.device = false, .source = "mount " + path, .path = path}};
  }
  // Asks and runs the loop until the answer comes.
  std::vector<std::string> Answer(HintFinder& finder, const std::string& path) {
    std::vector<std::string> sources;
    const auto question = finder.Ask(Paths(path), [&](const HintFinder::Hints& hints) {
      for (const LocalityHint& hint : hints)
        sources.push_back(hint.source);
      loop_.Stop();
    });
    EXPECT_THAT(question, NotNull());
    if (question != nullptr) loop_.Run();
    return sources;
  }

  const std::shared_ptr<Disks> disks_ = std::make_shared<Disks>();
  EventLoop loop_;
};

TEST_F(HintFinderTest, AnswersOnTheLoop) {
  HintFinder finder(loop_, Options(kPatience));
  EXPECT_THAT(Answer(finder, "disk"), ElementsAre("mount disk"));
  EXPECT_THAT(Answer(finder, "other"), ElementsAre("mount other"));
}

TEST_F(HintFinderTest, GoesOnWithoutHintsAfterTheDeadline) {
  HintFinder finder(loop_, Options(milliseconds(50)));
  const auto start = SteadyClock::now();
  EXPECT_THAT(Answer(finder, "dead"), IsEmpty());
  EXPECT_GE(SteadyClock::now() - start, milliseconds(50));
  EXPECT_LT(SteadyClock::now() - start, kPatience);
}

TEST_F(HintFinderTest, OneDeadDiskKeepsNobodyElseFromHints) {
  HintFinder finder(loop_, Options(kPatience));
  const auto hung = finder.Ask(Paths("dead"), [](const HintFinder::Hints&) {});
  ASSERT_TRUE(RunUntil(loop_, [this] { return disks_->hanging() == 1; }));
  EXPECT_THAT(Answer(finder, "disk"), ElementsAre("mount disk"));
}

TEST_F(HintFinderTest, AsksNothingWhileAllThreadsHang) {
  HintFinder finder(loop_, Options(milliseconds(50)));
  EXPECT_THAT(Answer(finder, "dead"), IsEmpty());
  EXPECT_THAT(Answer(finder, "dead"), IsEmpty());
  // The threads may begin after the deadline.
  ASSERT_TRUE(RunUntil(loop_, [this] { return disks_->hanging() == 2; }));
  ASSERT_TRUE(RunUntil(loop_, [&] {
    return finder.Ask(Paths("disk"), [](const HintFinder::Hints&) {}) == nullptr;
  }));
  EXPECT_EQ(disks_->hanging(), 2) << "no more threads than that";

  disks_->ComeBack();
  ASSERT_TRUE(RunUntil(loop_, [this] { return disks_->hanging() == 0; }));
  ASSERT_TRUE(RunUntil(loop_, [&] {
    const auto again = finder.Ask(Paths("disk"), [](const HintFinder::Hints&) {});
    return again != nullptr;
  }));
}

TEST_F(HintFinderTest, WaitsWithABoundedNumberOfQuestions) {
  HintFinder::Options options = Options(kPatience);
  options.most_waiting = 3;
  HintFinder finder(loop_, options);
  std::vector<std::unique_ptr<HintFinder::Question>> questions;
  questions.reserve(2);
  for (int i = 0; i < 2; ++i) {
    questions.push_back(finder.Ask(Paths("dead"), [](const HintFinder::Hints&) {}));
  }
  ASSERT_TRUE(RunUntil(loop_, [this] { return disks_->hanging() == 2; }));
  for (int i = 0; i < 3; ++i) {
    questions.push_back(finder.Ask(Paths("disk"), [](const HintFinder::Hints&) {}));
    EXPECT_THAT(questions.back(), NotNull());
  }
  EXPECT_THAT(finder.Ask(Paths("disk"), [](const HintFinder::Hints&) {}), IsNull());
  questions.pop_back();  // cancelled: there is room again
  EXPECT_THAT(finder.Ask(Paths("disk"), [](const HintFinder::Hints&) {}), NotNull());
}

TEST_F(HintFinderTest, GivesNoAnswerToAQuestionThatWasTakenBack) {
  HintFinder finder(loop_, Options(milliseconds(20)));
  bool answered = false;
  finder.Ask(Paths("disk"), [&](const HintFinder::Hints&) { answered = true; }).reset();
  finder.Ask(Paths("dead"), [&](const HintFinder::Hints&) { answered = true; }).reset();
  RunFor(loop_, milliseconds(60));
  EXPECT_FALSE(answered);
}

TEST_F(HintFinderTest, AnswerMayDestroyItsQuestion) {
  HintFinder finder(loop_, Options(kPatience));
  std::unique_ptr<HintFinder::Question> question;
  question = finder.Ask(Paths("disk"), [&](const HintFinder::Hints&) {
    question.reset();
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_THAT(question, IsNull());
}

TEST_F(HintFinderTest, ThreadThatHangsMayOutliveTheFinder) {
  {
    HintFinder finder(loop_, Options(milliseconds(20)));
    EXPECT_THAT(Answer(finder, "dead"), IsEmpty());
  }
  disks_->ComeBack();
  EXPECT_TRUE(RunUntil(loop_, [this] { return disks_->hanging() == 0; }));
}

}  // namespace
}  // namespace resmgr
