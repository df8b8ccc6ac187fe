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
#include <vector>

#include "pkg/base/status.h"
#include "pkg/metrics/plugin_stats.h"
#include "pkg/nri/host/session/plugin_port.h"
#include "pkg/nri/protocol.h"
#include "pkg/sys/event_loop.h"
#include "pkg/ttrpc/client.h"
#include "pkg/ttrpc/frame.h"

namespace resmgr::nri {

// One call of a plugin's method.
struct Question {
  std::string method;          // "CreateContainer"
  ttrpc::SharedBytes payload;  // encoded; never null
  // True: the question is a notice of an event, which the plugin should get even if it answers
  // late. False: it asks for a decision, which would not be applied if it is late.
  bool tells = false;
  // Called if the plugin has no such method: changes the question into another form, and returns
  // true.
  std::function<bool(Question& question)> otherwise{};
};

// Asks a plugin one question after the other. A late question fails for its asker, but the next one
// is asked only after the late answer has come: until then further questions fail with
// kDeadlineExceeded at once, so that a hanging plugin costs one time-out and not one for each pod.
// Each of these counts as one more late answer once its own time is over. Answers are those of
// PluginPort. Loop's thread only.
class QuestionQueue {
 public:
  // Limit of waiting questions that have come since Open. Before it only their bytes are limited: a
  // plugin that takes the inventory is not slow, and a boot brings more events than this meanwhile.
  static constexpr size_t kMostQuestions = 256;
  static constexpr size_t kMostBytes = size_t{16} << 20;
  // Bytes of one question's payload.
  static constexpr size_t kLongestQuestion = ttrpc::kLongestMessage - 256;  // less the envelope

  using Done = std::function<void(StatusOr<std::string>)>;
  // Called last, when the plugin must not be asked any more: it was late too often, an answer was
  // malformed, or there was no room for a notice. May call End, but not destroy the queue.
  using GiveUp = std::function<void(const Status& why)>;

  // All outlive the queue. `strikes`: see HostOptions.
  QuestionQueue(EventLoop& loop, ttrpc::Client& client, PluginStats& stats, uint32_t strikes,
                GiveUp give_up);
  QuestionQueue(const QuestionQueue&) = delete;
  QuestionQueue& operator=(const QuestionQueue&) = delete;

  void SetStrikes(uint32_t strikes) { most_strikes_ = strikes; }

  // `timeout` counts from here. `done` is called once, later or, if the question will not be asked,
  // at once.
  void Ask(Question question, std::chrono::milliseconds timeout, Done done);
  // Begins to ask; until then all questions wait.
  void Open();
  // Answers all questions, now and later, with kUnavailable.
  void End(const Status& why);

  // Counts a refused request of the plugin, which has asked too often.
  void NoteRefused(const Status& why) { stats_.NoteFailure(why); }

 private:
  struct Entry {
    Question question;
    std::chrono::milliseconds timeout{0};
    EventLoop::Clock::time_point deadline;
    EventLoop::Clock::time_point sent;
    Done done;  // empty once it was called
    EventLoop::HandlePtr timer;
  };
  using EntryPtr = std::unique_ptr<Entry>;

  bool HasRoom(const Question& question) const;
  bool CanAsk() const { return open_ && asked_ == nullptr; }
  void Next();
  void Send();
  void OnAnswer(StatusOr<std::string> answer);
  void OnLate();
  // Counts a question that is not asked, because another answer is overdue, as a late answer at
  // `deadline`.
  void CountLateAt(EventLoop::Clock::time_point deadline);
  void WaitForNextLate();
  void GiveUpSoon();
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
  bool late_ = false;  // the answer to asked_ is overdue
  uint32_t strikes_ = 0;
  std::multiset<EventLoop::Clock::time_point> late_at_;  // see CountLateAt
  EntryPtr asked_;
  std::deque<EntryPtr> waiting_;
  size_t backlog_ = 0;             // the fewest questions that have waited since Open
  size_t bytes_ = 0;               // payload bytes of waiting questions
  EventLoop::HandlePtr too_slow_;  // set when there was no room for a notice
  Status ended_;
};

// The form in which one plugin gets events that were sent by StateChange before NRI 0.12 and have
// had methods of their own since. The form of the plugin's version is tried first, then the other
// one if the method is missing, and the working form is remembered for each event.
class EventForms {
 public:
  // NRI 0.12 and later have the methods; such a plugin sends its version at registration.
  explicit EventForms(bool has_version) : own_method_(has_version ? kAllEvents : 0) {}

  // This object outlives the question.
  Question Make(const api::StateChangeEvent& event);

 private:
  bool Change(Question& question, api::Event event);

  uint32_t own_method_;   // bits of events with a method of their own
  uint32_t settled_ = 0;  // bits of events whose form is known
};

}  // namespace resmgr::nri
