// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/sys/event_loop.h"

namespace resmgr::h2 {

class Session;

// The sessions that have something to send. They are flushed once per event, after everything that
// the event caused has been queued: so the frames of one call leave in one system call. Loop's
// thread only; outlives its sessions.
class FlushQueue {
 public:
  explicit FlushQueue(EventLoop& loop) : loop_(loop) {}

  // Flushes at the end of the current scope, or soon when there is none. Not for a session that is
  // marked already.
  void Add(Session& session);
  // Out of everything here.
  void Remove(Session& session);
  // After the current flush: its read block may be free then.
  void LookAgain(Session& session) { look_again_.push_back(&session); }
  // Session::OnRoom soon after what it has unread, or what all have, is little again.
  void WaitForRoom(Session& session);

  // Marks one event of a session: whatever is added within is flushed when the outermost scope
  // ends.
  class Scope {
   public:
    explicit Scope(FlushQueue& queue) : queue_(queue) { ++queue_.depth_; }
    ~Scope() {
      if (--queue_.depth_ == 0) queue_.Run();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    FlushQueue& queue_;
  };

 private:
  void Run();
  void PostRun();
  void TellOfRoom();

  EventLoop& loop_;
  // In turn, each with the next one.
  Session* first_ = nullptr;
  Session* last_ = nullptr;
  std::vector<Session*> look_again_;
  std::vector<Session*> without_room_;
  EventLoop::HandlePtr room_timer_;  // while there are such
  int depth_ = 0;
  bool posted_ = false;
};

}  // namespace resmgr::h2
