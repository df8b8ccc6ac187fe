// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "pkg/base/status.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/h2/frame.h"
#include "pkg/h2/limits.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::h2 {

// What the peer of a connection may send on all of its streams together (flow control, RFC 9113
// section 5.2). It grows by what the handlers give back. Streams that are not read keep their share
// of it. When these shares take nearly all of it and nothing is given back for a while, the
// connection is crowded: all streams get smaller windows by a SETTINGS frame, and once the peer has
// confirmed them, the connection's grows as far as the unread streams need, so that the others go
// on. What handlers have not consumed stays below kMostUnread. Loop's thread only.
class ReceiveWindow {
 public:
  // How the peer is told.
  class Teller {
   public:
    // The connection's window grows by so many bytes.
    virtual void TellWindow(size_t count) = 0;
    // The window of each stream is of this size from now on; the peer's confirmation of this
    // SETTINGS frame is to be told to OnSettingsConfirmed.
    virtual void TellStreamWindow(int32_t size) = 0;

   protected:
    ~Teller() = default;
  };

  // All outlive the window.
  ReceiveWindow(EventLoop& loop, FlushQueue& flushes, Teller& teller)
      : loop_(loop), flushes_(flushes), teller_(teller) {}

  // After the first SETTINGS frame was sent: makes the window as large as kConnectionWindow.
  void Open();
  // A DATA frame of this length begins. InvalidArgument: the peer was not allowed so much.
  Status Take(uint32_t length) {
    left_ -= length;
    return left_ < kStreamWindow ? OnLittleLeft() : OkStatus();
  }
  // So many bytes that were taken are not held any more.
  void Consume(size_t count);
  // The peer has confirmed a SETTINGS frame.
  void OnSettingsConfirmed();
  // The connection is over: nothing is told any more.
  void Close() { stall_watch_.reset(); }

  // Bytes that were taken and not consumed.
  int64_t unread() const { return granted_ - left_ - static_cast<int64_t>(consumed_); }
  // Of each stream, as the peer was told last.
  int32_t stream_window() const { return crowded_ ? kCrowdedStreamWindow : kStreamWindow; }

 private:
  Status OnLittleLeft();
  void GiveBack();
  void WatchForStall();
  void SetCrowded(bool crowded);
  void GrantMore();

  EventLoop& loop_;
  FlushQueue& flushes_;
  Teller& teller_;
  int64_t left_ = kDefaultWindow;        // what the peer may send
  int64_t granted_ = kConnectionWindow;  // of that, unread and consumed bytes together
  size_t consumed_ = 0;                  // and not given back yet
  int unconfirmed_settings_ = 0;
  bool crowded_ = false;    // streams have small windows
  bool gave_back_ = false;  // since the watch for a stall began
  EventLoop::HandlePtr stall_watch_;
};

}  // namespace resmgr::h2
