// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/flush_queue.h"

#include "pkg/h2/session.h"

namespace resmgr::h2 {

void FlushQueue::Add(Session& session) {
  session.dirty_ = true;
  session.next_dirty_ = nullptr;
  (last_ != nullptr ? last_->next_dirty_ : first_) = &session;
  last_ = &session;
  if (depth_ == 0 && !posted_) PostRun();
}

void FlushQueue::PostRun() {
  posted_ = true;
  loop_.Post([this] {
    posted_ = false;
    const Scope scope(*this);
  });
}

void FlushQueue::Remove(Session& session) {
  if (!session.dirty_) return;
  session.dirty_ = false;
  Session* previous = nullptr;
  for (Session* at = first_; at != &session; at = at->next_dirty_)
    previous = at;
  (previous != nullptr ? previous->next_dirty_ : first_) = session.next_dirty_;
  if (last_ == &session) last_ = previous;
}

void FlushQueue::Run() {
  // Flushing opens windows of other sessions and so adds them.
  ++depth_;
  while (first_ != nullptr) {
    Session& session = *first_;
    first_ = session.next_dirty_;
    if (first_ == nullptr) last_ = nullptr;
    session.dirty_ = false;
    session.Flush();
  }
  --depth_;
}

}  // namespace resmgr::h2
