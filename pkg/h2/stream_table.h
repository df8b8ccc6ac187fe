// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <absl/container/flat_hash_map.h>

#include "pkg/h2/stream.h"

namespace resmgr::h2 {

// The open streams of a session by their ids. Streams that are open at the same time mostly have
// ids close to one another, so a small table indexed by an id's low bits finds nearly all of them
// with one comparison; a hash map has the others.
class StreamTable {
 public:
  // Null if there is no stream of this id.
  Stream* Find(int32_t id) const {
    Stream* stream = near_[Slot(id)];
    if (stream != nullptr && stream->id() == id) return stream;
    return far_.empty() ? nullptr : FindFar(id);
  }

  // The table must not have a stream of this id.
  void Insert(Stream& stream) {
    ++size_;
    Stream*& slot = near_[Slot(stream.id())];
    if (slot == nullptr) {
      slot = &stream;
    } else {
      far_.emplace(stream.id(), &stream);
    }
  }

  // The stream must be in the table.
  void Erase(const Stream& stream) {
    --size_;
    Stream*& slot = near_[Slot(stream.id())];
    if (slot == &stream) {
      slot = nullptr;
    } else {
      far_.erase(stream.id());
    }
  }

  size_t size() const { return size_; }

  // One of the streams, null if there is none.
  Stream* Any() const {
    if (size_ == 0) return nullptr;
    if (!far_.empty()) return far_.begin()->second;
    return *std::find_if(near_.begin(), near_.end(), [](Stream* at) { return at != nullptr; });
  }

  // Visits the streams in no particular order; `visit` takes a Stream&.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (Stream* stream : near_) {
      if (stream != nullptr) visit(*stream);
    }
    for (const auto& [id, stream] : far_)
      visit(*stream);
  }

 private:
  static constexpr size_t kSlots = 64;
  // A peer's ids are all odd.
  static size_t Slot(int32_t id) { return static_cast<size_t>(id) / 2 % kSlots; }

  // Not inlined, to keep the usual case short.
  [[gnu::noinline]] Stream* FindFar(int32_t id) const {
    const auto found = far_.find(id);
    return found == far_.end() ? nullptr : found->second;
  }

  std::array<Stream*, kSlots> near_{};
  absl::flat_hash_map<int32_t, Stream*> far_;
  size_t size_ = 0;
};

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

  // Queues the stream before all others.
  void PushFront(Stream& stream) {
    if (stream.in_send_queue_) return;
    stream.in_send_queue_ = true;
    stream.next_to_send_ = first_;
    first_ = &stream;
    if (last_ == nullptr) last_ = &stream;
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
