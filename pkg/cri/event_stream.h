// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "pkg/grpc/grpc_message.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/log/log.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Reads the body of a GetContainerEvents reply while it passes. A compressed, overlong or malformed
// message becomes an event of unknown kind.
class EventReader {
 public:
  // Kept bytes of a message at most. An event has the statuses of all containers of a pod.
  static constexpr size_t kMost = size_t{256} * 1024;

  explicit EventReader(std::function<void(const ContainerEvent&)> on_event);
  void Feed(std::string_view bytes) { messages_.Feed(bytes); }

 private:
  GrpcMessageReader messages_;
};

// Part of a client's call of GetContainerEvents: reads the events that pass, and reports a client
// that is behind. While it is, the daemon gets no events either: it reads them only as they pass.
// Loop's thread only.
class EventListener {
 public:
  // A client that takes nothing for this long although bytes wait for it is behind.
  static constexpr std::chrono::seconds kPatience{5};

  // `on_behind` may destroy this object. The loop outlives it.
  EventListener(EventLoop& loop, std::function<void(const ContainerEvent&)> on_event,
                std::function<void()> on_behind);
  // Takes bytes of the reply that pass to the client.
  void Feed(std::string_view bytes) { reader_.Feed(bytes); }
  // Called when bytes were queued for the client, with the number of those that wait.
  void OnQueued(size_t waiting);
  // Called when bytes have left, with the number of those that still wait.
  void OnSent(size_t waiting);

 private:
  void Look();

  EventLoop& loop_;
  EventReader reader_;
  const std::function<void()> on_behind_;
  size_t waiting_ = 0;
  bool moved_ = false;  // bytes have left since the last look
  EventLoop::HandlePtr look_;
};

// GetContainerEvents on the resource manager's own connection, if the runtime has it: opened again,
// with growing pauses, whenever it ends, and not tried again on this connection if the runtime
// lacks the method. Loop's thread only.
//
// Runtimes may send each event to one listener only (containerd before 2.0; issue 7318 of its
// project), so a kubelet that listens through the relay must be the only one: this stream is closed
// meanwhile, and the kubelet's events are read on their way (EventListener).
class EventStream final : private h2::StreamHandler {
 public:
  using OnEvent = std::function<void(const ContainerEvent&)>;

  // Both must outlive this object.
  EventStream(EventLoop& loop, UnaryClient& client, OnEvent on_event);

  // Called for a new connection.
  void Connected();
  void Disconnected();
  // Notes whether a client listens through the relay; while it does, this stream is closed.
  void SetClientListens(bool listens);

 private:
  static constexpr std::chrono::milliseconds kFirstPause{1'000};
  static constexpr std::chrono::milliseconds kLastPause{60'000};

  void Open();
  void OpenAfter(std::chrono::milliseconds pause);
  void Close();
  void OnEnded(const GrpcStatus& status);

  void OnHeaders(h2::Stream& stream, const h2::HeaderBlock& headers, bool end) override;
  void OnData(h2::Stream& stream, const h2::Slice& data) override;
  void OnEnd(h2::Stream& stream, const h2::HeaderBlock& trailers) override;
  void OnSent(h2::Stream&, size_t) override {}
  void OnClose(h2::Stream& stream, uint32_t error_code) override;

  EventLoop& loop_;
  UnaryClient& client_;
  const OnEvent on_event_;
  Logger& log_;
  bool connected_ = false;
  bool client_listens_ = false;
  bool unsupported_ = false;
  Backoff pauses_{kFirstPause, kLastPause};
  EventLoop::HandlePtr retry_;
  std::unique_ptr<EventReader> reader_;
  std::unique_ptr<h2::Stream> stream_;
};

}  // namespace resmgr
