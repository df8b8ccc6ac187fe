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

// Calls on one connection to a serving peer. Go peers run concurrent calls in any order: if the
// order matters, wait for one answer before the next call. Loop's thread only.
class Client final : private Multiplexer::Receiver {
 public:
  // Called once, never within Call, with the encoded response, or the peer's error;
  // kDeadlineExceeded by this side's clock or the peer's; kResourceExhausted if a message is longer
  // than kLongestMessage; kInternal if the response is not protobuf; or the reason for the loss of
  // the connection. May destroy the client.
  using Done = std::function<void(StatusOr<std::string>)>;

  // All arguments outlive the client. The connection is opened here and closed by the destructor,
  // which forgets all calls.
  Client(EventLoop& loop, Multiplexer& multiplexer, uint32_t connection, MemoryBudget& budget);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Also sends `timeout` to the peer; 0: no limit.
  void Call(std::string_view service, std::string_view method, std::string_view payload,
            std::chrono::milliseconds timeout, Done done);
  // Call with a payload that is sent to several peers.
  void Call(std::string_view service, std::string_view method, SharedBytes payload,
            std::chrono::milliseconds timeout, Done done);
  // Call whose timeout only the peer observes, so that a late answer is reported, too.
  void CallUntilAnswered(std::string_view service, std::string_view method, SharedBytes payload,
                         std::chrono::milliseconds timeout, Done done);
  // Ends all calls with this status. Must be called when the multiplexer has lost the trunk.
  void Lose(const Status& why);

  size_t calls() const { return calls_.size(); }
  // Not OK once the peer has sent a response that is too long or not protobuf. The call fails, and
  // the peer should be disconnected.
  const Status& fault() const { return fault_; }

 private:
  struct Pending {
    Done done;
    EventLoop::HandlePtr timer;
  };

  // After `patience` the call is given up; 0: never.
  void SendShared(std::string_view service, std::string_view method, SharedBytes payload,
                  std::chrono::milliseconds timeout, std::chrono::milliseconds patience, Done done);
  // `rest`: the end of the message, behind `body`.
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
