// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/receive_window.h"

#include <algorithm>
#include <chrono>

namespace resmgr::h2 {

namespace {

// A handler that is reading consumes something within this time.
constexpr std::chrono::milliseconds kStallTime{20};
constexpr size_t kGiveBack = static_cast<size_t>(kConnectionWindow) / 2;
// While the window is nearly shut, consumed bytes are given back from this number on: otherwise
// they could keep the window shut.
constexpr size_t kGiveBackEarly = static_cast<size_t>(kStreamWindow) / 2;
constexpr int64_t kGrant = kConnectionWindow / 2;

}  // namespace

void ReceiveWindow::Open() {
  ++unconfirmed_settings_;
  teller_.TellWindow(static_cast<size_t>(kConnectionWindow - kDefaultWindow));
  left_ = kConnectionWindow;
}

void ReceiveWindow::Consume(size_t count) {
  consumed_ += count;
  if (consumed_ >= kGiveBack || (consumed_ >= kGiveBackEarly && left_ < kStreamWindow)) GiveBack();
}

void ReceiveWindow::GiveBack() {
  gave_back_ = true;
  if (crowded_ && unread() < kConnectionWindow / 4) SetCrowded(false);
  if (!crowded_ && granted_ > kConnectionWindow) {
    // The streams are not crowded any more: first the extra grant is reduced by the consumed bytes,
    // and only the rest is given back.
    const int64_t kept = std::min(granted_ - kConnectionWindow, static_cast<int64_t>(consumed_));
    granted_ -= kept;
    consumed_ -= static_cast<size_t>(kept);
    if (consumed_ == 0) return;
  }
  teller_.TellWindow(consumed_);
  left_ += static_cast<int64_t>(consumed_);
  consumed_ = 0;
}

[[gnu::cold]] Status ReceiveWindow::OnLittleLeft() {
  if (left_ < 0) return InvalidArgument("more DATA than the connection's window");
  // These bytes were below the threshold while the window was wide. If no handler consumes more,
  // only this call gives them back.
  if (consumed_ >= kGiveBackEarly) GiveBack();
  if (crowded_) {
    GrantMore();
  } else if (stall_watch_ == nullptr && unread() > kConnectionWindow - kStreamWindow) {
    WatchForStall();
  }
  return OkStatus();
}

void ReceiveWindow::WatchForStall() {
  gave_back_ = false;
  stall_watch_ = loop_.After(kStallTime, [this] {
    const FlushQueue::Scope scope(flushes_);
    stall_watch_.reset();
    if (left_ >= kStreamWindow) return;
    // If the peer sends no more DATA, only this timer checks again.
    gave_back_ ? WatchForStall() : SetCrowded(true);
  });
}

void ReceiveWindow::SetCrowded(bool crowded) {
  crowded_ = crowded;
  ++unconfirmed_settings_;
  teller_.TellStreamWindow(stream_window());
}

void ReceiveWindow::OnSettingsConfirmed() {
  if (unconfirmed_settings_ > 0) --unconfirmed_settings_;
  if (crowded_) GrantMore();
}

void ReceiveWindow::GrantMore() {
  if (unconfirmed_settings_ > 0 || left_ >= kStreamWindow ||
      unread() + left_ + kGrant > kMostUnread) {
    return;
  }
  teller_.TellWindow(static_cast<size_t>(kGrant));
  granted_ += kGrant;
  left_ += kGrant;
}

}  // namespace resmgr::h2
