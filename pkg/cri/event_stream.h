// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/cri/event_reader.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/log/log.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// GetContainerEvents on the resource manager's own connection, where the runtime has it: opened
// again, with growing pauses, whenever it ends, and left alone for the rest of the connection where
// the runtime has no such method. Loop's thread only.
//
// Runtimes may give each event to one listener only (containerd before 2.0; issue 7318 of its
// project), so a kubelet that listens through the relay must be the only one: the stream is closed
// as long as it does, and what it gets is read on its way (EventReader).
class EventStream final : private h2::StreamHandler {
 public:
  using OnEvent = std::function<void(const ContainerEvent&)>;

  struct Options {
    std::chrono::milliseconds first_pause{1'000};
    std::chrono::milliseconds last_pause{60'000};
  };

  // Both must outlive it.
  EventStream(EventLoop& loop, UnaryClient& client, OnEvent on_event, Options options);
  EventStream(EventLoop& loop, UnaryClient& client, OnEvent on_event)
      : EventStream(loop, client, std::move(on_event), Options()) {}
  ~EventStream() override;

  // There is a new connection.
  void Connected();
  void Disconnected();
  // A client listens through the relay, so that the stream is closed here; or none does any more.
  void SetClientListens(bool listens);
  bool open() const { return stream_ != nullptr; }

 private:
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
  const Options options_;
  Logger& log_;
  bool connected_ = false;
  bool client_listens_ = false;
  bool unsupported_ = false;
  Backoff pauses_{options_.first_pause, options_.last_pause};
  EventLoop::HandlePtr retry_;
  std::unique_ptr<EventReader> reader_;
  std::unique_ptr<h2::Stream> stream_;
};

}  // namespace resmgr
