// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::ttrpc {

// Bytes that are sent to several peers, and held until the last of them has got them.
using SharedBytes = std::shared_ptr<const std::string>;
inline SharedBytes Share(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

// Several connections over one stream socket, the trunk, as NRI has them (containerd/nri,
// pkg/net/multiplex): frames of a connection's id and a length, both of four bytes in network byte
// order, and so many bytes. Nothing tells when a connection is opened or closed; what comes for an
// id that is not open here is dropped.
//
// A Go peer takes one frame per read and loses what does not fit the buffer that it reads into
// (4096 bytes where it expects a header). So each message goes out as a frame that has only its
// header, and one with its body, and no frame has two messages.
//
// Loop's thread only. No method calls back; receivers are called from the loop, and may destroy the
// multiplexer.
class Multiplexer {
 public:
  // One end of a connection. Outlives the multiplexer or is closed before.
  class Receiver {
   public:
    // In order, in pieces of any size.
    virtual void OnBytes(std::string_view bytes) = 0;

   protected:
    ~Receiver() = default;
  };

  // `lost` is called once, when the trunk is lost: Unavailable, the peer closed it or it broke;
  // ResourceExhausted, the peer does not read; InvalidArgument, it does not speak the protocol.
  Multiplexer(EventLoop& loop, UniqueFd socket, std::function<void(const Status&)> lost);
  ~Multiplexer();
  Multiplexer(const Multiplexer&) = delete;
  Multiplexer& operator=(const Multiplexer&) = delete;

  // The id is not 0 and not open.
  void Open(uint32_t id, Receiver& receiver) { receivers_.emplace(id, &receiver); }
  void Close(uint32_t id) { receivers_.erase(id); }

  // One message of a connection; the body may be empty. `rest` is the end of the body where several
  // connections are sent the same bytes: it is not copied. What cannot be sent since the trunk is
  // lost is dropped.
  void Send(uint32_t id, std::string_view header, std::string body, SharedBytes rest = nullptr);

  // For a peer that sends more than it should: nothing is read during the pause, and after it only
  // little at a time, until a pause has passed without another call of this.
  void Slow(std::chrono::milliseconds pause);

  // Bytes that wait for the peer.
  size_t unsent() const { return unsent_; }
  // To ask for the peer's credentials.
  int fd() const { return socket_.get(); }

 private:
  static constexpr size_t kHeaderSize = 8;
  // Of what is to be sent: bytes of its own, or shared ones.
  struct Piece {
    std::string own;
    SharedBytes shared{};

    std::string_view bytes() const { return shared == nullptr ? own : *shared; }
  };

  void OnEvents(int events);
  void Read();
  // False: the multiplexer is gone or the trunk is lost.
  bool Take(std::string_view bytes);
  bool TakeHeader(std::string_view& bytes);
  void Write();
  void Watch();
  void Lose(Status why);

  EventLoop& loop_;
  UniqueFd socket_;
  std::function<void(const Status&)> lost_;
  std::map<uint32_t, Receiver*> receivers_;
  // Of the frame that is being received.
  std::array<char, kHeaderSize> header_{};
  size_t header_read_ = 0;
  uint32_t id_ = 0;
  size_t left_ = 0;  // of its payload

  std::deque<Piece> queue_;
  size_t sent_of_first_ = 0;
  size_t unsent_ = 0;
  bool writing_ = false;  // waits until the socket is writable
  bool slow_ = false;
  EventLoop::HandlePtr pause_;  // until it is read again
  EventLoop::HandlePtr watch_;
  EventLoop::HandlePtr losing_;
  Lifetime lifetime_;
};

}  // namespace resmgr::ttrpc
