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
#include "pkg/h2/send_queue.h"
#include "pkg/h2/stream.h"
#include "pkg/h2/stream_table.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/traffic.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::h2 {

// One HTTP/2 connection (RFC 9113, with prior knowledge as in section 3.3, which is how gRPC
// connects) over a connected socket, either side of it. Frames are ours, header blocks are decoded
// by libnghttp2 (pkg/adr/0002-http2.md). Memory is bounded: a peer can make us hold at most
// limits.h's kMostUnread plus kOutputLimit. So is the time that it takes before others get their
// turn (kFramesPerTurn).
class Session final : private FrameReader::Sink, private ReceiveWindow::Teller {
 public:
  enum class Role { kServer, kClient };

  // What happens to the connection as a whole.
  class Owner {
   public:
    virtual ~Owner() = default;
    // A server's session: a new request. The callee keeps the stream and gives it a handler, or
    // drops it to refuse.
    virtual void OnRequest(std::unique_ptr<Stream> stream, const HeaderBlock& headers,
                           bool end) = 0;
    // The first bytes of the peer were valid HTTP/2.
    virtual void OnEstablished() {}
    // The peer takes no new streams; those that it still serves go on.
    virtual void OnGoAway() {}
    // The peer does not take what is sent, so that it waits here (`waits`), or takes it again.
    // The owner should stop reading the source of this data meanwhile: that is the back-pressure.
    virtual void OnOutputWaits(bool waits) { static_cast<void>(waits); }
    // The connection is over; every stream got its OnClose before. The session must be destroyed
    // later, not in here.
    virtual void OnDisconnect(const Status& reason) = 0;
  };

  Session(EventLoop& loop, FlushQueue& flushes, UniqueFd socket, Role role, Owner& owner);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A client's session: sends a request. Null when the session takes none any more.
  std::unique_ptr<Stream> OpenStream(const HeaderBlock& headers, bool end, StreamHandler& handler);

  // Tells the peer to open no further streams; those that are open go on. After them the connection
  // ends: that of a client when the client has closed it, at the latest after kLastWordTimeout.
  // Requests that are on their way meanwhile are not looked at; the client may send them again.
  void GoAway();
  // The same without losing those (RFC 9113 section 6.8), for a server's session: tells the client
  // to open no further streams, and serves what comes until it has read that, which its answer to a
  // PING tells, or for kDrainPingTimeout. Then GoAway().
  void Drain();
  // Streams that are not closed.
  int open_streams() const { return open_streams_; }
  bool connected() const { return !failed_; }
  // As OnOutputWaits told last.
  bool output_waits() const { return (watched_ & EventLoop::kWritable) != 0; }

  // Whether what the peer sends is read or stays in the socket, which stops the peer before long.
  void SetReading(bool reading);
  // Bytes of the peer's DATA that the handlers have not consumed yet.
  int64_t unread() const { return receive_window_.unread() - data_left_; }

  // Counts the connection's bytes there from now on. It must outlive this.
  void CountBytes(Traffic& traffic) { traffic_ = &traffic; }

  // Encodes and writes what is pending. FlushQueue calls it.
  void Flush();

 private:
  friend class Stream;
  friend class FlushQueue;

  // session_end.cc: the end of a connection that is in use
  void SendGoAway(int32_t last_stream, ErrorCode code);
  void OnPingAck(std::string_view payload);
  void Abort(ErrorCode code, const Status& reason);
  bool AllDone() const;
  // After all is done: a client's connection stays until the client closes it, for a short time.
  void End();

  // session.cc: socket, life of the connection and of its streams
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
  // Takes an open stream out of everything that is for open ones. A request that waits for its
  // place gets it.
  void Forget(Stream& stream);
  void LinkClosed(Stream& stream);
  void UnlinkClosed(Stream& stream);
  void CloseStream(Stream& stream, uint32_t error_code, bool connection_lost);
  // Closes it after the current event, with OnClose.
  void CloseSoon(Stream& stream, uint32_t error_code);
  void CloseDue();
  void StartStream(Stream& stream, const HeaderBlock& headers);
  void StartWaiting();

  // session_send.cc: frames that leave
  // Returns where its header lies until it has been written to the socket.
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
  // What the peer lets us send on it.
  int64_t WindowOf(const Stream& stream) const {
    return stream.send_window_ + initial_send_window_;
  }

  // session_windows.cc: what the peer may send
  void Consume(Stream& stream, size_t count);
  void ConsumeStream(Stream& stream, size_t count);
  void GiveBack(Stream& stream);
  void TellWindow(size_t count) override;
  void TellStreamWindow(int32_t size) override;

  // session_receive.cc: frames that arrive
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
  Status OnSettings(const FrameHeader& header, std::string_view payload);
  Status OnSetting(uint16_t id, uint32_t value);
  Status OnWindowUpdate(const FrameHeader& header, std::string_view payload);
  void OnGoAwayFrame(std::string_view payload);
  void OnPeerEnd(Stream& stream, const HeaderBlock& trailers);
  // An open stream that was not reset.
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
  // Nothing more is sent: the peer reads no more, or all was said. What it sends is still read.
  bool write_broken_ = false;
  bool blocked_ = false;  // the socket is full until it becomes writable
  bool dirty_ = false;    // in flushes_
  bool going_away_ = false;
  EventLoop::HandlePtr drain_limit_;  // while Drain waits for the answer to its PING
  EventLoop::HandlePtr last_word_;    // since all was said to a client
  // Why the socket is not read: the owner wants it so; the peer does not take our answers; the
  // process has no room.
  bool reading_off_ = false;
  bool throttled_ = false;
  bool no_room_ = false;
  Session* next_dirty_ = nullptr;

  // The open streams but for those in waiting_.
  StreamTable by_id_;
  Stream* closed_ = nullptr;  // but with bytes that their handlers still owe Consume
  int open_streams_ = 0;
  std::vector<std::pair<Stream*, uint32_t>> due_;  // to be closed after this event
  int32_t last_id_ = 0;  // the highest that the peer opened, or the last that we did

  // Receiving.
  FrameReader reader_;
  HpackDecoder decoder_;
  Block* read_block_ = nullptr;  // none while nothing of it is used
  size_t read_used_ = 0;
  std::string_view input_;      // of it: read, but not looked at
  EventLoop::HandlePtr go_on_;  // while there is such input
  ReceiveWindow receive_window_;
  Stream* data_stream_ = nullptr;  // of the DATA frame that is arriving
  uint32_t data_left_ = 0;         // of its length, still to come
  HeldText header_block_;          // until its last CONTINUATION
  FrameHeader header_frame_;
  bool in_headers_ = false;
  RateLimit resets_{kMostResets, std::chrono::seconds(1)};

  // Sending.
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
  // The last frame in out_, while it is a stream's DATA: where its flags are.
  const Stream* last_data_ = nullptr;
  uint8_t* last_flags_ = nullptr;
  Scratch scratch_;
  int watched_ = 0;
  EventLoop::HandlePtr watch_;
  Traffic* traffic_ = nullptr;  // where bytes are counted
};

}  // namespace resmgr::h2
