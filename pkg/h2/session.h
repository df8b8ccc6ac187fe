// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/h2/frame.h"
#include "pkg/h2/frame_reader.h"
#include "pkg/h2/hpack.h"
#include "pkg/h2/limits.h"
#include "pkg/h2/memory.h"
#include "pkg/h2/receive_window.h"
#include "pkg/h2/stream.h"
#include "pkg/h2/stream_table.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/traffic.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::h2 {

// One HTTP/2 connection (RFC 9113, with prior knowledge as in section 3.3, as gRPC connects) over a
// connected socket, either side of it. Frames are handled here, header blocks are decoded by
// libnghttp2 (pkg/adr/0002-http2.md). Memory is bounded by kMostUnread plus kOutputLimit
// (limits.h), and time before others get their turn by kFramesPerTurn.
class Session final : private FrameReader::Sink, private ReceiveWindow::Teller {
 public:
  enum class Role { kServer, kClient };

  // Gets the events of the connection as a whole.
  class Owner {
   public:
    virtual ~Owner() = default;
    // A new request at a server's session. The callee keeps the stream and gives it a handler, or
    // drops it to refuse.
    virtual void OnRequest(std::unique_ptr<Stream> stream, const HeaderBlock& headers,
                           bool end) = 0;
    // The peer's first bytes were valid HTTP/2.
    virtual void OnEstablished() {}
    // The peer takes no new streams; open ones go on.
    virtual void OnGoAway() {}
    // The peer does not take the sent bytes, so that they wait (`waits`), or takes them again. The
    // owner should stop reading their source meanwhile, which is the back-pressure.
    virtual void OnOutputWaits(bool waits) { static_cast<void>(waits); }
    // The connection is over; every stream got its OnClose before. The session must be destroyed
    // later, not within this call.
    virtual void OnDisconnect(const Status& reason) = 0;
  };

  Session(EventLoop& loop, FlushQueue& flushes, UniqueFd socket, Role role, Owner& owner);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Sends a request over a client's session. Null when the session takes none any more.
  std::unique_ptr<Stream> OpenStream(const HeaderBlock& headers, bool end, StreamHandler& handler);

  // Tells the peer to open no further streams; open ones go on. After them the connection ends: a
  // server's session waits for the client to close it, but at most kLastWordTimeout. Requests that
  // arrive meanwhile are ignored; the client may send them again.
  void GoAway();
  // GoAway for a server's session without losing requests on their way (RFC 9113 section 6.8):
  // tells the client to open no further streams, and serves new ones until the client has read
  // that, which its answer to a PING shows, or for kDrainPingTimeout. Then GoAway().
  void Drain();
  // Number of streams that are not closed.
  int open_streams() const { return open_streams_; }
  bool connected() const { return !failed_; }
  // The last argument of OnOutputWaits.
  bool output_waits() const { return (watched_ & EventLoop::kWritable) != 0; }

  // Whether the peer's bytes are read or stay in the socket, which stops the peer before long.
  void SetReading(bool reading);
  // Bytes of the peer's DATA that the handlers have not consumed yet.
  int64_t unread() const { return receive_window_.unread() - data_left_; }

  // Counts the connection's bytes in `traffic` from now on, which must outlive this object.
  void CountBytes(Traffic& traffic) { traffic_ = &traffic; }

  // Encodes and writes pending frames. FlushQueue calls it.
  void Flush();

 private:
  friend class Stream;
  friend class FlushQueue;

  // Functions in session_send.cc: the end of a connection that is in use.
  void SendGoAway(int32_t last_stream, ErrorCode code);
  void OnPingAck(std::string_view payload);
  void Abort(ErrorCode code, const Status& reason);
  bool AllDone() const;
  // Ends the connection when all is done; a client's stays open for a short time until the client
  // closes it.
  void End();

  // Functions in session.cc: the socket, the life of the connection and of its streams.
  void OnSocket(int events);
  size_t kept() const;
  void ChooseReadBlock();
  void DropReadBlock();
  void Read();
  void TakeFrames();
  bool HasRoom();
  void OnRoom();
  void UpdateReading();
  void Write();
  void WatchOutput();
  void WatchFor(int events);
  void Fail(const Status& reason);
  void MarkDirty() {
    if (!dirty_) flushes_.Add(*this);
  }
  Stream* AnyOpen() const;
  void CloseAll();
  // Removes an open stream from the lists of open streams, and lets a waiting request take its
  // place.
  void Forget(Stream& stream);
  void LinkClosed(Stream& stream);
  void UnlinkClosed(Stream& stream);
  void CloseStream(Stream& stream, uint32_t error_code, bool connection_lost);
  // Closes the stream after the current event, with OnClose.
  void CloseSoon(Stream& stream, uint32_t error_code);
  void CloseDue();
  void StartStream(Stream& stream, const HeaderBlock& headers);
  void StartWaiting();

  // Functions in session_send.cc: frames that leave. SendFrame returns the place of the frame's
  // header, valid until it has been written to the socket.
  uint8_t* SendFrame(FrameType type, uint8_t flags, int32_t stream, std::string_view payload);
  void SendPreface(Role role);
  void SendHeaderBlock(const HeaderBlock& headers, int32_t stream, bool end);
  void SendReset(int32_t stream, uint32_t code);
  void SendWindowUpdate(int32_t stream, size_t count);
  bool MaySendNow(const Stream& stream) const;
  void SendData(Stream& stream, const Slice& data);
  void SendEnd(Stream& stream, const HeaderBlock& trailers);
  void EncodeData();
  bool EncodeOne(Stream& stream);
  void OnEndSent(Stream& stream);
  void Ready(Stream& stream);
  void ReadyAll();
  // Bytes that the peer allows on the stream.
  int64_t WindowOf(const Stream& stream) const {
    return stream.send_window_ + initial_send_window_;
  }

