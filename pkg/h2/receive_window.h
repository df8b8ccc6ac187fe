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

// The window for a peer's DATA on all of its streams together (flow control, RFC 9113 section 5.2).
// It grows by the bytes that the handlers give back; streams that are not read keep their share of
// it. When these shares take nearly all of it and nothing is given back for a while, the connection
// is crowded: all streams get smaller windows by a SETTINGS frame, and once the peer has confirmed
// them, the connection's window grows as far as the unread streams need, so that the others go on.
// Unconsumed bytes stay below kMostUnread. Loop's thread only.
class ReceiveWindow {
 public:
  // Sends the window's changes to the peer.
  class Teller {
   public:
    // The connection's window grows by `count` bytes.
    virtual void TellWindow(size_t count) = 0;
    // Every stream's window has this size from now on; OnSettingsConfirmed must be called at the
    // peer's confirmation of this SETTINGS frame.
    virtual void TellStreamWindow(int32_t size) = 0;

   protected:
    ~Teller() = default;
  };

  // All arguments outlive the window.
  ReceiveWindow(EventLoop& loop, FlushQueue& flushes, Teller& teller)
      : loop_(loop), flushes_(flushes), teller_(teller) {}

  // Called after the first SETTINGS frame was sent: raises the window to kConnectionWindow.
  void Open();
  // Takes a DATA frame of this length. kInvalidArgument: it exceeds the window.
  Status Take(uint32_t length) {
    left_ -= length;
    return left_ < kStreamWindow ? OnLittleLeft() : OkStatus();
  }
  // Notes that `count` of the taken bytes are not held any more.
  void Consume(size_t count);
  // Called when the peer has confirmed a SETTINGS frame.
  void OnSettingsConfirmed();
  // Called when the connection is over: nothing is sent any more.
  void Close() { stall_watch_.reset(); }

  // Bytes that were taken and not consumed.
  int64_t unread() const { return granted_ - left_ - static_cast<int64_t>(consumed_); }
  // The window of a stream, as last announced to the peer.
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
  int64_t left_ = kDefaultWindow;        // bytes that the peer may send
  int64_t granted_ = kConnectionWindow;  // size of the window, unread and consumed bytes included
  size_t consumed_ = 0;                  // consumed bytes that were not given back yet
  int unconfirmed_settings_ = 0;
  bool crowded_ = false;    // streams have small windows
  bool gave_back_ = false;  // something was given back since the watch for a stall began
  EventLoop::HandlePtr stall_watch_;
};

}  // namespace resmgr::h2
