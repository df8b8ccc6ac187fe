// SPDX-License-Identifier: Apache-2.0
#include "pkg/ttrpc/client.h"

#include <optional>
#include <utility>

#include "pkg/base/wire.h"
#include "pkg/ttrpc/frame.h"

namespace resmgr::ttrpc {
namespace {

bool IsProtobuf(std::string_view bytes) {
  WireReader reader(bytes);
  while (reader.Next()) {
  }
  return !reader.failed();
}

// Shortens the text to this part of itself.
void CutTo(std::string_view part, std::string& text) {
  if (part.empty()) return text.clear();
  const auto begin = static_cast<size_t>(part.data() - text.data());
  text.resize(begin + part.size());
  text.erase(0, begin);
}

}  // namespace

Client::Client(EventLoop& loop, Multiplexer& multiplexer, uint32_t connection, MemoryBudget& budget)
    : loop_(loop), multiplexer_(multiplexer), connection_(connection), reader_(budget) {
  multiplexer_.Open(connection_, *this);
}

Client::~Client() {
  multiplexer_.Close(connection_);
}

void Client::Call(std::string_view service, std::string_view method, std::string_view payload,
                  std::chrono::milliseconds timeout, Done done) {
  Send(Encode({.service = service, .method = method, .payload = payload, .timeout = timeout}),
       nullptr, timeout, std::move(done));
}

void Client::Call(std::string_view service, std::string_view method, SharedBytes payload,
                  std::chrono::milliseconds timeout, Done done) {
  SendShared(service, method, std::move(payload), timeout, timeout, std::move(done));
}

void Client::CallUntilAnswered(std::string_view service, std::string_view method,
                               SharedBytes payload, std::chrono::milliseconds timeout, Done done) {
  SendShared(service, method, std::move(payload), timeout, std::chrono::milliseconds(0),
             std::move(done));
}

void Client::SendShared(std::string_view service, std::string_view method, SharedBytes payload,
                        std::chrono::milliseconds timeout, std::chrono::milliseconds patience,
                        Done done) {
  std::string front = EncodeUpToPayload(
      {.service = service, .method = method, .payload = {}, .timeout = timeout}, payload->size());
  Send(std::move(front), std::move(payload), patience, std::move(done));
}

void Client::Send(std::string body, SharedBytes rest, std::chrono::milliseconds patience,
                  Done done) {
  const uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
  Pending& call = calls_.emplace(stream, Pending{}).first->second;
  call.done = std::move(done);
  const size_t size = body.size() + (rest == nullptr ? 0 : rest->size());
  if (size > kLongestMessage) {
    const Status refusal =
        ResourceExhausted("the request of {} bytes is longer than {}", size, kLongestMessage);
    call.timer = loop_.After(std::chrono::milliseconds(0),
                             [this, stream, refusal] { End(stream, refusal); });
    return;
  }
  if (patience.count() > 0) {
    call.timer = loop_.After(patience, [this, stream, patience] {
      End(stream, DeadlineExceeded("no answer within {} ms", patience.count()));
    });
  }
  const auto header = Encode(FrameHeader{.length = static_cast<uint32_t>(size),
                                         .stream = stream,
                                         .type = static_cast<uint8_t>(FrameType::kRequest),
                                         .flags = 0});
  multiplexer_.Send(connection_, {header.data(), header.size()}, std::move(body), std::move(rest));
}

void Client::OnBytes(std::string_view bytes) {
  const std::weak_ptr<void> alive = lifetime_.token();
  while (!alive.expired()) {
    std::optional<Frame> frame = reader_.Next(bytes);
    if (!frame) return;
    if (!frame->header.Is(FrameType::kResponse)) continue;
    if (frame->skipped) {
      fault_ =
          ResourceExhausted("there is no room for a response of {} bytes", frame->header.length);
      End(frame->header.stream, fault_);
      continue;
    }
    const StatusOr<std::string_view> payload = DecodeResponse(frame->body);
    if (!payload.ok() && !IsProtobuf(frame->body)) fault_ = payload.status();
    if (payload.ok()) {
      CutTo(*payload, frame->body);
      End(frame->header.stream, std::move(frame->body));
    } else {
      End(frame->header.stream, payload.status());
    }
  }
}

// Drops a response to a call that is over or never existed.
void Client::End(uint32_t stream, StatusOr<std::string> response) {
  auto call = calls_.extract(stream);
  if (!call.empty()) call.mapped().done(std::move(response));
}

void Client::Lose(const Status& why) {
  const std::weak_ptr<void> alive = lifetime_.token();
  while (!alive.expired() && !calls_.empty())
    End(calls_.begin()->first, why);
}

}  // namespace resmgr::ttrpc
