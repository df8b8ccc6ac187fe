// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "pkg/base/status.h"
#include "pkg/metrics/plugin_stats.h"
#include "pkg/sys/event_loop.h"
#include "pkg/ttrpc/client.h"
#include "pkg/ttrpc/limits.h"

namespace resmgr::nri {

// One call of a plugin's method.
struct Question {
  std::string method;          // "CreateContainer"
  ttrpc::SharedBytes payload;  // encoded, never null
  // Tells of what has happened, so the plugin should hear of it even where its answer comes too
  // late. Not so where it would decide: what it decides late would not come true.
  bool tells = false;
  // Where the plugin has no such method: changes this into another way to ask, and returns true.
  std::function<bool(Question& question)> otherwise{};
};

// Asks a plugin one question after the other. One that is not answered in time has been answered
// for its asker, but the next is asked only when its answer has come after all: until then
// further questions are DeadlineExceeded at once, so that a plugin that hangs costs one time-out
// and not one for each pod. Each question whose own time is over by then is one more late answer.
// Answers are those of PluginPort. Loop's thread only.
class QuestionQueue {
 public:
  // What waits for a plugin.
  static constexpr size_t kMostQuestions = 256;
  static constexpr size_t kMostBytes = size_t{16} << 20;
  // The payload of one question.
  static constexpr size_t kLongestQuestion = ttrpc::kLongestMessage - 256;  // for the envelope

  using Done = std::function<void(StatusOr<std::string>)>;
  // The plugin is not to be asked any more: it was late too often, or what it answers is no answer.
  // Called last; the queue may be ended by it, not destroyed.
  using GiveUp = std::function<void(const Status& why)>;

  // All outlive the queue. `strikes`: see HostOptions.
  QuestionQueue(EventLoop& loop, ttrpc::Client& client, PluginStats& stats, uint32_t strikes,
                GiveUp give_up);
  QuestionQueue(const QuestionQueue&) = delete;
  QuestionQueue& operator=(const QuestionQueue&) = delete;

  void SetStrikes(uint32_t strikes) { most_strikes_ = strikes; }

  // `timeout` counts from here. `done` is called once, later or, where it will not be asked, at
  // once.
  void Ask(Question question, std::chrono::milliseconds timeout, Done done);
  // Asks what waits; before, everything does.
  void Open();
  // Unavailable for everything, now and from now on.
  void End(const Status& why);

  // The plugin has asked for something itself, and more often than is served.
  void NoteRefused(const Status& why) { stats_.NoteFailure(why); }

  // Questions that wait or are asked.
  size_t size() const { return waiting_.size() + (asked_ == nullptr ? 0 : 1); }

 private:
  struct Entry {
    Question question;
    std::chrono::milliseconds timeout{0};
    EventLoop::Clock::time_point deadline;
    EventLoop::Clock::time_point sent;
    Done done;  // empty: it was called
    EventLoop::HandlePtr timer;
  };
  using EntryPtr = std::unique_ptr<Entry>;

  bool HasRoom(const Question& question) const;
  bool CanAsk() const { return open_ && asked_ == nullptr; }
  void Next();
  void Send();
  void OnAnswer(StatusOr<std::string> answer);
  void OnLate();
  // A question that is not asked since an answer is overdue: from `deadline` on it is late, too.
  void CountLateAt(EventLoop::Clock::time_point deadline);
  void WaitForNextLate();
  void OnOverdue(Entry& entry);
  void FailWaiting(const Status& why);
  // False: the plugin was given up.
  bool Strike(const Status& why);
  static void Answer(Entry& entry, StatusOr<std::string> answer);

  EventLoop& loop_;
  ttrpc::Client& client_;
  PluginStats& stats_;
  uint32_t most_strikes_;
  const GiveUp give_up_;
  bool open_ = false;
  bool late_ = false;  // the answer to what is asked is overdue
  uint32_t strikes_ = 0;
  std::multiset<EventLoop::Clock::time_point> late_at_;  // see CountLateAt
  EntryPtr asked_;
  std::deque<EntryPtr> waiting_;
  size_t bytes_ = 0;  // of those that wait
  Status ended_;
};

}  // namespace resmgr::nri
