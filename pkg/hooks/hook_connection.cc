// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_connection.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/log/not_logged.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::hooks {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kFirstPause{50};
// Limits the log for a server that comes and goes all the time.
constexpr uint32_t kLogBurst = 5;
constexpr std::chrono::minutes kLogPeriod{1};

}  // namespace

struct HookConnection::Call {
  HookPoint point;
  std::string request;
  Done done;
  Clock::time_point begin;
  Clock::time_point deadline;
  EventLoop::HandlePtr timer{};  // set while the call waits for the connection
  bool sent = false;
};

HookConnection::HookConnection(EventLoop& loop, h2::FlushQueue& flushes, std::string endpoint,
                               std::function<void()> changed)
    : loop_(loop),
      log_(GetLogger("hooks")),
      endpoint_(std::move(endpoint)),
      changed_(std::move(changed)),
      client_(loop, flushes, endpoint_, kMaxAnswer),
      complaints_(kLogBurst, kLogPeriod),
      pauses_(kFirstPause, kLongestPause),
      connector_(loop, "hook-connect", milliseconds(0)) {
  Connect();
}

HookConnection::~HookConnection() = default;

void HookConnection::Ask(HookPoint point, std::string request, milliseconds timeout, Done done) {
  const Clock::time_point now = Clock::now();
  calls_.push_back(
      std::make_unique<Call>(Call{point, std::move(request), std::move(done), now, now + timeout}));
  const auto call = std::prev(calls_.end());
  if (calls_.size() > kMostCalls) {
    Fail(call, Unavailable("{} calls of the hook server wait already", kMostCalls));
  } else if (client_.connected()) {
    Send(call);
  } else {
    (*call)->timer = loop_.After(timeout, [this, call, timeout] {
      Fail(call, DeadlineExceeded("no connection to {} within {} ms", endpoint_, timeout.count()));
    });
    Connect();
  }
}

void HookConnection::Connect() {
  if (std::exchange(connecting_, true)) return;
  retry_.reset();
  const Status begun = connector_.Run([this, endpoint = endpoint_]() -> EventLoop::Task {
    auto socket = std::make_shared<StatusOr<UniqueFd>>(ConnectUnix(endpoint));
    // The task runs only while this object exists.
    return [this, socket] { OnConnected(std::move(*socket)); };
  });
  if (begun.ok()) return;
  loop_.Post(lifetime_.Guard([this, begun] { OnConnected(begun); }));
}

void HookConnection::OnConnected(StatusOr<UniqueFd> socket) {
  connecting_ = false;
  if (!socket.ok()) {
    Complain(socket.status());
    for (auto next = calls_.begin(); next != calls_.end();) {
      const auto call = next++;
      if (!(*call)->sent) Fail(call, socket.status());
    }
    ConnectLater();
    return;
  }
  if (!std::exchange(told_found_, true)) {
    log_.Info("hook server {} is connected", Printable(endpoint_));
  }
  complained_ = false;
  client_.Connect(*std::move(socket), [this](const Status& reason) { OnLost(reason); });
  TellChanged();
  for (auto call = calls_.begin(); call != calls_.end(); ++call) {
    if (!(*call)->sent) Send(call);
  }
}

void HookConnection::OnLost(const Status& reason) {
  Complain(reason);
  TellChanged();
  // Not at once: a server may accept each connection and close it, and then would be tried all the
  // time.
  if (!connecting_) ConnectLater();
}

void HookConnection::ConnectLater() {
  retry_ = loop_.After(pauses_.Next(), [this] { Connect(); });
}

void HookConnection::Complain(const Status& why) {
  if (std::exchange(complained_, true)) return;
  if (const auto suppressed = complaints_.Pass(loop_.Now())) {
    told_found_ = false;
    log_.Warn("hook server {} is not available, retrying: {}{}", Printable(endpoint_),
              ErrorText(Message(why)), NotLogged(*suppressed));
  }
}

void HookConnection::Send(Calls::iterator call) {
  Call& sent = **call;
  sent.sent = true;
  sent.timer.reset();
  const auto left = std::chrono::ceil<milliseconds>(sent.deadline - Clock::now());
  client_.Call(MethodOf(sent.point), sent.request, std::max(left, milliseconds(1)),
               [this, call](StatusOr<std::string> answer) { OnAnswer(call, std::move(answer)); });
  sent.request.clear();
}

void HookConnection::OnAnswer(Calls::iterator call, StatusOr<std::string> answer) {
  const std::unique_ptr<Call> ended = std::move(*call);
  calls_.erase(call);
  // Only an answer resets the pauses, since a server may accept each connection and close it.
  if (answer.ok()) pauses_.Reset();
  if (answer.status().code() == StatusCode::kDeadlineExceeded) {
    stats_.NoteFailure(answer.status());
  } else {
    stats_.NoteAnswer(Clock::now() - ended->begin, answer.status());
  }
  ended->done(std::move(answer));
}

void HookConnection::Fail(Calls::iterator call, const Status& why) {
  const std::unique_ptr<Call> ended = std::move(*call);
  calls_.erase(call);
  stats_.NoteFailure(why);
  loop_.Post(lifetime_.Guard([done = std::move(ended->done), why] { done(why); }));
}

}  // namespace resmgr::hooks
