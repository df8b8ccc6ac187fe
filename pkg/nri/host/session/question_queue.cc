// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/question_queue.h"

#include <algorithm>
#include <utility>

namespace resmgr::nri {
namespace {

// A plugin's library cancels a handler at its deadline and sends the handler's error, which would
// count as a refusal. So the plugin is given slightly more time than the host waits.
constexpr std::chrono::milliseconds kGrace{100};

constexpr const char* kStateChange = "StateChange";

// See StateChangeOf.
std::string OwnRequest(const api::StateChangeEvent& event) {
  api::PostCreateContainerRequest request;
  *request.mutable_pod() = event.pod();
  if (event.has_container()) *request.mutable_container() = event.container();
  return request.SerializeAsString();
}

std::string EventOfOwnRequest(const std::string& payload, api::Event kind) {
  api::PostCreateContainerRequest request;
  request.ParseFromString(payload);
  return StateChangeOf(kind, std::move(request)).SerializeAsString();
}

}  // namespace

QuestionQueue::QuestionQueue(EventLoop& loop, ttrpc::Client& client, PluginStats& stats,
                             uint32_t strikes, GiveUp give_up)
    : loop_(loop),
      client_(client),
      stats_(stats),
      most_strikes_(strikes),
      give_up_(std::move(give_up)) {}

void QuestionQueue::Answer(Entry& entry, StatusOr<std::string> answer) {
  entry.timer.reset();
  if (const Done done = std::exchange(entry.done, nullptr)) done(std::move(answer));
}

bool QuestionQueue::HasRoom(const Question& question) const {
  return (!open_ || waiting_.size() < backlog_ + kMostQuestions) &&
         question.payload->size() <= kMostBytes - bytes_;
}

void QuestionQueue::Ask(Question question, std::chrono::milliseconds timeout, Done done) {
  Status refusal;
  if (!ended_.ok()) {
    refusal = ended_;
  } else if (question.payload->size() > kLongestQuestion) {
    refusal = Unavailable("its {} bytes are more than NRI can carry", question.payload->size());
  } else if (late_) {
    refusal = DeadlineExceeded("it has not answered {} yet", asked_->question.method);
    CountLateAt(loop_.Now() + timeout);
  } else if (timeout.count() <= 0) {
    refusal = DeadlineExceeded("there was no time left to ask it");
  } else if (!HasRoom(question)) {
    refusal = DeadlineExceeded("{} questions wait for it", waiting_.size());
  }
  if (!refusal.ok()) {
    stats_.NoteFailure(refusal);
    const bool must_hear =
        ended_.ok() && question.tells && question.payload->size() <= kLongestQuestion;
    if (must_hear && !HasRoom(question)) GiveUpSoon();
    if (!must_hear || !HasRoom(question)) return done(refusal);
  }
  auto entry = std::make_unique<Entry>();
  entry->timeout = std::max(timeout, std::chrono::milliseconds(1));
  entry->deadline = loop_.Now() + entry->timeout;
  bytes_ += question.payload->size();
  entry->question = std::move(question);
  if (!refusal.ok()) {
    waiting_.push_back(std::move(entry));
    return done(refusal);
  }
  entry->done = std::move(done);
  if (!CanAsk() || !waiting_.empty()) {
    entry->timer = loop_.After(entry->timeout, [this, at = entry.get()] { OnOverdue(*at); });
  }
  waiting_.push_back(std::move(entry));
  Next();
}

// The plugin's picture would be wrong from now on. When it connects again, it gets a new one: a
// plugin takes only one on each connection.
void QuestionQueue::GiveUpSoon() {
  if (too_slow_ != nullptr) return;
  const Status why = DeadlineExceeded("it is too slow: {} questions wait for it", waiting_.size());
  too_slow_ = loop_.After(std::chrono::milliseconds(0), [this, why] {
    if (ended_.ok()) give_up_(why);
  });
}

void QuestionQueue::Open() {
  open_ = true;
  backlog_ = waiting_.size();
  Next();
}

void QuestionQueue::Next() {
  if (!CanAsk() || waiting_.empty()) return;
  asked_ = std::move(waiting_.front());
  waiting_.pop_front();
  backlog_ = std::min(backlog_, waiting_.size());
  bytes_ -= asked_->question.payload->size();
  // No caller waits for this question any more, so its time limit begins only now.
  if (!asked_->done) asked_->deadline = loop_.Now() + asked_->timeout;
  asked_->timer =
      loop_.After(std::chrono::ceil<std::chrono::milliseconds>(asked_->deadline - loop_.Now()),
                  [this] { OnLate(); });
  Send();
}

void QuestionQueue::Send() {
  asked_->sent = EventLoop::Clock::now();
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(asked_->deadline - loop_.Now());
  client_.CallUntilAnswered(kPluginService, asked_->question.method, asked_->question.payload,
                            std::max(left, std::chrono::milliseconds(0)) + kGrace,
                            [this](StatusOr<std::string> answer) { OnAnswer(std::move(answer)); });
}

void QuestionQueue::OnAnswer(StatusOr<std::string> answer) {
  if (!ended_.ok()) return;
  if (!client_.fault().ok()) return give_up_(client_.fault());
  if (answer.status().code() == StatusCode::kUnimplemented && asked_->question.otherwise &&
      asked_->question.otherwise(asked_->question)) {
    return Send();
  }
  const EntryPtr entry = std::move(asked_);
  const Status status = answer.status();
  // A question that timed out has no `done`, and was already counted as a failure.
  if (entry->done) stats_.NoteAnswer(EventLoop::Clock::now() - entry->sent, status);
  const bool on_time = !std::exchange(late_, false);
  late_at_.clear();
  Answer(*entry, std::move(answer));
  if (!ended_.ok()) return;
  // The plugin's own clock may report the time-out before ours does.
  if (on_time && status.code() == StatusCode::kDeadlineExceeded) {
    if (!Strike(status)) return;
  } else if (on_time) {
    strikes_ = 0;
  }
  Next();
}

// Runs when the time of the asked question, or of one that waited for its answer, is over.
void QuestionQueue::OnLate() {
  const Status why = DeadlineExceeded("no answer to {} within {} ms", asked_->question.method,
                                      asked_->timeout.count());
  const bool first = !std::exchange(late_, true);
  const EventLoop::HandlePtr timer = std::move(asked_->timer);
  if (first) {
    stats_.NoteFailure(why);
    for (const EntryPtr& entry : waiting_)
      CountLateAt(entry->deadline);
    Answer(*asked_, why);
    if (ended_.ok()) FailWaiting(why);
  } else {
    late_at_.erase(late_at_.begin());
  }
  if (ended_.ok() && Strike(why)) WaitForNextLate();
}

void QuestionQueue::CountLateAt(EventLoop::Clock::time_point deadline) {
  if (late_at_.size() == kMostQuestions) return;
  late_at_.insert(deadline);
  if (asked_->timer == nullptr || deadline == *late_at_.begin()) WaitForNextLate();
}

void QuestionQueue::WaitForNextLate() {
  if (asked_ == nullptr || !late_ || late_at_.empty()) return;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*late_at_.begin() - loop_.Now());
  asked_->timer = loop_.After(std::max(left, std::chrono::milliseconds(0)), [this] { OnLate(); });
}

