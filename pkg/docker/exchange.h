// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/http_message.h"

namespace resmgr::docker {

// Follows the requests and replies on one connection between a client and dockerd, and tells which
// bytes may pass: a head once it is complete and understood, the following bytes as they come. A
// pipelined request waits for the end of the reply before it. Once dockerd takes the connection
// over (by 101, or for attach and exec by a reply without a length), the connection is a tunnel:
// all bytes pass both ways. No I/O. Thread-compatible.
class Exchange {
 public:
  // Returns how many of these bytes, which follow the ones that passed, may pass now; 0: none
  // before more bytes come or the other side does something. After an error the connection must
  // end.
  // kInvalidArgument    malformed
  // kResourceExhausted  a head longer than kMaxHead
  // kUnimplemented      see ParseRequestHead
  StatusOr<size_t> FromClient(std::string_view bytes);
  StatusOr<size_t> FromEngine(std::string_view bytes);
  // dockerd has closed its side. kUnavailable: before a reply, or within one.
  Status EngineEnds();

  // True between the end of one exchange and the next request's head.
  bool idle() const { return request_ == Side::kHead && reply_ == Side::kNone; }
  // The client's next bytes begin a request.
  bool awaits_request() const { return request_ == Side::kHead && !over_; }
  // dockerd has sent its last reply: further bytes of the client belong to no request.
  bool over() const { return over_; }
  bool tunnel() const { return request_ == Side::kTunnel; }
  // Bytes of the final reply have passed, so no other reply can replace it.
  bool reply_begun() const { return reply_begun_; }
  // The exchange may last as long as its client wants: a tunnel, events, logs, a wait.
  bool lasting() const;
  // The method of the request under way, or of the last one.
  std::string_view method() const { return method_; }
  // All of the request has passed, but the reply has not ended.
  bool request_done() const { return request_ == Side::kDone; }
  // The status of the last final reply.
  int reply_status() const { return reply_status_; }

 private:
  enum class Side : uint8_t { kNone, kHead, kBody, kDone, kTunnel };

  StatusOr<size_t> TakeRequestHead(std::string_view bytes);
  StatusOr<size_t> TakeReplyHead(std::string_view bytes);
  // `side` is the state of the request or reply that has the body.
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
  bool last_ = false;  // the current reply is the connection's last one
  bool over_ = false;
  int reply_status_ = 0;
};

// A buffer for one direction: first the bytes that may leave, then those that wait. Takes memory
// only while it has bytes. Thread-compatible.
class Passage {
 public:
  static constexpr size_t kCapacity = kMaxHead;

  size_t room() const { return kCapacity - (end_ - begin_); }
  bool empty() const { return begin_ == end_; }
  std::string_view leaving() const { return View(begin_, leave_); }
  std::string_view waiting() const { return View(leave_, end_); }

  // Free space for the next room() bytes.
  char* Free() {
    if (data_ == nullptr) data_ = std::make_unique_for_overwrite<char[]>(kCapacity);
    if (begin_ > 0) {
      std::memmove(data_.get(), data_.get() + begin_, end_ - begin_);
      leave_ -= begin_;
      end_ -= begin_;
      begin_ = 0;
    }
    return data_.get() + end_;
  }
  void Added(size_t size) { end_ += size; }
  // Lets the next `size` waiting bytes leave.
  void Allow(size_t size) { leave_ += size; }
  // Removes `size` bytes that have left; also frees memory when the buffer is empty.
  void Left(size_t size) {
    begin_ += size;
    TrimIfEmpty();
  }
  void DropWaiting() {
    end_ = leave_;
    TrimIfEmpty();
  }
  void Clear() {
    begin_ = leave_ = end_;
    TrimIfEmpty();
  }

 private:
  std::string_view View(size_t from, size_t to) const {
    return data_ == nullptr ? std::string_view() : std::string_view(data_.get() + from, to - from);
  }
  void TrimIfEmpty() {
    if (!empty()) return;
    begin_ = leave_ = end_ = 0;
    data_.reset();
  }

  std::unique_ptr<char[]> data_;
  size_t begin_ = 0;
  size_t leave_ = 0;  // begin_ <= leave_ <= end_
  size_t end_ = 0;
};

}  // namespace resmgr::docker
