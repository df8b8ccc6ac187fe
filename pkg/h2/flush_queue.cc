// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/flush_queue.h"

#include <algorithm>

#include "pkg/h2/session.h"

namespace resmgr::h2 {

void FlushQueue::Add(Session& session) {
  session.dirty_ = true;
  sessions_.push_back(&session);
  if (depth_ == 0 && !posted_) {
    posted_ = true;
    loop_.Post([this] {
      posted_ = false;
      const Scope scope(*this);
    });
  }
}

void FlushQueue::Remove(Session& session) {
  const auto it = std::find(sessions_.begin(), sessions_.end(), &session);
  if (it != sessions_.end()) *it = nullptr;
  session.dirty_ = false;
}

void FlushQueue::Run() {
  // Flushing opens windows of other sessions and so adds them: by index, since the vector grows
  // meanwhile.
  ++depth_;
  // NOLINTNEXTLINE(modernize-loop-convert)
  for (size_t i = 0; i < sessions_.size(); ++i) {
    Session* session = sessions_[i];
    if (session == nullptr) continue;
    sessions_[i] = nullptr;
    session->dirty_ = false;
    session->Flush();
  }
  sessions_.clear();
  --depth_;
}

}  // namespace resmgr::h2
