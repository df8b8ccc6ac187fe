// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/event_stream.h"

#include <utility>

#include "pkg/cri/messages.h"

namespace resmgr {
namespace {

// Only this version of the API has the method. A runtime of v1alpha2 answers that it is unknown.
constexpr std::string_view kPath = "/runtime.v1.RuntimeService/GetContainerEvents";
constexpr int kGrpcUnimplemented = 12;
constexpr int kGrpcUnavailable = 14;

}  // namespace

EventReader::EventReader(std::function<void(const ContainerEvent&)> on_event)
    : messages_(kMost, [on_event = std::move(on_event)](const GrpcMessage& message) {
        if (message.compressed || message.truncated()) return on_event({});
        on_event(DecodeContainerEvent(message.payload).value_or(ContainerEvent()));
      }) {}

EventListener::EventListener(EventLoop& loop, std::function<void(const ContainerEvent&)> on_event,
                             std::function<void()> on_behind)
    : loop_(loop), reader_(std::move(on_event)), on_behind_(std::move(on_behind)) {}

void EventListener::OnQueued(size_t waiting) {
  waiting_ = waiting;
  if (waiting_ == 0 || look_ != nullptr) return;
  moved_ = false;
  look_ = loop_.After(kPatience, [this] { Look(); });
}

void EventListener::OnSent(size_t waiting) {
  waiting_ = waiting;
  moved_ = true;
}

void EventListener::Look() {
  look_.reset();
  if (waiting_ > 0 && !std::exchange(moved_, false)) return on_behind_();
  OnQueued(waiting_);
}

EventStream::EventStream(EventLoop& loop, UnaryClient& client, OnEvent on_event)
    : loop_(loop),
      client_(client),
      on_event_(std::move(on_event)),
      log_(GetLogger("cri/runtime")) {}

void EventStream::Connected() {
  connected_ = true;
  unsupported_ = false;
  pauses_.Reset();
  Open();
}

void EventStream::Disconnected() {
  connected_ = false;
  Close();
}

void EventStream::SetClientListens(bool listens) {
  if (std::exchange(client_listens_, listens) == listens) return;
  if (listens) {
    Close();
  } else if (connected_) {
    // Not at once: the client may be about to call again, and must then be the only listener.
    OpenAfter(kFirstPause);
  }
}

void EventStream::Open() {
  if (!connected_ || client_listens_ || unsupported_ || stream_ != nullptr) return;
  retry_.reset();
  reader_ = std::make_unique<EventReader>([this](const ContainerEvent& event) {
    pauses_.Reset();
    on_event_(event);
  });
  stream_ = client_.OpenStream(kPath, "", *this);
}

void EventStream::Close() {
  retry_.reset();
  stream_.reset();
}

void EventStream::OnHeaders(h2::Stream&, const h2::HeaderBlock& headers, bool end) {
  if (end) OnEnded(ReadGrpcStatus(headers));
}

void EventStream::OnData(h2::Stream& stream, const h2::Slice& data) {
  stream.Consume(data.size());
  reader_->Feed(data.view());
}

void EventStream::OnEnd(h2::Stream&, const h2::HeaderBlock& trailers) {
  OnEnded(ReadGrpcStatus(trailers));
}

void EventStream::OnClose(h2::Stream&, uint32_t) {
  OnEnded({.code = kGrpcUnavailable, .message = "the stream broke"});
}

void EventStream::OnEnded(const GrpcStatus& status) {
  stream_.reset();
  if (status.code == kGrpcUnimplemented) {
    unsupported_ = true;
    log_.Debug("the runtime has no container events");
    return;
  }
  if (!connected_) return;
  const std::chrono::milliseconds pause = pauses_.Next();
  log_.Debug("the runtime ended its container events with status {}: opened again in {} ms",
             status.code, pause.count());
  OpenAfter(pause);
}

void EventStream::OpenAfter(std::chrono::milliseconds pause) {
  retry_ = loop_.After(pause, [this] {
    retry_.reset();
    Open();
  });
}

}  // namespace resmgr
