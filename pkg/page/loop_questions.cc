// SPDX-License-Identifier: Apache-2.0
#include "pkg/page/loop_questions.h"

#include <utility>

namespace resmgr {

struct LoopQuestions::State {
  explicit State(Limits given) : limits(given) {}

  // Checks the limits for a question without a recent answer. The mutex must be held.
  Status Admit(Clock::time_point now) {
    if (loop == nullptr) return Unavailable("the daemon starts or ends");
    if (under_way >= limits.under_way) {
      return ResourceExhausted("{} questions wait for the event loop", under_way);
    }
    if (now - second_began >= std::chrono::seconds(1)) {
      second_began = now;
      in_second = 0;
    }
    if (in_second >= limits.a_second) {
      return ResourceExhausted("there were {} questions within a second", in_second);
    }
    ++in_second;
    ++under_way;
    return OkStatus();
  }

  // Drops answers that are too old to be given again. The mutex must be held.
  void Forget(Clock::time_point now) {
    std::erase_if(questions, [&](const auto& each) {
      return each.second->answered && now - each.second->asked >= limits.fresh;
    });
  }

  const Limits limits;
  std::mutex mutex;
  std::condition_variable changed;
  EventLoop* loop = nullptr;
  std::map<std::string, std::shared_ptr<Question>> questions;
  size_t under_way = 0;
  size_t waiting = 0;
  Clock::time_point second_began{};
  size_t in_second = 0;
  // Used on the loop's thread only.
  UnaryServer::Methods methods;
};

LoopQuestions::LoopQuestions(Limits limits) : state_(std::make_shared<State>(limits)) {}

void LoopQuestions::Open(EventLoop& loop, UnaryServer::Methods methods) {
  state_->methods = std::move(methods);
  const std::lock_guard lock(state_->mutex);
  state_->loop = &loop;
}

void LoopQuestions::Close() {
  state_->methods.clear();
  const std::lock_guard lock(state_->mutex);
  state_->loop = nullptr;
  for (const auto& [key, question] : state_->questions) {
    if (std::exchange(question->answered, true)) continue;
    question->answer = Unavailable("the daemon ends");
  }
  state_->changed.notify_all();
}

void LoopQuestions::AskOnLoop(const std::shared_ptr<State>& state, const std::string& method,
                              const std::string& message,
                              const std::shared_ptr<Question>& question) {
  const auto found = state->methods.find(method);
  const auto answer = [state, question](StatusOr<std::string> given) {
    const std::lock_guard lock(state->mutex);
    --state->under_way;
    question->answered = true;
    // The answer counts as fresh from now on: otherwise the answer of a late loop could be outdated
    // at once.
    question->asked = Clock::now();
    if (given.ok()) {
      question->answer = std::make_shared<const std::string>(*std::move(given));
    } else {
      question->answer = given.status();
    }
    state->changed.notify_all();
  };
  if (found == state->methods.end()) {
    answer(Unavailable("the daemon ends"));
  } else {
    found->second(message, answer);
  }
}

StatusOr<LoopQuestions::Text> LoopQuestions::Ask(const std::string& method,
                                                 const std::string& message) {
  const Clock::time_point now = Clock::now();
  const std::string key = method + ' ' + message;
  std::unique_lock lock(state_->mutex);
  state_->Forget(now);
  std::shared_ptr<Question> question;
  if (const auto known = state_->questions.find(key); known != state_->questions.end()) {
    question = known->second;
    if (question->answered) return question->answer;
  }
  if (state_->waiting >= state_->limits.waiting) {
    return ResourceExhausted("{} readers wait for the event loop", state_->waiting);
  }
  if (question == nullptr) {
    if (state_->questions.size() >= state_->limits.kept) {
      return ResourceExhausted("{} different questions were asked at once", state_->limits.kept);
    }
    RESMGR_RETURN_IF_ERROR(state_->Admit(now));
    question = std::make_shared<Question>();
    state_->questions.emplace(key, question);
    state_->loop->Post([state = state_, method, message, question] {
      AskOnLoop(state, method, message, question);
    });
  }
  ++state_->waiting;
  const bool answered = state_->changed.wait_until(lock, now + state_->limits.deadline,
                                                   [&] { return question->answered; });
  --state_->waiting;
  if (!answered) {
    return Unavailable("the event loop did not answer within {} ms",
                       state_->limits.deadline.count());
  }
  return question->answer;
}

}  // namespace resmgr
