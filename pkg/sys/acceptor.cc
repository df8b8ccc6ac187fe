// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/acceptor.h"

namespace resmgr {
namespace {

constexpr int kBatch = 16;
// Pause after a connection was ended to make room: its file descriptors are closed soon.
constexpr std::chrono::milliseconds kShortPause{1};

}  // namespace

void Acceptor::Listen(ListeningSocket listener) {
  listener_ = std::move(listener);
  watch_ = loop_.Watch(listener_->fd(), EventLoop::kReadable, [this](int) { Accept(); });
}

void Acceptor::Stop() {
  rest_.reset();
  watch_.reset();
  listener_.reset();
}

void Acceptor::Accept() {
  for (int i = 0; i < kBatch && listener_; ++i) {
    StatusOr<std::optional<UniqueFd>> accepted = listener_->Accept();
    if (!accepted.ok()) return Rest(accepted.status());
    if (!accepted->has_value()) return;
    made_room_ = false;
    if (options_.present && options_.present() >= options_.most) options_.make_room();
    options_.take(**std::move(accepted));
  }
}

void Acceptor::Rest(const Status& why) {
  options_.failed(why);
  const bool any = options_.present && options_.present() > 0;
  made_room_ = any && !made_room_;
  if (made_room_) options_.make_room();
  EventLoop::SetEvents(*watch_, 0);
  rest_ = loop_.After(made_room_ ? kShortPause : options_.pause,
                      [this] { EventLoop::SetEvents(*watch_, EventLoop::kReadable); });
}

}  // namespace resmgr