bool QuestionQueue::Strike(const Status& why) {
  if (++strikes_ < most_strikes_ || most_strikes_ == 0) return true;
  give_up_(DeadlineExceeded("{} answers in a row were late: {}", strikes_, Message(why)));
  return false;
}

// Called when a waiting question's time is over: drops it, unless it is a notice of an event.
void QuestionQueue::OnOverdue(Entry& entry) {
  const Status why = DeadlineExceeded("{} was not asked within {} ms", entry.question.method,
                                      entry.timeout.count());
  stats_.NoteFailure(why);
  if (entry.question.tells) return Answer(entry, why);
  const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                               [&entry](const EntryPtr& each) { return each.get() == &entry; });
  const EntryPtr taken = std::move(*at);
  waiting_.erase(at);
  bytes_ -= taken->question.payload->size();
  Answer(*taken, why);
}

void QuestionQueue::FailWaiting(const Status& why) {
  std::deque<EntryPtr> told;
  std::vector<Done> failed;
  bytes_ = 0;
  for (EntryPtr& entry : std::exchange(waiting_, {})) {
    entry->timer.reset();
    if (entry->done) failed.push_back(std::exchange(entry->done, nullptr));
    if (!entry->question.tells || !ended_.ok()) continue;
    bytes_ += entry->question.payload->size();
    told.push_back(std::move(entry));
  }
  waiting_ = std::move(told);
  for (const Done& done : failed) {
    stats_.NoteFailure(why);
    done(why);
  }
}

void QuestionQueue::End(const Status& why) {
  if (!ended_.ok()) return;
  ended_ = Unavailable("{}", Message(why));
  const EntryPtr entry = std::move(asked_);
  if (entry != nullptr && entry->done) {
    stats_.NoteFailure(ended_);
    Answer(*entry, ended_);
  }
  FailWaiting(ended_);
}

Question EventForms::Make(const api::StateChangeEvent& event) {
  const api::Event kind = event.event();
  const bool own = (own_method_ & BitOf(kind)) != 0;
  return {.method = own ? MethodOf(kind) : kStateChange,
          .payload = ttrpc::Share(own ? OwnRequest(event) : event.SerializeAsString()),
          .tells = true,
          .otherwise = [this, kind](Question& question) { return Change(question, kind); }};
}

// Called if the plugin lacks the method that was called: changes the question into the other form,
// also if it was built before the working form was known. False: the plugin has neither form.
bool EventForms::Change(Question& question, api::Event event) {
  const uint32_t bit = BitOf(event);
  const bool was_own = question.method != kStateChange;
  const bool is_own = (own_method_ & bit) != 0;
  if (was_own == is_own) {
    if ((settled_ & bit) != 0) return false;
    settled_ |= bit;
    own_method_ ^= bit;
  }
  question.method = was_own ? kStateChange : MethodOf(event);
  if (was_own) {
    question.payload = ttrpc::Share(EventOfOwnRequest(*question.payload, event));
  } else {
    api::StateChangeEvent told;
    told.ParseFromString(*question.payload);
    question.payload = ttrpc::Share(OwnRequest(told));
  }
  return true;
}

}  // namespace resmgr::nri
