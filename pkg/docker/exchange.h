// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/body_scanner.h"
#include "pkg/docker/http_head.h"

namespace resmgr::docker {

// Follows the requests and replies on one connection between a client and dockerd, and tells which
// bytes may pass on: a head once it is complete and understood, what follows as it comes. A request
// that is sent before the reply to the one before has ended waits. Once dockerd takes the
// connection over (101, or the older reply without a length, as for attach and exec), it is a
// tunnel: all bytes pass both ways. No I/O. Thread-compatible.
class Exchange {
 public:
  // How many of these bytes, which follow those that were told to pass, may pass now; 0: none
  // before more bytes come or the other side does something. Once an error was returned, the
  // connection must end.
  //   kInvalidArgument    malformed
  //   kResourceExhausted  a head longer than kMaxHead
  //   kUnimplemented      see ParseRequestHead
  StatusOr<size_t> FromClient(std::string_view bytes);
  StatusOr<size_t> FromEngine(std::string_view bytes);
  // dockerd sends nothing more. kUnavailable: in the midst of a reply, or before it.
  Status EngineEnds();

  // Between the end of one exchange and the next request's head.
  bool idle() const { return request_ == Side::kHead && reply_ == Side::kNone; }
  // The client's bytes are the begin of a request.
  bool awaits_request() const { return request_ == Side::kHead && !over_; }
  // dockerd has answered for the last time: what the client still sends belongs to no request.
  bool over() const { return over_; }
  bool tunnel() const { return request_ == Side::kTunnel; }
  // Bytes of the final reply have passed: no other reply can take its place.
  bool reply_begun() const { return reply_begun_; }
  // May last as long as its client wants: a tunnel, events, logs, waiting for an end.
  bool lasting() const;
  // Of the request under way, or the last one.
  std::string_view method() const { return method_; }
  // All of the request has passed, and not all of the reply.
  bool request_done() const { return request_ == Side::kDone; }
  // Of the last final reply.
  int reply_status() const { return reply_status_; }

 private:
  enum class Side : uint8_t { kNone, kHead, kBody, kDone, kTunnel };

  StatusOr<size_t> TakeRequestHead(std::string_view bytes);
  StatusOr<size_t> TakeReplyHead(std::string_view bytes);
  // Of a request or a reply, whose side this is.
  StatusOr<size_t> TakeBody(std::string_view bytes, BodyScanner& body, Side& side);
  void FinishIfDone();

  Side request_ = Side::kHead;
  Side reply_ = Side::kNone;
  HeadFinder request_finder_;
  HeadFinder reply_finder_;
  BodyScanner request_body_;
  BodyScanner reply_body_;
  std::string method_;
  bool upgrade_ = false;
  bool waits_for_end_ = false;
  bool reply_begun_ = false;
  bool last_ = false;  // this reply is
  bool over_ = false;
  int reply_status_ = 0;
};

}  // namespace resmgr::docker
