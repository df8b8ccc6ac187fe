// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Reads or writes many cgroups away from the loop. Requests that come during this work are carried
// out together after it. Loop's thread only.
template <typename Subject, typename Result>
class BatchedWork {
 public:
  // Thread-safe.
  using DoOne = std::function<Result(const Subject& subject)>;
  // Runs off the loop at the beginning of each batch and reads the facts that its subjects share.
  using BeginBatch = std::function<DoOne()>;
  struct Options {
    std::string name;  // the thread's
    // A batch that takes longer is given up: subjects that have not begun are skipped.
    std::chrono::milliseconds patience;
    std::chrono::milliseconds patience_at_end{0};  // of the destructor
    // The errors: "SLOW within N ms"; a former batch hangs.
    const char* slow = "no answer";
    const char* hangs = "a former request hangs";
  };
  struct Request {
    std::vector<Subject> subjects;
    std::function<void(std::vector<Result> results)> done;
    // Runs instead of `done` if the work was given up; if empty, `done` gets no results.
    std::function<void(const Status& status)> failed{};
    // Runs after that if some of the work was done after all.
    std::function<void()> late{};
  };

  BatchedWork(EventLoop& loop, BeginBatch begin, Options options)
      : loop_(loop),
        begin_(std::move(begin)),
        options_(std::move(options)),
        off_loop_(loop, options_.name, options_.patience_at_end) {}

  // Answers soon, even if the work hangs, and never inside this call.
  void Do(Request request) {
    waiting_.push_back(std::move(request));
    if (batch_ == nullptr) Begin();
  }

 private:
  struct Batch {
    std::vector<Request> requests;
    std::atomic<bool> given_up = false;
  };
  using Results = std::vector<std::vector<Result>>;

  static Results DoAll(const BeginBatch& begin, const Batch& batch) {
    const DoOne do_one = begin();
    Results results;
    for (const Request& request : batch.requests) {
      std::vector<Result>& values = results.emplace_back();
      values.reserve(request.subjects.size());
      for (const Subject& subject : request.subjects) {
        if (batch.given_up) return results;
        values.push_back(do_one(subject));
      }
    }
    return results;
  }

  void Begin() {
    batch_ = std::make_shared<Batch>();
    batch_->requests = std::exchange(waiting_, {});
    const auto give_up = [this](Status why) {
      deadline_ =
          loop_.After(std::chrono::milliseconds(0), [this, why = std::move(why)] { End(why); });
    };
    if (hangs_) return give_up(Unavailable("{}", options_.hangs));
    deadline_ = loop_.After(options_.patience, [this] {
      hangs_ = true;
      batch_->given_up = true;
      End(DeadlineExceeded("{} within {} ms", options_.slow, options_.patience.count()));
    });
    const Status begun = off_loop_.Run([this, batch = batch_, begin = begin_]() -> EventLoop::Task {
      const auto results = std::make_shared<Results>(DoAll(begin, *batch));
      return [this, batch, results] {
        hangs_ = false;
        if (batch_ == batch) return End(std::move(*results));
        for (size_t i = 0; i < results->size(); ++i)
          if (batch->requests[i].late && !(*results)[i].empty()) batch->requests[i].late();
      };
    });
    if (!begun.ok()) give_up(begun);
  }

  void End(StatusOr<Results> results) {
    deadline_.reset();
    const std::shared_ptr<Batch> batch = std::exchange(batch_, nullptr);
    for (size_t i = 0; i < batch->requests.size(); ++i) {
      const Request& request = batch->requests[i];
      if (!results.ok() && request.failed)
        request.failed(results.status());
      else
        request.done(results.ok() ? std::move((*results)[i]) : std::vector<Result>());
    }
    if (batch_ == nullptr && !waiting_.empty()) Begin();
  }

  EventLoop& loop_;
  const BeginBatch begin_;
  const Options options_;
  OffLoop off_loop_;
  std::vector<Request> waiting_;
  std::shared_ptr<Batch> batch_;  // the batch that is under way
  EventLoop::HandlePtr deadline_;
  bool hangs_ = false;  // an earlier batch has not ended in time
};

}  // namespace resmgr
