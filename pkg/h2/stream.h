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

// Receives the events of a stream, on the loop's thread, from within the session's reading or
// flushing. May send on any stream of any session and may destroy any Stream, but no Session.
// Arguments passed by reference are valid during the call; copies share their memory.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;

  // The first header block of the answer on a client's stream. `end` when it is also the last one
  // (trailers only).
  virtual void OnHeaders(Stream& stream, const HeaderBlock& headers, bool end) = 0;
  // Body bytes. The handler owes Stream::Consume for each of them, else the peer stops at its
  // flow-control window (RFC 9113 section 5.2).
  virtual void OnData(Stream& stream, const Slice& data) = 0;
  // The peer's end: with trailers or, when these are empty, at the end of its body.
  virtual void OnEnd(Stream& stream, const HeaderBlock& trailers) = 0;
  // `count` body bytes left the stream's queue for the socket; also called from within SendData.
  virtual void OnSent(Stream& stream, size_t count) = 0;
  // The last call, never from within a call on the stream itself. The stream is over: both sides
  // ended, one of them reset it, or the connection is gone (Stream::connection_lost). The handler
  // may destroy the Stream here.
  virtual void OnClose(Stream& stream, uint32_t error_code) = 0;
};

// One HTTP/2 stream (RFC 9113 section 5). Belongs to its handler, which may keep it longer than the
// stream or even the session lives: calls have no effect then. Destroying an open stream cancels
// it.
class Stream : public Recycled<Stream> {
 public:
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // 0 while a client's request waits for the peer to allow one more stream.
  int32_t id() const { return id_; }
  // True before OnClose.
  bool open() const { return open_; }
  // True if it was closed because the connection broke and not by an event of this stream.
  bool connection_lost() const { return connection_lost_; }
  bool headers_sent() const { return headers_sent_; }
  // SendEnd was called, and the end with its trailers waits for queued data.
  bool end_waits() const { return ended_ && !end_sent_; }
  // SendEnd or an end in SendHeaders was called.
  bool ended() const { return ended_; }

  void set_handler(StreamHandler* handler) { handler_ = handler; }

  // Sends the first header block of a server's stream. `end`: no body and no trailers follow.
  void SendHeaders(const HeaderBlock& headers, bool end);
  void SendData(const Slice& data);
  // Ends this side after all data, with trailers unless they are empty.
  void SendEnd(const HeaderBlock& trailers = {});
  // For a server's stream with SendEnd called: closes it also for a peer that is still sending,
  // once the end was sent.
  void StopReceiving();
  // Gives up the stream with this error code.
  void Reset(uint32_t error_code);
  // The handler is done with `count` bytes of OnData, which opens the peer's window again.
  // Destroying the Stream consumes the rest for the connection's window.
  void Consume(size_t count);
  // Body bytes that wait for the socket or for the peer's window.
  size_t queued() const { return queue_.size(); }

 private:
  friend class Session;
  friend class SendQueue;
  Stream(Session* session, int32_t id) : session_(session), id_(id) {}

  // Whether data, the end, or trailers remain to be sent.
  bool WantsToSend() const { return open_ && (!queue_.empty() || (ended_ && !end_sent_)); }

  Session* session_;  // null once stream and session are separated
  StreamHandler* handler_ = nullptr;
  Stream* previous_ = nullptr;  // in the session's list of closed streams
  Stream* next_ = nullptr;
  Stream* next_to_send_ = nullptr;  // in the send queue
  int32_t id_;
  bool open_ = true;
  bool connection_lost_ = false;
  bool headers_sent_ = false;
  bool headers_received_ = false;
  bool end_received_ = false;
  bool ended_ = false;
  bool end_sent_ = false;  // encoded, not only queued
  bool stop_receiving_ = false;
  bool reset_ = false;  // reset, or ended on both sides; OnClose follows
  bool due_ = false;    // in the session's list of streams to be closed
  bool in_send_queue_ = false;
  int64_t send_window_ = 0;  // relative to the initial window
  int64_t receive_window_ = 0;
  size_t unconsumed_ = 0;  // bytes that the handler has not consumed
  size_t consumed_ = 0;    // consumed bytes for which no window update was sent yet
  SliceQueue queue_;
  HeaderBlock trailers_;  // sent after the queued data
};

}  // namespace resmgr::h2
