// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "pkg/sys/event_loop.h"

namespace resmgr {

// Lets callbacks that run later find out whether the object that they use still exists. A Lifetime
// is a member of that object and ends with it. Costs nothing until it is used. Not thread-safe.
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  // Calls `callback` unless the object is gone, or End was called.
  template <typename Callback>
  auto Guard(Callback callback) const {
    return [token = token(), callback = std::move(callback)](auto&&... args) mutable {
      if (!token.expired()) callback(std::forward<decltype(args)>(args)...);
    };
  }
  // Expires with the object.
  std::weak_ptr<void> token() const {
    if (token_ == nullptr && !ended_) token_ = std::make_shared<char>();
    return token_;
  }
  // From now on no callback runs, as if the object had ended; later ones do not run either.
  void End() {
    ended_ = true;
    token_.reset();
  }
  bool ended() const { return ended_; }

 private:
  mutable std::shared_ptr<void> token_;
  bool ended_ = false;
};

// Destroys objects, mostly pointers, in the next turn of the loop, since one of their functions may
// be on the call stack. Objects that still wait at this list's end are destroyed with it: a task of
// the loop could outlive what they use.
template <typename Object>
class DestroyLater {
 public:
  explicit DestroyLater(EventLoop& loop) : loop_(loop) {}

  void Add(Object object) {
    objects_.push_back(std::move(object));
    if (turn_ != nullptr) return;
    turn_ = loop_.After(std::chrono::milliseconds(0), [this] {
      turn_.reset();
      // Destroying an object may add others.
      const std::vector<Object> dead = std::exchange(objects_, {});
    });
  }
  const std::vector<Object>& objects() const { return objects_; }

 private:
  EventLoop& loop_;
  std::vector<Object> objects_;
  EventLoop::HandlePtr turn_;
};

}  // namespace resmgr
