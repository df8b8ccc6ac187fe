// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/flush_queue.h"

#include "pkg/h2/session.h"

namespace resmgr::h2 {

namespace {

// A timer polls for room: memory is released in many places, none of which knows the waiting
// sessions.
constexpr std::chrono::milliseconds kRoomPeriod{5};

}  // namespace

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
  std::erase(look_again_, &session);
  std::erase(without_room_, &session);
  if (!session.dirty_) return;
  session.dirty_ = false;
  Session* previous = nullptr;
  for (Session* at = first_; at != &session; at = at->next_dirty_)
    previous = at;
  (previous != nullptr ? previous->next_dirty_ : first_) = session.next_dirty_;
  if (last_ == &session) last_ = previous;
}

void FlushQueue::Run() {
  // Flushing a session may open windows of other sessions, which are then added to the list.
  ++depth_;
  while (first_ != nullptr) {
    Session& session = *first_;
    first_ = session.next_dirty_;
    if (first_ == nullptr) last_ = nullptr;
    session.dirty_ = false;
    session.Flush();
  }
  --depth_;
  for (; !look_again_.empty(); look_again_.pop_back())
    look_again_.back()->DropReadBlock();
}

[[gnu::cold]] void FlushQueue::WaitForRoom(Session& session) {
  without_room_.push_back(&session);
  if (room_timer_ == nullptr) room_timer_ = loop_.Every(kRoomPeriod, [this] { TellOfRoom(); });
}

void FlushQueue::TellOfRoom() {
  const bool much = Memory::held() <= kMuchHeld / 8 * 7;
  std::erase_if(without_room_, [much](Session* session) {
    const bool room = much || session->kept() <= kKeptShare / 2;
    if (room) session->OnRoom();
    return room;
  });
  if (without_room_.empty()) room_timer_.reset();
}

}  // namespace resmgr::h2
