// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/relay.h"

#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {

namespace {

// After running out of file descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};
// Clients on a node are a kubelet and a few tools.
constexpr size_t kMaxConnections = 1024;
constexpr uint32_t kUnreadBurst = 10;
constexpr std::chrono::minutes kUnreadPeriod{1};
// Connections taken per event, so that a flood of them does not starve the calls.
constexpr int kAcceptBatch = 16;

}  // namespace

Relay::Relay(EventLoop& loop, h2::FlushQueue& flushes, ListeningSocket listener, Options options,
             Watchers watchers)
    : loop_(loop),
      flushes_(flushes),
      options_(std::move(options)),
      one_socket_(options_.image_socket == options_.runtime_socket),
      watchers_(watchers),
      log_(GetLogger("cri/relay")),
      unread_limit_(kUnreadBurst, kUnreadPeriod),
      listener_(std::move(listener)) {
  accept_watch_ = loop_.Watch(listener_->fd(), EventLoop::kReadable, [this](int) { Accept(); });
}

Relay::~Relay() = default;

void Relay::Accept() {
  const h2::FlushQueue::Scope scope(flushes_);
  for (int i = 0; i < kAcceptBatch; ++i) {
    auto accepted = listener_->Accept();
    if (!accepted.ok()) {
      log_.Warn("cannot accept a connection: {}", Message(accepted.status()));
      EventLoop::SetEvents(*accept_watch_, 0);
      accept_pause_ = loop_.After(kAcceptPause, [this] {
        if (accept_watch_ != nullptr) EventLoop::SetEvents(*accept_watch_, EventLoop::kReadable);
      });
      return;
    }
    if (!accepted->has_value()) return;
    if (connections_.size() >= kMaxConnections) {
      log_.Warn("refusing a connection: {} are open", connections_.size());
      continue;
    }
    connections_.push_back(std::make_unique<Connection>(*this, loop_, **std::move(accepted)));
    connections_.back()->set_position(std::prev(connections_.end()));
    NoteConnections();
  }
}

std::unique_ptr<CallTap> Relay::MakeTap(const Method& method, bool intercepted) {
  if (watchers_.dumper == nullptr) return nullptr;
  return CallTap::Create(*watchers_.dumper, next_call_++, method, intercepted);
}

void Relay::CountCall(const Method& method, bool intercepted, int grpc_code) {
  if (watchers_.metrics == nullptr) return;
  const auto kind = intercepted ? Metrics::CallKind::kIntercepted : Metrics::CallKind::kPassthrough;
  watchers_.metrics->Calls(method.path, kind).Count(grpc_code);
}

void Relay::AddListener() {
  if (++listeners_ == 1 && told_listen_) told_listen_(true);
}

void Relay::RemoveListener() {
  if (--listeners_ == 0 && told_listen_) told_listen_(false);
}

void Relay::NoteConnections() {
  if (watchers_.metrics == nullptr) return;
  watchers_.metrics->SetConnections(Metrics::Peer::kClient, connections_.size());
}

StatusOr<std::string_view> Relay::SocketFor(const Method& method) const {
  if (method.service != Service::kImage || one_socket_) return options_.runtime_socket;
  if (options_.image_socket) return *options_.image_socket;
  return Unimplemented("the image service is not served here (-image-socket -)");
}

void Relay::NoteUnread(const Method& method, std::string_view why) {
  if (const auto suppressed = unread_limit_.Pass(loop_.Now())) {
    log_.Warn("{} passes unread, so nothing is placed by it: {} ({} more were not logged)",
              Printable(method.path), why, *suppressed);
  }
}

void Relay::Remove(Connection& connection, std::string_view why) {
  if (!connection.Retire()) return;
  log_.Debug("a client left: {}", why);
  std::unique_ptr<Connection> dead = std::move(*connection.position());
  connections_.erase(connection.position());
  NoteConnections();
  loop_.Post([dead = std::shared_ptr<Connection>(std::move(dead))] {});
  if (drained_ && connections_.empty()) FinishDrain();
}

void Relay::Drain(std::function<void()> done) {
  const h2::FlushQueue::Scope scope(flushes_);
  drained_ = std::move(done);
  accept_watch_.reset();
  listener_.reset();
  for (auto it = connections_.begin(); it != connections_.end();)
    (*it++)->Drain();
  if (connections_.empty()) {
    FinishDrain();
    return;
  }
  drain_timer_ = loop_.After(options_.drain_timeout, [this] {
    log_.Warn("{} connections did not end in time", connections_.size());
    FinishDrain();
  });
}

void Relay::FinishDrain() {
  drain_timer_.reset();
  if (auto done = std::exchange(drained_, nullptr)) done();
}

}  // namespace resmgr
