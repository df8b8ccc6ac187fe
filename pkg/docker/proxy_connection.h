// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/call_watch.h"
#include "pkg/docker/exchange.h"
#include "pkg/docker/interception.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::docker {

class Proxy;

// One client of a Proxy, and its connection to dockerd. Buffers at most Passage::kCapacity bytes
// for each direction: a side that sends more waits until the other side has read. The end of one
// side's bytes is passed on to the other side, so a connection that dockerd has taken over may be
// half closed. Loop's thread only.
class ProxyConnection final : private Interception::Client {
 public:
  ProxyConnection(Proxy& proxy, EventLoop& loop, UniqueFd client);
  ProxyConnection(const ProxyConnection&) = delete;
  ProxyConnection& operator=(const ProxyConnection&) = delete;

  // True within a request, also within its head, or a reply, or while bytes of a reply have not
  // been sent yet.
  bool busy() const {
    return ((!exchange_.idle() || held_ != nullptr || !requests_.waiting().empty()) && !closing_) ||
           !replies_.empty() || !own_reply_.empty();
  }
  // False within a head, since its request may be of any kind.
  bool lasting() const { return held_ == nullptr && !exchange_.idle() && exchange_.lasting(); }
  uint64_t last_active() const { return last_active_; }
  // Reads what the client has sent between requests, and begins to serve it.
  void ReadArrived();
  // Closes both sockets at once; the proxy destroys this object later.
  void Close();

 private:
  // One of the two sockets.
  struct Peer {
    UniqueFd fd;
    EventLoop::HandlePtr watch;
    int events = 0;
    bool ended = false;     // the peer sends nothing more
    bool told_end = false;  // its socket was shut down for writing
    bool deaf = false;      // the peer takes nothing more
    void Reset();
    void Tell();
    // Whether the peer has closed both directions.
    bool IsGone() const;
  };

  void OnEvents(Peer& peer, Passage& from, int events);
  // False: the connection is closed.
  bool Read(Peer& peer, Passage& passage);
  void Step();
  Status Pass();
  // Passes the first `size` waiting bytes to the other side, or holds them.
  void TakeRequest(size_t size, bool head);
  void TakeReply(size_t size);
  Status ConnectEngine();
  void Write(Peer& peer, Passage& passage);
  // Sends bytes that precede the passage's, and removes the sent ones from `text`.
  void WriteText(Peer& peer, std::string& text);
  // Returns the number of sent bytes. nullopt: no more can be sent now or ever, in which case the
  // peer is deaf, or this connection is closed.
  std::optional<size_t> Send(Peer& peer, std::string_view bytes);
  void SendOwn();
  void PassEnds();
  void PassEndOfTunnel();
  // Limits the time in which a begun request arrives.
  void WatchArrival();
  void Limit(bool arrives, std::chrono::milliseconds time, std::string_view part,
             EventLoop::HandlePtr& timer);
  void Rewatch();
  static void SetEvents(Peer& peer, bool reads, bool writes);
  // These functions are in proxy_connection_held.cc.
  void Hold(std::string_view bytes);
  void HoldReply(std::string_view bytes);
  // Handles an end of the client's or dockerd's bytes while a request is held; false: the caller
  // has nothing more to do.
  bool PassEndsOfHeld();
  // Ends a forwarded request whose client is gone when its reply does not come in time.
  void AwaitReplyForGone();
  void DropHeld();
  // Shows the request's head to the interceptor and the watch.
  void Look(std::string_view head);
  // Ends the counted call, with or without a reply.
  void EndCall();
  void Forward(std::optional<std::string> body) override;
  void Reject(const Status& why) override;
  void PassReply(const Status& error) override;
  // Continues after an event that does not come from the sockets.
  void StepIfIdle() {
    if (!stepping_) Step();
  }
  // Answers with an error instead of dockerd's reply, if that is still possible.
  void Refuse(int code, const Status& why);
  void RefuseRequest(const Status& why);
  void Answer(int code, const Status& why, bool with_body);
  // Called between requests while the proxy drains: ends the connection unless the next request has
  // arrived, at least in part.
  void FinishUnlessAsked();
  // Sends the remaining bytes, and closes once the client has closed or `linger` has passed.
  void FinishSoon();

  Proxy& proxy_;
  EventLoop& loop_;
  Peer client_;
  Peer engine_;
  Passage requests_;
  Passage replies_;
  std::string own_reply_;  // the unsent part of a reply of the proxy; sent after `replies_`
  std::string forwarded_;  // the unsent part of a held request; sent before `requests_`
  Exchange exchange_;
  std::unique_ptr<HeldExchange> held_;  // the intercepted request
  size_t held_bytes_ = 0;
  std::unique_ptr<CallWatch::Call> call_;  // the request under way
  bool stepping_ = false;
  EventLoop::HandlePtr head_timer_;
  EventLoop::HandlePtr body_timer_;
  EventLoop::HandlePtr linger_timer_;
  EventLoop::HandlePtr orphan_timer_;
  uint64_t last_active_;
  bool closing_ = false;
  bool closed_ = false;
};

}  // namespace resmgr::docker
