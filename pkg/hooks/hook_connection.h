// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "pkg/base/status.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/metrics/plugin_stats.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/off_loop.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::hooks {

// The one connection to the hook server at a socket. It is made at once, and again after each loss:
// when a call needs it, and at pauses that grow up to a second. Connecting looks up a path, which
// may be on a hanging disk, so it uses a thread of its own. A loss and a return are logged once
// each. Loop's thread only.
class HookConnection {
 public:
  using Done = std::function<void(StatusOr<std::string>)>;

  static constexpr std::chrono::milliseconds kLongestPause{1'000};
  // Bytes; a longer answer fails its call.
  static constexpr size_t kMaxAnswer = size_t{4} << 20;
  // Calls that wait for the connection or an answer; one more fails with kUnavailable.
  static constexpr size_t kMostCalls = 1024;

  // `changed`, which may be null, runs after each connection and each loss; it must not destroy
  // this object.
  HookConnection(EventLoop& loop, h2::FlushQueue& flushes, std::string endpoint,
                 std::function<void()> changed = nullptr);
  ~HookConnection();
  HookConnection(const HookConnection&) = delete;
  HookConnection& operator=(const HookConnection&) = delete;

  // See HookServerPort::Ask. `timeout` includes the time to connect. `done` never runs inside this
  // call, and not after the end of this object.
  void Ask(HookPoint point, std::string request, std::chrono::milliseconds timeout, Done done);

  // See PluginStats::CountBy.
  void CountBy(PluginCounter* counter) { stats_.CountBy(counter); }

  const std::string& endpoint() const { return endpoint_; }
  bool connected() const { return client_.connected(); }
  const PluginStats& stats() const { return stats_; }

 private:
  struct Call;
  using Calls = std::list<std::unique_ptr<Call>>;

  void Connect();
  void TellChanged() const {
    if (changed_) changed_();
  }
  void OnConnected(StatusOr<UniqueFd> socket);
  void OnLost(const Status& reason);
  void ConnectLater();
  void Complain(const Status& why);
  void Send(Calls::iterator call);
  void OnAnswer(Calls::iterator call, StatusOr<std::string> answer);
  // Ends a call that has not been sent.
  void Fail(Calls::iterator call, const Status& why);

  EventLoop& loop_;
  Logger& log_;
  const std::string endpoint_;
  const std::function<void()> changed_;
  UnaryClient client_;
  PluginStats stats_;
  Calls calls_;  // oldest first
  bool connecting_ = false;
  bool complained_ = false;  // a loss was logged since the last connection
  bool told_found_ = false;  // a connection was logged since the last logged loss
  RateLimit complaints_;
  Backoff pauses_;
  EventLoop::HandlePtr retry_;
  // Work that was posted must not run after this object's end.
  Lifetime lifetime_;
  OffLoop connector_;  // destroyed first
};

}  // namespace resmgr::hooks
