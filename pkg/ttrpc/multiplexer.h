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

// Bytes that are sent to several peers and kept until the last send.
using SharedBytes = std::shared_ptr<const std::string>;
inline SharedBytes Share(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

// Several connections over one stream socket, the trunk, as NRI has them (containerd/nri,
// pkg/net/multiplex). A frame is the id of a connection and a length, both of four bytes in network
// byte order, followed by that many bytes. Opening or closing a connection is not announced; frames
// for an id that is not open here are dropped.
//
// A Go peer takes one frame per read and loses the bytes that do not fit its read buffer (4096
// bytes where it expects a header). Therefore each message is sent as a frame with only its header
// and one with its body, and no frame has two messages.
//
// Loop's thread only. No method calls back; receivers are called from the loop, and may destroy the
// multiplexer.
class Multiplexer {
 public:
  // One end of a connection. Outlives the multiplexer or is closed before.
  class Receiver {
   public:
    // Gets the bytes in order, in pieces of any size.
    virtual void OnBytes(std::string_view bytes) = 0;

   protected:
    ~Receiver() = default;
  };

  // `lost` is called once, when the trunk is lost: kUnavailable, the peer closed it or it broke;
  // kResourceExhausted, the peer does not read; kInvalidArgument, it does not speak the protocol.
  Multiplexer(EventLoop& loop, UniqueFd socket, std::function<void(const Status&)> lost);
  ~Multiplexer();
  Multiplexer(const Multiplexer&) = delete;
  Multiplexer& operator=(const Multiplexer&) = delete;

  // The id is not 0 and not open yet.
  void Open(uint32_t id, Receiver& receiver) { receivers_.emplace(id, &receiver); }
  void Close(uint32_t id) { receivers_.erase(id); }

  // Sends one message of a connection; the body may be empty. `rest` is the end of the body if
  // several connections are sent the same bytes: it is not copied. Dropped if the trunk is lost.
  void Send(uint32_t id, std::string_view header, std::string body, SharedBytes rest = nullptr);

  // Called if the peer floods: nothing is read during the pause, and after it only little at a
  // time, until a pause has passed without another call of Slow.
  void Slow(std::chrono::milliseconds pause);

  // Bytes that wait for the peer.
  size_t unsent() const { return unsent_; }
  // For queries of the peer's credentials.
  int fd() const { return socket_.get(); }

 private:
  static constexpr size_t kHeaderSize = 8;
  // A part of the bytes to send: its own, or shared ones.
  struct Piece {
    std::string own;
    SharedBytes shared{};

    std::string_view bytes() const { return shared == nullptr ? own : *shared; }
  };

  void OnEvents(int events);
  void Read();
  // False: the multiplexer was destroyed or the trunk is lost.
  bool Take(std::string_view bytes);
  bool TakeHeader(std::string_view& bytes);
  void Write();
  void Watch();
  void Lose(Status why);

  EventLoop& loop_;
  UniqueFd socket_;
  std::function<void(const Status&)> lost_;
  std::map<uint32_t, Receiver*> receivers_;
  // The state of the frame that is being received.
  std::array<char, kHeaderSize> header_{};
  size_t header_read_ = 0;
  uint32_t id_ = 0;
  size_t left_ = 0;  // bytes of its payload still to come

  std::deque<Piece> queue_;
  size_t sent_of_first_ = 0;
  size_t unsent_ = 0;
  bool writing_ = false;  // waits until the socket is writable
  bool slow_ = false;
  EventLoop::HandlePtr pause_;  // set during a pause
  EventLoop::HandlePtr watch_;
  EventLoop::HandlePtr losing_;
  Lifetime lifetime_;
};

}  // namespace resmgr::ttrpc
