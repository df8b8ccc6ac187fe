// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "pkg/base/recycled.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/frame.h"
#include "pkg/h2/header_block.h"

namespace resmgr::h2 {

class Session;
class Stream;

// HTTP/2 error codes (RFC 9113 section 7).
enum class ErrorCode : uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kFlowControlError = 3,
  kStreamClosed = 5,
  kFrameSizeError = 6,
  kRefusedStream = 7,
  kCancel = 8,
  kCompressionError = 9,
  kEnhanceYourCalm = 11,
};

// Receives what happens on a stream, on the loop's thread, from within the session's reading or
// flushing. May send on any stream of any session and may destroy any Stream, but no Session. What
// comes by reference is valid during the call; copies share its memory.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;

  // A client's stream: the first header block of the answer. `end` when it is also the last
  // (trailers only).
  virtual void OnHeaders(Stream& stream, const HeaderBlock& headers, bool end) = 0;
  // Body bytes. The handler owes Stream::Consume for each of them, else the peer stops at its
  // flow-control window (RFC 9113 section 5.2).
  virtual void OnData(Stream& stream, const Slice& data) = 0;
  // The peer sent its last: with trailers or, when these are empty, with the end of its body.
  virtual void OnEnd(Stream& stream, const HeaderBlock& trailers) = 0;
  // `count` body bytes of ours left the stream's queue for the socket; also from within SendData.
  virtual void OnSent(Stream& stream, size_t count) = 0;
  // The last call, never from within a call on the stream itself. The stream is over: both sides
  // ended, one of them reset it, or the connection is gone (Stream::connection_lost). The handler
  // may destroy the Stream here.
  virtual void OnClose(Stream& stream, uint32_t error_code) = 0;
};

// One HTTP/2 stream (RFC 9113 section 5). Belongs to its handler, which may keep it longer than the
// stream or even the session lives: calls are then without effect. Destroying an open stream
// cancels it.
class Stream : public Recycled<Stream> {
 public:
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // 0 while a client's request waits for the peer to allow one more stream.
  int32_t id() const { return id_; }
  // No OnClose yet.
  bool open() const { return open_; }
  // Closed because the connection broke and not by anything on this stream.
  bool connection_lost() const { return connection_lost_; }
  bool headers_sent() const { return headers_sent_; }
  // SendEnd was called, and the end with its trailers waits for data before it.
  bool end_waits() const { return ended_ && !end_sent_; }
  // SendEnd or an end in SendHeaders was called.
  bool ended() const { return ended_; }

  void set_handler(StreamHandler* handler) { handler_ = handler; }

  // A server's stream: the first header block. `end`: no body and no trailers follow.
  void SendHeaders(const HeaderBlock& headers, bool end);
  void SendData(const Slice& data);
  // After all data; with trailers unless they are empty.
  void SendEnd(const HeaderBlock& trailers = {});
  // A server's stream that has sent all: closes it also towards a peer that is still sending, once
  // our end has left.
  void StopReceiving();
  // Gives up the stream with this code.
  void Reset(uint32_t error_code);
  // `count` bytes of OnData are done with: opens the peer's window again. What was never consumed
  // is when the Stream is destroyed, for the connection's window.
  void Consume(size_t count);
  // Body bytes that wait for the socket or for the peer's window.
  size_t queued() const { return queue_.size(); }

 private:
  friend class Session;
  friend class SendQueue;
  Stream(Session* session, int32_t id) : session_(session), id_(id) {}

  // Something is left to be sent: data, the end, or trailers.
  bool WantsToSend() const { return open_ && (!queue_.empty() || (ended_ && !end_sent_)); }

  Session* session_;  // null once one of them has nothing more to do with the other
  StreamHandler* handler_ = nullptr;
  Stream* previous_ = nullptr;  // in the session's list of closed ones
  Stream* next_ = nullptr;
  Stream* next_to_send_ = nullptr;  // in the send queue
  int32_t id_;
  bool open_ = true;
  bool connection_lost_ = false;
  bool headers_sent_ = false;
  bool headers_received_ = false;
  bool end_received_ = false;
  bool ended_ = false;
  bool end_sent_ = false;  // encoded, not just queued
  bool stop_receiving_ = false;
  bool reset_ = false;  // or ended on both sides; OnClose is on its way
  bool due_ = false;    // in the session's list of those to be closed
  bool in_send_queue_ = false;
  int64_t send_window_ = 0;  // less the initial one, which the peer may change for all streams
  int64_t receive_window_ = 0;
  size_t unconsumed_ = 0;  // taken by the handler, not yet given back
  size_t consumed_ = 0;    // given back, not yet told to the peer
  SliceQueue queue_;
  HeaderBlock trailers_;  // that wait behind data
};

}  // namespace resmgr::h2