  // Functions in session.cc: the windows for the peer's DATA.
  void Consume(Stream& stream, size_t count);
  void ConsumeStream(Stream& stream, size_t count);
  void GiveBack(Stream& stream);
  void TellWindow(size_t count) override;
  void TellStreamWindow(int32_t size) override;

  // Functions in session_receive.cc: frames that arrive.
  Status OnFrame(const FrameHeader& header, std::string_view payload) override;
  Status OnData(const FrameHeader& header, const Slice& bytes, bool begins, bool ends) override;
  Status BeginData(const FrameHeader& header);
  Status OnRareFrame(const FrameHeader& header, std::string_view payload);
  Status OnHeadersFrame(const FrameHeader& header, std::string_view payload);
  Status OnContinuation(const FrameHeader& header, std::string_view payload);
  Status OnHeaderBlock(int32_t id, bool end, std::string_view block);
  Status OnUnknownBlock(int32_t id, bool end, std::string_view block);
  Status OnHeaders(int32_t id, bool end, const HeaderBlock& headers);
  Status OnTooManyHeaders(int32_t id);
  Status CheckNewRequest(int32_t id) const;
  void OnNewRequest(int32_t id, bool end, const HeaderBlock& headers);
  Status OnReset(const FrameHeader& header, std::string_view payload);
  // Resets a stream whose peer has broken its rules.
  Status ResetBroken(Stream& stream, ErrorCode code);
  // Counts a call that a client gives up, by a frame or by breaking the rules of its stream.
  // kResourceExhausted: there are too many.
  Status CountReset();
  Status OnSettings(const FrameHeader& header, std::string_view payload);
  Status OnSetting(uint16_t id, uint32_t value);
  Status OnWindowUpdate(const FrameHeader& header, std::string_view payload);
  void OnGoAwayFrame(std::string_view payload);
  void OnPeerEnd(Stream& stream, const HeaderBlock& trailers);
  // An open stream that was not reset, else null.
  Stream* Find(int32_t id) const {
    Stream* stream = by_id_.Find(id);
    return stream == nullptr || stream->reset_ ? nullptr : stream;
  }
  bool IsIdle(int32_t id) const;

  EventLoop& loop_;
  FlushQueue& flushes_;
  UniqueFd socket_;
  Owner& owner_;
  const bool server_;
  bool established_ = false;
  bool failed_ = false;
  // Nothing is sent any more, since the peer stopped reading or the last frame was sent. The peer's
  // bytes are still read.
  bool write_broken_ = false;
  bool blocked_ = false;  // the socket is full, until it becomes writable
  bool dirty_ = false;    // this session is in flushes_
  bool going_away_ = false;
  EventLoop::HandlePtr drain_limit_;  // set while Drain waits for the answer to its PING
  EventLoop::HandlePtr last_word_;    // set once a client has all its answers
  // Reasons for not reading the socket: the owner's wish; the peer does not take its answers; the
  // process has no room.
  bool reading_off_ = false;
  bool throttled_ = false;
  bool no_room_ = false;
  Session* next_dirty_ = nullptr;

  // The open streams except those in waiting_.
  StreamTable by_id_;
  Stream* closed_ = nullptr;  // closed streams whose handlers still owe Consume
  int open_streams_ = 0;
  std::vector<std::pair<Stream*, uint32_t>> due_;  // streams to be closed after this event
  int32_t last_id_ = 0;  // the highest id that the peer opened, or this side's last one

  // State of receiving.
  FrameReader reader_;
  HpackDecoder decoder_;
  Block* read_block_ = nullptr;  // null while none of its bytes are used
  size_t read_used_ = 0;
  std::string_view input_;      // bytes in read_block_ that are not processed yet
  EventLoop::HandlePtr go_on_;  // set while input_ has bytes to be processed later
  ReceiveWindow receive_window_;
  Stream* data_stream_ = nullptr;  // the stream of the arriving DATA frame
  uint32_t data_left_ = 0;         // bytes of the DATA frame still to come
  HeldText header_block_;          // kept until the last CONTINUATION
  FrameHeader header_frame_;
  bool in_headers_ = false;
  RateLimit resets_{kMostResets, std::chrono::seconds(1)};

  // State of sending.
  HpackEncoder encoder_;
  SendQueue ready_;
  std::deque<std::pair<Stream*, HeaderBlock>>
      waiting_;  // requests beyond the peer's limit of streams
  int64_t send_window_ = kDefaultWindow;
  int64_t initial_send_window_ = kDefaultWindow;
  bool initial_window_grew_ = false;
  uint32_t max_frame_size_ = kDefaultMaxFrameSize;
  uint32_t max_streams_ = 0x7fffffff;
  SliceQueue out_;
  // If the last frame in out_ is DATA: its stream, and the place of its flags.
  const Stream* last_data_ = nullptr;
  uint8_t* last_flags_ = nullptr;
  Scratch scratch_;
  int watched_ = 0;
  EventLoop::HandlePtr watch_;
  Traffic* traffic_ = nullptr;  // counts the connection's bytes
};

}  // namespace resmgr::h2
