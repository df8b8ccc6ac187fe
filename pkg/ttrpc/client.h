// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/ttrpc/envelope.h"
#include "pkg/ttrpc/frame.h"
#include "pkg/ttrpc/multiplexer.h"

namespace resmgr::ttrpc {

// Calls of one connection to a peer that serves. Go peers run calls that are under way at the same
// time in any order: where the order counts, wait for one before the next. Loop's thread only.
class Client final : private Multiplexer::Receiver {
 public:
  // Told once, later or at once but never within Call: the encoded response; what the peer
  // answered; DeadlineExceeded, by our clock or the peer's;
  // ResourceExhausted, a message is longer than kLongestMessage; Internal, the response is not
  // protobuf; or why the connection was lost. May destroy the client.
  using Done = std::function<void(StatusOr<std::string>)>;

  // All outlive the client. The connection is opened here and closed by the destructor, which
  // forgets all calls.
  Client(EventLoop& loop, Multiplexer& multiplexer, uint32_t connection, MemoryBudget& budget);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // `timeout` goes to the peer, too; 0: the call may take for ever.
  void Call(std::string_view service, std::string_view method, std::string_view payload,
            std::chrono::milliseconds timeout, Done done);
  // The same with a payload that several peers are sent.
  void Call(std::string_view service, std::string_view method, SharedBytes payload,
            std::chrono::milliseconds timeout, Done done);
  // The same, but only the peer is told of the timeout: an answer that comes late is told, too.
  void CallUntilAnswered(std::string_view service, std::string_view method, SharedBytes payload,
                         std::chrono::milliseconds timeout, Done done);
  // Ends all calls with this status. To be called when the multiplexer has lost the trunk.
  void Lose(const Status& why);

  size_t calls() const { return calls_.size(); }
  // Not OK once the peer has sent a response that is too long or no protobuf, which is told as the
  // end of its call as well: a peer that does so is better left.
  const Status& fault() const { return fault_; }

 private:
  struct Pending {
    Done done;
    EventLoop::HandlePtr timer;
  };

  // `patience`: after this we do not wait any more; 0: for ever.
  void SendShared(std::string_view service, std::string_view method, SharedBytes payload,
                  std::chrono::milliseconds timeout, std::chrono::milliseconds patience, Done done);
  // `rest`: the end of the body.
  void Send(std::string body, SharedBytes rest, std::chrono::milliseconds patience, Done done);
  void OnBytes(std::string_view bytes) override;
  void End(uint32_t stream, StatusOr<std::string> response);

  EventLoop& loop_;
  Multiplexer& multiplexer_;
  const uint32_t connection_;
  FrameReader reader_;
  uint32_t next_stream_ = 1;
  std::map<uint32_t, Pending> calls_;  // by stream
  Status fault_;
  Lifetime lifetime_;
};

}  // namespace resmgr::ttrpc
