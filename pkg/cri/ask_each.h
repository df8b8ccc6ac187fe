// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace resmgr {

// Asks one question for each number below a count, a limited number of them at a time, and reports
// when all are answered. For questions that are never answered inside the call that asks them.
// Lives as long as one of its `answered` functions.
class AskEach : public std::enable_shared_from_this<AskEach> {
 public:
  using Answered = std::function<void()>;
  struct Questions {
    size_t count = 0;
    size_t width = 1;  // questions in flight at once
    // `answered` must be called once, later.
    std::function<void(size_t number, Answered answered)> ask;
    // Not called inside Start, except for a count of 0.
    std::function<void()> all_answered;
  };

  static void Start(Questions questions) {
    if (questions.count == 0) return questions.all_answered();
    const std::shared_ptr<AskEach> self(new AskEach(std::move(questions)));
    for (size_t i = 0; i < self->questions_.width; ++i)
      self->AskNext();
  }

 private:
  explicit AskEach(Questions questions)
      : questions_(std::move(questions)), left_(questions_.count) {}

  void AskNext() {
    if (next_ == questions_.count) return;
    questions_.ask(next_++, [self = shared_from_this()] {
      self->AskNext();
      if (--self->left_ == 0) self->questions_.all_answered();
    });
  }

  const Questions questions_;
  size_t next_ = 0;
  size_t left_ = 0;
};

}  // namespace resmgr
