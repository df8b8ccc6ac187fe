// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/sys/event_loop.h"

namespace resmgr::h2 {

class Session;

// The sessions that have something to send. They are flushed once per event, after everything that
// the event caused has been queued, so that the frames of one call leave in one system call. Loop's
// thread only; outlives its sessions.
class FlushQueue {
 public:
  explicit FlushQueue(EventLoop& loop) : loop_(loop) {}

  // Flushes the session at the end of the current scope, or soon if there is none. It must not be
  // marked already.
  void Add(Session& session);
  // Removes the session from all lists.
  void Remove(Session& session);
  // After the current flush, the session drops its read block if that is free then.
  void LookAgain(Session& session) { look_again_.push_back(&session); }
  // Calls Session::OnRoom once this session, or all sessions together, hold little memory again.
  void WaitForRoom(Session& session);

  // Marks one event of a session: sessions that are added within it are flushed when the outermost
  // scope ends.
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
  // A linked list of the sessions to flush, in their order.
  Session* first_ = nullptr;
  Session* last_ = nullptr;
  std::vector<Session*> look_again_;
  std::vector<Session*> without_room_;
  EventLoop::HandlePtr room_timer_;  // set while sessions are without room
  int depth_ = 0;
  bool posted_ = false;
};

}  // namespace resmgr::h2
