// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pkg/base/status.h"
#include "pkg/docker/exchange.h"
#include "pkg/docker/passage.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::docker {

class Proxy;

// One client of a Proxy, and its connection to dockerd. Keeps Passage::kCapacity bytes for each
// direction at most: whoever sends more waits until the other side has read. The end of what one
// side sends becomes the end of what the other side gets, so a connection that dockerd has taken
// over may be half closed. Loop's thread only.
class ProxyConnection {
 public:
  ProxyConnection(Proxy& proxy, EventLoop& loop, UniqueFd client);
  ProxyConnection(const ProxyConnection&) = delete;
  ProxyConnection& operator=(const ProxyConnection&) = delete;

  // Within a request or reply, or something of a reply has not left yet.
  bool busy() const {
    return (!exchange_.idle() && !closing_) || !replies_.empty() || !own_reply_.empty();
  }
  bool lasting() const { return exchange_.lasting(); }
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
  Status ConnectEngine();
  void Write(Peer& peer, Passage& passage);
  void SendOwn();
  void PassEnds();
  void WatchHead();
  void Rewatch();
  static void SetEvents(Peer& peer, int events);
  // In place of dockerd's reply where that is still possible.
  void Refuse(int code, const Status& why);
  void RefuseRequest(const Status& why);
  // Sends what is left, and closes once the client has closed or the time for that is over.
  void FinishSoon();

  Proxy& proxy_;
  EventLoop& loop_;
  Peer client_;
  Peer engine_;
  Passage requests_;
  Passage replies_;
  std::string own_reply_;  // what is left of it; sent after `replies_`
  Exchange exchange_;
  EventLoop::HandlePtr head_timer_;
  EventLoop::HandlePtr linger_timer_;
  uint64_t last_active_;
  bool closing_ = false;
  bool closed_ = false;
};

}  // namespace resmgr::docker
