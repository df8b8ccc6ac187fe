// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Looks at many cgroups away from the loop. Requests that come during a look are answered together
// by the next look. Loop's thread only.
template <typename Subject, typename Found>
class BatchedLook {
 public:
  // Thread-safe.
  using LookAt = std::function<Found(const Subject& subject)>;
  // Runs off the loop at the beginning of each look and reads the facts that its subjects share.
  using BeginLook = std::function<LookAt()>;
  using Done = std::function<void(std::vector<Found>)>;

  // If a look takes longer than `patience`, the answer is empty values.
  BatchedLook(EventLoop& loop, std::string name, BeginLook look, std::chrono::milliseconds patience)
      : loop_(loop),
        look_(std::move(look)),
        patience_(patience),
        reading_(loop, std::move(name), std::chrono::milliseconds(0)) {}

  // Runs `done` soon, even if the look hangs, and never inside this call.
  void Look(std::vector<Subject> subjects, Done done) {
    waiting_.push_back({std::move(subjects), std::move(done)});
    if (batch_ == nullptr) Begin();
  }

 private:
  struct Request {
    std::vector<Subject> subjects;
    Done done;
  };
  using Batch = std::vector<Request>;
  using Results = std::vector<std::vector<Found>>;

  static Results LookAtAll(const BeginLook& look, const Batch& batch) {
    const LookAt look_at = look();
    Results found;
    for (const Request& request : batch) {
      std::vector<Found>& values = found.emplace_back();
      values.reserve(request.subjects.size());
      std::ranges::transform(request.subjects, std::back_inserter(values), look_at);
    }
    return found;
  }

  void Begin() {
    batch_ = std::make_shared<Batch>(std::exchange(waiting_, {}));
    const auto give_up = [this] { End({}); };
    if (hangs_) {
      deadline_ = loop_.After(std::chrono::milliseconds(0), give_up);
      return;
    }
    deadline_ = loop_.After(patience_, [this] {
      hangs_ = true;
      End({});
    });
    const Status begun = reading_.Run([this, batch = batch_, look = look_]() -> EventLoop::Task {
      auto found = std::make_shared<Results>(LookAtAll(look, *batch));
      return [this, batch, found] {
        hangs_ = false;
        if (batch_ == batch) End(std::move(*found));
      };
    });
    if (!begun.ok()) deadline_ = loop_.After(std::chrono::milliseconds(0), give_up);
  }

  void End(Results found) {
    deadline_.reset();
    const std::shared_ptr<Batch> batch = std::exchange(batch_, nullptr);
    found.resize(batch->size());
    for (size_t i = 0; i < batch->size(); ++i)
      (*batch)[i].done(std::move(found[i]));
    if (batch_ == nullptr && !waiting_.empty()) Begin();
  }

  EventLoop& loop_;
  const BeginLook look_;
  const std::chrono::milliseconds patience_;
  OffLoop reading_;
  Batch waiting_;
  std::shared_ptr<Batch> batch_;  // the batch that is being looked at
  EventLoop::HandlePtr deadline_;
  bool hangs_ = false;  // an earlier look has not ended in time
};

}  // namespace resmgr
