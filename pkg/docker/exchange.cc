// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/exchange.h"

namespace resmgr::docker {
namespace {

constexpr int kSwitchingProtocols = 101;

bool IsWait(std::string_view target) {
  return target.substr(0, target.find('?')).ends_with("/wait");
}

}  // namespace

StatusOr<size_t> Exchange::FromClient(std::string_view bytes) {
  if (bytes.empty() || over_) return size_t{0};
  switch (request_) {
    case Side::kHead:
      return TakeRequestHead(bytes);
    case Side::kBody:
      return TakeBody(bytes, request_body_, request_);
    case Side::kTunnel:
      return bytes.size();
    case Side::kNone:
    case Side::kDone:
      break;
  }
  return size_t{0};
}

StatusOr<size_t> Exchange::TakeRequestHead(std::string_view bytes) {
  RESMGR_ASSIGN_OR_RETURN(const size_t size, request_finder_.Find(bytes));
  if (size == 0) return size_t{0};
  RESMGR_ASSIGN_OR_RETURN(const RequestHead head, ParseRequestHead(bytes.substr(0, size)));
  request_finder_.Reset();
  reply_finder_.Reset();
  method_ = head.method;
  upgrade_ = head.upgrade;
  waits_for_end_ = IsWait(head.target);
  reply_begun_ = false;
  request_body_.Start(head.body);
  request_ = request_body_.done() ? Side::kDone : Side::kBody;
  reply_ = Side::kHead;
  return size;
}

StatusOr<size_t> Exchange::TakeBody(std::string_view bytes, BodyScanner& body, Side& side) {
  RESMGR_ASSIGN_OR_RETURN(const size_t passing, body.Scan(bytes));
  if (body.done()) side = Side::kDone;
  FinishIfDone();
  return passing;
}

StatusOr<size_t> Exchange::FromEngine(std::string_view bytes) {
  if (bytes.empty()) return size_t{0};
  switch (reply_) {
    case Side::kHead:
      return TakeReplyHead(bytes);
    case Side::kBody:
      return TakeBody(bytes, reply_body_, reply_);
    case Side::kTunnel:
      return bytes.size();
    case Side::kNone:
    case Side::kDone:
      break;
  }
  return InvalidArgument("bytes that belong to no reply");
}

StatusOr<size_t> Exchange::TakeReplyHead(std::string_view bytes) {
  RESMGR_ASSIGN_OR_RETURN(const size_t size, reply_finder_.Find(bytes));
  if (size == 0) return size_t{0};
  RESMGR_ASSIGN_OR_RETURN(const ReplyHead head, ParseReplyHead(bytes.substr(0, size), method_));
  reply_finder_.Reset();
  if (head.status == kSwitchingProtocols && !upgrade_) {
    return InvalidArgument("a change of the protocol without a request for it");
  }
  // The final reply follows interim ones like "100 Continue".
  if (head.status < 200 && head.status != kSwitchingProtocols) return size;
  reply_begun_ = true;
  last_ = head.last;
  reply_status_ = head.status;
  const bool taken_over = head.body.kind == BodyFraming::Kind::kUntilClose && head.raw_stream &&
                          method_ == "POST" && head.status == 200;
  if (head.status == kSwitchingProtocols || taken_over) {
    request_ = reply_ = Side::kTunnel;
    return size;
  }
  reply_body_.Start(head.body);
  reply_ = reply_body_.done() ? Side::kDone : Side::kBody;
  FinishIfDone();
  return size;
}

Status Exchange::EngineEnds() {
  if (reply_ == Side::kBody && reply_body_.End()) reply_ = Side::kDone;
  if (reply_ == Side::kHead) return Unavailable("it closed the connection without a reply");
  if (reply_ == Side::kBody) return Unavailable("it closed the connection within a reply");
  return OkStatus();
}

bool Exchange::lasting() const {
  return tunnel() || waits_for_end_ || method_ == "GET";
}

void Exchange::FinishIfDone() {
  if (request_ != Side::kDone || reply_ != Side::kDone) return;
  request_ = Side::kHead;
  reply_ = Side::kNone;
  over_ = last_;
}

}  // namespace resmgr::docker
