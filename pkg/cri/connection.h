// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cri/call.h"
#include "pkg/h2/session.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

class Relay;

// One client's connection with its calls and with its own connections to the runtimes, opened at
// the first call that needs them. They are not shared with other clients, so that windows and
// failures are independent: a client that does not read its replies delays no other.
class Connection final : private h2::Session::Owner {
 public:
  using Position = std::list<std::unique_ptr<Connection>>::iterator;

  Connection(Relay& relay, EventLoop& loop, UniqueFd socket);
  ~Connection() override;

  void set_position(Position position) { position_ = position; }
  Position position() const { return position_; }
  // Marks the connection as removed from the relay; true the first time.
  bool Retire() { return !std::exchange(retired_, true); }
  Relay& relay() { return relay_; }
  EventLoop& loop() { return loop_; }

  // ClassifyMethod of a request's path, cached for repeated requests. The result has views into the
  // headers.
  Method Classify(const h2::HeaderBlock& headers);

  // A session to the runtime that serves the method. A connect to a unix socket ends at once, so
  // the very next call uses a runtime that came back. kUnavailable names the socket;
  // kUnimplemented: images are not served here.
  StatusOr<h2::Session*> SessionFor(const Method& method);
  // A session to this socket, whose path is in the relay's memory.
  StatusOr<h2::Session*> SessionTo(std::string_view path);

  // Destroys the call.
  void Remove(Call& call);

  // Counts bytes kept for one of its calls, here and for the process. False: there is no room, and
  // the call was ended (Call::EndForMemory).
  bool Hold(Call& call, size_t bytes);
  void Release(size_t bytes);
  size_t held() const { return held_; }
  // Ends the call with the most kept bytes; if no call is large, one of the latest calls that keep
  // any. False if no call was found.
  bool EndLargest(std::string_view why);
  // For small pieces of kept bytes.
  h2::Scratch& scratch() { return scratch_; }

  // Tells the client to send no new calls, and still serves calls sent before the client has read
  // this. Endless calls are ended; the connection closes after the last call.
  void Drain();
  // Tells the client which calls it may repeat elsewhere, before the connection is removed.
  void GoAway();

  // Used to find the connection that is idle for longest.
  bool busy() const { return !calls_.empty(); }
  uint64_t last_active() const { return last_active_; }

 private:
  // One connection to a runtime. Kept after its end until the last call releases its streams.
  class Upstream;

  void OnRequest(std::unique_ptr<h2::Stream> stream, const h2::HeaderBlock& headers,
                 bool end) override;
  void OnEstablished() override { handshake_timer_.reset(); }
  void OnOutputWaits(bool waits) override;
  void OnDisconnect(const Status& reason) override;
  void EndEndlessCalls();
  void ForgetLarge(const Call& call) { std::erase(large_calls_, &call); }

  Relay& relay_;
  EventLoop& loop_;
  Position position_;
  EventLoop::HandlePtr handshake_timer_;
  // Order matters: calls hold streams of the sessions, which outlive them.
  std::vector<std::unique_ptr<Upstream>> upstreams_;
  DestroyLater<std::unique_ptr<Upstream>> lost_;
  std::unique_ptr<h2::Session> session_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> large_calls_;  // calls with many kept bytes
  std::array<std::pair<h2::HeaderBlock, Method>, 4> classified_;
  size_t next_classified_ = 0;
  size_t held_ = 0;
  uint64_t last_active_;
  h2::Scratch scratch_;
  bool draining_ = false;
  bool retired_ = false;
};

}  // namespace resmgr
