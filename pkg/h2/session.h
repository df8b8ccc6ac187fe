// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "pkg/base/status.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/h2/stream.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unique_fd.h"

struct nghttp2_session;

namespace resmgr::h2 {

// One HTTP/2 connection (prior knowledge, as gRPC uses it) over a connected socket, either side of
// it. Memory is bounded: a peer can make us hold at most the connection window plus the high-water
// mark of the output, per connection.
class Session {
 public:
  enum class Role { kServer, kClient };

  // What happens to the connection as a whole.
  class Owner {
   public:
    virtual ~Owner() = default;
    // A server's session: a new request. The callee keeps the stream and gives it a handler, or
    // drops it to refuse.
    virtual void OnRequest(std::unique_ptr<Stream> stream, HeaderBlock headers, bool end) = 0;
    // The first bytes of the peer were valid HTTP/2.
    virtual void OnEstablished() {}
    // The peer takes no new streams; those that it still serves go on.
    virtual void OnGoAway() {}
    // The connection is over; every stream got its OnClose before. The session must be destroyed
    // later, not in here.
    virtual void OnDisconnect(const Status& reason) = 0;
  };

  Session(EventLoop& loop, FlushQueue& flushes, UniqueFd socket, Role role, Owner& owner);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A client's session: sends a request. Null when the session takes none any more.
  std::unique_ptr<Stream> OpenStream(const HeaderBlock& headers, bool end, StreamHandler& handler);

  // Tells the peer to open no further streams; those that are open go on.
  void GoAway();
  // Whether nothing waits to be written.
  bool drained() const { return out_.empty(); }
  // Streams that are not closed.
  int open_streams() const { return open_streams_; }
  bool connected() const { return !failed_; }

  // Encodes and writes what is pending. FlushQueue calls it.
  void Flush();

 private:
  friend class Stream;
  friend class FlushQueue;
  struct Callbacks;

  void OnSocket(int events);
  // Makes read_block_ one with room behind read_used_ that no slice refers to.
  void ChooseReadBlock();
  void Read();
  // Hands received bytes to nghttp2.
  void Feed(const uint8_t* data, size_t size);
  void Write();
  void UpdateEvents();
  void Fail(const Status& reason);
  void MarkDirty() { flushes_.Add(*this); }
  // Puts the stream into the list of open or of closed streams, by its state.
  void Link(Stream& stream);
  void Forget(const Stream& stream);
  void Unlink(Stream& stream);
  void CloseStream(Stream& stream, uint32_t error_code, bool connection_lost);

  FlushQueue& flushes_;
  UniqueFd socket_;
  Owner& owner_;
  nghttp2_session* session_ = nullptr;
  Stream* open_ = nullptr;    // lists, so that streams learn when the session goes
  Stream* closed_ = nullptr;  // but not yet destroyed by their handlers
  int open_streams_ = 0;
  // What was looked up last; 0 is no stream.
  int32_t found_id_ = 0;
  Stream* found_ = nullptr;
  bool server_;
  bool established_ = false;
  bool failed_ = false;
  bool write_broken_ = false;  // the peer reads no more; what it sent before is still read
  bool dirty_ = false;         // in flushes_
  bool send_blocked_ = false;  // encoding paused at the high-water mark
  bool going_away_ = false;
  Block* read_block_ = nullptr;
  Block* spare_block_ = nullptr;  // the one before, perhaps free again
  size_t read_used_ = 0;
  SliceQueue out_;
  Scratch scratch_;
  int watched_ = 0;
  EventLoop::HandlePtr watch_;
};

}  // namespace resmgr::h2
