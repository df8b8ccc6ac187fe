// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pkg/base/status.h"
#include "pkg/docker/call_watch.h"
#include "pkg/docker/exchange.h"
#include "pkg/docker/held_exchange.h"
#include "pkg/docker/interception.h"
#include "pkg/docker/passage.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::docker {

class Proxy;

// One client of a Proxy, and its connection to dockerd. Keeps Passage::kCapacity bytes for each
// direction at most: a side that sends more waits until the other side has read. The end of what
// one side sends becomes the end of what the other side gets, so a connection that dockerd has
// taken over may be half closed. Loop's thread only.
class ProxyConnection final : private Interception::Client {
 public:
  ProxyConnection(Proxy& proxy, EventLoop& loop, UniqueFd client);
  ProxyConnection(const ProxyConnection&) = delete;
  ProxyConnection& operator=(const ProxyConnection&) = delete;

  // Within a request or reply, or something of a reply has not left yet.
  bool busy() const {
    return ((!exchange_.idle() || held_ != nullptr) && !closing_) || !replies_.empty() ||
           !own_reply_.empty();
  }
  bool lasting() const { return held_ == nullptr && exchange_.lasting(); }
  uint64_t last_active() const { return last_active_; }
  // At once. The proxy destroys it later.
  void Close();

 private:
  // One of the two sockets.
  struct Peer {
    UniqueFd fd;
    EventLoop::HandlePtr watch;
    int events = 0;
    bool ended = false;     // sends nothing more
    bool told_end = false;  // that it gets nothing more
    bool deaf = false;      // takes nothing more
    void Reset();
    void Tell();
  };

  void OnEvents(Peer& peer, Passage& from, int events);
  // false: the connection is closed.
  bool Read(Peer& peer, Passage& passage);
  void Step();
  Status Pass();
  // The first ones that wait are for the other side, or are held.
  Status TakeRequest(size_t size, bool head);
  void TakeReply(size_t size);
  Status ConnectEngine();
  void Write(Peer& peer, Passage& passage);
  // Bytes that stand before what a passage has; they are taken off when they are sent.
  void WriteText(Peer& peer, std::string& text);
  void SendOwn();
  void PassEnds();
  void PassEndOfTunnel();
  void WatchHead();
  void Rewatch();
  static void SetEvents(Peer& peer, int events);
  // proxy_connection_held.cc
  Status Hold(std::string_view bytes);
  void HoldReply(std::string_view bytes);
  void WatchBody();
  // False: nothing is left to do for the ends of the two sides.
  bool PassEndsOfHeld();
  void DropHeld();
  // The request is looked at, counted and shown, where it is to be.
  Status Look(std::string_view head);
  // The request that is counted has its reply, or has no use for one.
  void EndCall();
  void Forward(std::optional<std::string> body) override;
  void Reject(const Status& why) override;
  void PassReply(const Status& error) override;
  // What came from elsewhere than the sockets.
  void StepIfIdle() {
    if (!stepping_) Step();
  }
  // In place of dockerd's reply where that is still possible.
  void Refuse(int code, const Status& why);
  void RefuseRequest(const Status& why);
  void Answer(int code, const Status& why, bool with_body);
  // Sends what is left, and closes once the client has closed or the time for that is over.
  void FinishSoon();

  Proxy& proxy_;
  EventLoop& loop_;
  Peer client_;
  Peer engine_;
  Passage requests_;
  Passage replies_;
  std::string own_reply_;  // what is left of it; sent after `replies_`
  std::string forwarded_;  // what is left of a request that was held; sent before `requests_`
  Exchange exchange_;
  std::unique_ptr<HeldExchange> held_;  // what is looked at now
  size_t held_bytes_ = 0;
  std::unique_ptr<CallWatch::Call> call_;  // of the request under way
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
