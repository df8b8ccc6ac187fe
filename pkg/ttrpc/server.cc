// SPDX-License-Identifier: Apache-2.0
#include "pkg/ttrpc/server.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/ttrpc/envelope.h"
#include "pkg/ttrpc/frame.h"

namespace resmgr::ttrpc {
namespace {

// Payloads below this length are copied into the message; longer ones are sent from their own
// memory.
constexpr size_t kCopied = 4096;
constexpr size_t kLongestName = 128;  // bytes of a service's or method's name in an error
// Limit of a caller's timeout; no runtime or plugin uses a longer one.
constexpr std::chrono::nanoseconds kLongestTimeout = std::chrono::hours(1);

}  // namespace

Server::Server(EventLoop& loop, Multiplexer& multiplexer, uint32_t connection, MemoryBudget& budget,
               std::string service, Methods methods)
    : loop_(loop),
      multiplexer_(multiplexer),
      connection_(connection),
      service_(std::move(service)),
      methods_(std::move(methods)),
      reader_(budget) {
  multiplexer_.Open(connection_, *this);
}

Server::~Server() {
  multiplexer_.Close(connection_);
}

void Server::OnBytes(std::string_view bytes) {
  const std::weak_ptr<void> alive = lifetime_.token();
  while (!alive.expired()) {
    std::optional<Frame> frame = reader_.Next(bytes);
    if (!frame) return;
    if (frame->header.Is(FrameType::kRequest)) OnRequest(*std::move(frame));
  }
}

void Server::OnRequest(Frame frame) {
  const uint32_t stream = frame.header.stream;
  const bool in_order = stream % 2 == 1 && stream > last_stream_;
  if (in_order) last_stream_ = stream;
  if (!in_order) {
    Answer(stream, InvalidArgument("stream {} is even or was used before", stream));
  } else if (frame.skipped) {
    Answer(stream, ResourceExhausted("there is no room for a request of {} bytes; {} are the most",
                                     frame.header.length, kLongestMessage));
    if (overrun_) overrun_();
  } else if (calls_.size() == kMostRequests) {
    Answer(stream, ResourceExhausted("{} requests are not answered yet", kMostRequests));
    if (overrun_) overrun_();
  } else {
    Run(std::move(frame));
  }
}

void Server::Run(Frame frame) {
  const uint32_t stream = frame.header.stream;
  const StatusOr<Request> request = DecodeRequest(frame.body);
  if (!request.ok()) return Answer(stream, request.status());
  if (request->service != service_) {
    return Answer(stream, Unimplemented("service {}", Printable(request->service, kLongestName)));
  }
  const auto method = methods_.find(request->method);
  if (method == methods_.end()) {
    return Answer(stream, Unimplemented("method {}", Printable(request->method, kLongestName)));
  }
  Pending& call = calls_.emplace(stream, Pending{}).first->second;
  call.share = std::move(frame.share);
  if (request->timeout.count() > 0) {
    const auto timeout =
        std::chrono::ceil<std::chrono::milliseconds>(std::min(request->timeout, kLongestTimeout));
    call.timer = loop_.After(timeout, [this, stream] {
      Answer(stream, DeadlineExceeded("it was not answered in time"));
    });
  }
  method->second(std::string(request->payload), request->timeout,
                 lifetime_.Guard([this, stream](StatusOr<std::string> response) {
                   if (calls_.contains(stream)) Answer(stream, std::move(response));
                 }));
}

void Server::Answer(uint32_t stream, StatusOr<std::string> response) {
  calls_.erase(stream);
  std::string body;
  SharedBytes rest;
  if (response.ok() && response->size() >= kCopied) {
    body = EncodeResponseUpToPayload(response->size());
    rest = Share(*std::move(response));
  } else {
    body = EncodeResponse(response);
  }
  size_t size = body.size() + (rest == nullptr ? 0 : rest->size());
  if (size > kLongestMessage) {
    body = EncodeResponse(
        ResourceExhausted("the response of {} bytes is longer than {}", size, kLongestMessage));
    rest = nullptr;
    size = body.size();
  }
  const auto header = Encode(FrameHeader{.length = static_cast<uint32_t>(size),
                                         .stream = stream,
                                         .type = static_cast<uint8_t>(FrameType::kResponse),
                                         .flags = 0});
  multiplexer_.Send(connection_, {header.data(), header.size()}, std::move(body), std::move(rest));
}

}  // namespace resmgr::ttrpc
