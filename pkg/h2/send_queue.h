// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/h2/stream.h"

namespace resmgr::h2 {

// The streams that have something to send, in turn. Each is queued at most once.
class SendQueue {
 public:
  bool empty() const { return first_ == nullptr; }

  void Push(Stream& stream) {
    if (stream.in_send_queue_) return;
    stream.in_send_queue_ = true;
    stream.next_to_send_ = nullptr;
    if (last_ != nullptr) {
      last_->next_to_send_ = &stream;
    } else {
      first_ = &stream;
    }
    last_ = &stream;
  }

  // The queue must not be empty.
  Stream& Pop() {
    Stream& stream = *first_;
    first_ = stream.next_to_send_;
    if (first_ == nullptr) last_ = nullptr;
    stream.in_send_queue_ = false;
    return stream;
  }

  void Remove(Stream& stream) {
    if (!stream.in_send_queue_) return;
    Stream* previous = nullptr;
    for (Stream* at = first_; at != &stream; at = at->next_to_send_)
      previous = at;
    (previous != nullptr ? previous->next_to_send_ : first_) = stream.next_to_send_;
    if (last_ == &stream) last_ = previous;
    stream.in_send_queue_ = false;
  }

 private:
  Stream* first_ = nullptr;
  Stream* last_ = nullptr;
};

}  // namespace resmgr::h2
