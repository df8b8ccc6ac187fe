// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/body_scanner.h"
#include "pkg/docker/http_head.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::docker {

// The bytes of a request. It uses HTTP/1.0, so that dockerd sends the body unchunked, up to the end
// of the connection. `body`: JSON; "": none.
std::string MakeRequest(std::string_view method, std::string_view target, std::string_view body);

// One request of the daemon on its own connection; the reply is reported as it arrives. Loop's
// thread only.
class EngineRequest {
 public:
  struct Events {
    std::function<void(int status)> on_head;
    std::function<void(std::string_view bytes)> on_body;
    // Called once, as the last one. OK: the reply is complete; kUnavailable: it is not.
    std::function<void(const Status& status)> on_end;
  };

  // `connection` leads to dockerd. No event is called within the constructor. Each event may
  // destroy this object.
  EngineRequest(EventLoop& loop, UniqueFd connection, std::string bytes, Events events);
  EngineRequest(const EngineRequest&) = delete;
  EngineRequest& operator=(const EngineRequest&) = delete;

 private:
  void OnEvents(int events);
  void Write();
  void Read();
  // False: this object was destroyed.
  bool Take(std::string_view bytes);
  void End(const Status& status);

  const Events events_;
  std::string out_;
  std::string head_;  // until the head is complete
  HeadFinder finder_;
  BodyScanner body_;
  bool in_body_ = false;
  UniqueFd fd_;
  EventLoop::HandlePtr watch_;
  Lifetime lifetime_;
};

}  // namespace resmgr::docker
