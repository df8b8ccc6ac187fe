// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/proxy_connection.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>

#include "pkg/base/json.h"
#include "pkg/docker/engine_client.h"
#include "pkg/docker/http_status.h"
#include "pkg/docker/proxy.h"
#include "pkg/sys/raw_calls.h"

namespace resmgr::docker {
namespace {

constexpr size_t kDiscardStep = 4096;

// An error in dockerd's form, the last reply on its connection.
std::string ErrorReply(int code, std::string_view message, bool with_body) {
  const std::string body = JsonText({{"message", message}}) + "\n";
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      code, ReasonOf(code), body.size(), with_body ? body : "");
}

}  // namespace

void ProxyConnection::Peer::Reset() {
  watch.reset();
  fd.Reset();
}

void ProxyConnection::Peer::Tell() {
  if (!std::exchange(told_end, true)) ::shutdown(fd.get(), SHUT_WR);
}

bool ProxyConnection::Peer::IsGone() const {
  pollfd peer{.fd = fd.get(), .events = 0, .revents = 0};
  return ::poll(&peer, 1, 0) == 1 && (peer.revents & (POLLHUP | POLLERR)) != 0;
}

ProxyConnection::ProxyConnection(Proxy& proxy, EventLoop& loop, UniqueFd client)
    : proxy_(proxy), loop_(loop), last_active_(proxy.Tick()) {
  client_.fd = std::move(client);
  client_.events = EventLoop::kReadable;
  client_.watch = loop_.Watch(client_.fd.get(), client_.events,
                              [this](int events) { OnEvents(client_, requests_, events); });
}

void ProxyConnection::Close() {
  if (std::exchange(closed_, true)) return;
  head_timer_.reset();
  body_timer_.reset();
  linger_timer_.reset();
  client_.Reset();
  engine_.Reset();
  requests_.Clear();
  replies_.Clear();
  EndCall();
  DropHeld();
  proxy_.Remove(*this);
}

void ProxyConnection::ReadArrived() {
  if (!busy()) OnEvents(client_, requests_, EventLoop::kReadable);
}

void ProxyConnection::OnEvents(Peer& peer, Passage& from, int events) {
  if (closed_) return;
  last_active_ = proxy_.Tick();
  if ((events & EventLoop::kReadable) != 0 && !Read(peer, from)) return;
  Step();
}

bool ProxyConnection::Read(Peer& peer, Passage& passage) {
  if (peer.ended) return true;
  std::array<char, kDiscardStep> discarded;
  // Further bytes of a refused client are discarded.
  const bool discards = closing_;
  const size_t room = discards ? discarded.size() : passage.room();
  if (room == 0) return true;
  const ssize_t size =
      RawReceive(peer.fd.get(), discards ? discarded.data() : passage.Free(), room);
  if (size > 0) {
    if (!discards) passage.Added(static_cast<size_t>(size));
    return true;
  }
  const bool later = size < 0 && TryAgain();
  if (!discards) passage.Left(0);
  if (later) return true;
  if (size < 0 && &peer == &client_) {
    Close();
    return false;
  }
  peer.ended = true;
  return true;
}

void ProxyConnection::Step() {
  stepping_ = true;
  bool again = true;
  while (again && !closed_) {
    if (!closing_) {
      if (const Status status = Pass(); !status.ok()) RefuseRequest(status);
    }
    Write(client_, replies_);
    if (!closed_ && engine_.fd.valid()) {
      WriteText(engine_, forwarded_);
      if (forwarded_.empty()) Write(engine_, requests_);
    }
    if (closed_) break;
    const bool waits = !own_reply_.empty();
    SendOwn();
    // The next request had to wait until the held reply was sent.
    again = waits && own_reply_.empty() && !requests_.waiting().empty() && !closing_;
  }
  if (!closed_) PassEnds();
  if (!closed_) {
    WatchArrival();
    Rewatch();
  }
  stepping_ = false;
}

// Passes all bytes that may leave. Returns errors of the client; those of dockerd are answered
// here.
Status ProxyConnection::Pass() {
  const bool was_busy = !exchange_.idle();
  while (true) {
    const auto reply = exchange_.FromEngine(replies_.waiting());
    if (!reply.ok()) {
      Refuse(502, MakeStatus(reply.status().code(),
                             fmt::format("the reply of the Docker engine is not understood: {}",
                                         Message(reply.status()))));
      return OkStatus();
    }
    TakeReply(*reply);
    if (closing_ || closed_) return OkStatus();
    if (held_ == nullptr && exchange_.idle()) EndCall();
    // Before the next request is read, any held reply must have been sent.
    const bool head = exchange_.awaits_request();
    if (head && (held_ != nullptr || !own_reply_.empty())) break;
    RESMGR_ASSIGN_OR_RETURN(const size_t request, exchange_.FromClient(requests_.waiting()));
    if (request > 0) TakeRequest(request, head);
    if (closing_ || closed_) return OkStatus();
    if (*reply == 0 && request == 0) break;
  }
  if (held_ != nullptr) return OkStatus();
  if (exchange_.over()) {
    FinishSoon();
  } else if (proxy_.draining() && was_busy && exchange_.idle()) {
    FinishUnlessAsked();
    if (!closing_ && !closed_) return Pass();
  }
  return OkStatus();
}

void ProxyConnection::TakeRequest(size_t size, bool head) {
  const std::string_view bytes = requests_.waiting().substr(0, size);
  if (head) {
    Look(bytes);
    // Its kind is known now, and the drain does not wait for lasting ones.
    if (proxy_.draining()) proxy_.CheckDrained();
  }
  if (held_ != nullptr) return Hold(bytes);
  requests_.Allow(size);
  if (engine_.fd.valid()) return;
  if (const Status status = ConnectEngine(); !status.ok()) Refuse(503, status);
}

void ProxyConnection::TakeReply(size_t size) {
  if (held_ == nullptr) {
    replies_.Allow(size);
  } else if (size > 0) {
    HoldReply(replies_.waiting().substr(0, size));
  }
}

Status ProxyConnection::ConnectEngine() {
  RESMGR_ASSIGN_OR_RETURN(engine_.fd, docker::ConnectEngine(proxy_.options().engine_socket));
  engine_.events = EventLoop::kReadable;
  engine_.watch = loop_.Watch(engine_.fd.get(), engine_.events,
                              [this](int events) { OnEvents(engine_, replies_, events); });
  return OkStatus();
}

void ProxyConnection::Write(Peer& peer, Passage& passage) {
  while (!peer.deaf && !passage.leaving().empty()) {
    const std::optional<size_t> sent = Send(peer, passage.leaving());
    if (!sent) return;
    passage.Left(*sent);
  }
}

void ProxyConnection::WriteText(Peer& peer, std::string& text) {
  while (!peer.deaf && !text.empty()) {
    const std::optional<size_t> sent = Send(peer, text);
    if (!sent) return;
    text.erase(0, *sent);
  }
}

std::optional<size_t> ProxyConnection::Send(Peer& peer, std::string_view bytes) {
  const ssize_t size = RawSend(peer.fd.get(), bytes.data(), bytes.size());
  if (size >= 0) return static_cast<size_t>(size);
  if (TryAgain()) return std::nullopt;
  // A client that does not read any more is gone. dockerd may still send a reply when it has
  // stopped reading.
  if (&peer == &client_) {
    Close();
  } else {
    peer.deaf = true;
  }
  return std::nullopt;
}

void ProxyConnection::SendOwn() {
  if (replies_.leaving().empty()) WriteText(client_, own_reply_);
}

void ProxyConnection::PassEnds() {
  if (closing_) {
    if (replies_.empty() && own_reply_.empty() && !client_.told_end) {
      client_.Tell();
      linger_timer_ = loop_.After(proxy_.options().linger, [this] { Close(); });
    }
    if (client_.ended && client_.told_end) Close();
    return;
  }
  if (!PassEndsOfHeld()) return;
  if (client_.ended && exchange_.awaits_request()) {
    // There is no further request, and the last reply has been sent.
    if (replies_.empty() && own_reply_.empty()) Close();
    return;
  }
  if (client_.ended && requests_.empty() && forwarded_.empty() && engine_.fd.valid()) {
    engine_.Tell();
  }
  if (!engine_.ended || !replies_.leaving().empty()) return;
  if (exchange_.tunnel()) return PassEndOfTunnel();
  const Status status = exchange_.EngineEnds();
  if (status.ok()) {
    FinishSoon();
  } else {
    Refuse(502, Unavailable("the Docker engine has not answered: {}", Message(status)));
  }
  SendOwn();
  if (!closed_) PassEnds();
}

// Handles dockerd's end of a tunnel; it may have closed one direction only and still read.
void ProxyConnection::PassEndOfTunnel() {
  client_.Tell();
  if (engine_.deaf || (client_.ended && requests_.empty())) return Close();
  if (!engine_.IsGone()) return;
  // Further bytes of the client have no reader.
  FinishSoon();
  linger_timer_ = loop_.After(proxy_.options().linger, [this] { Close(); });
}

void ProxyConnection::WatchArrival() {
  // A partial head must be complete in time; a request that waits for its turn has no limit.
  const bool head = exchange_.awaits_request() && !requests_.waiting().empty();
  const bool body = held_ != nullptr && held_->phase() == HeldExchange::Phase::kCollecting;
  Limit(head, proxy_.options().head_timeout, "head", head_timer_);
  Limit(body, proxy_.options().body_timeout, "body", body_timer_);
}

void ProxyConnection::Limit(bool arrives, std::chrono::milliseconds time, std::string_view part,
                            EventLoop::HandlePtr& timer) {
  if (closing_ || !arrives) return timer.reset();
  if (timer != nullptr) return;
  timer = loop_.After(time, [this, part] {
    Refuse(408, DeadlineExceeded("the request's {} did not arrive in time", part));
    Step();
  });
}

void ProxyConnection::Rewatch() {
  const bool reads_client = !client_.ended && (closing_ || (requests_.room() > 0 && !engine_.deaf));
  const bool writes_client = !replies_.leaving().empty() || !own_reply_.empty();
  SetEvents(client_, reads_client, writes_client);
  if (!engine_.fd.valid()) return;
  const bool reads_engine = !engine_.ended && replies_.room() > 0;
  const bool writes_engine = !engine_.deaf && (!requests_.leaving().empty() || !forwarded_.empty());
  SetEvents(engine_, reads_engine, writes_engine);
}

void ProxyConnection::SetEvents(Peer& peer, bool reads, bool writes) {
  const int events = (reads ? EventLoop::kReadable : 0) | (writes ? EventLoop::kWritable : 0);
  if (std::exchange(peer.events, events) != events) EventLoop::SetEvents(*peer.watch, events);
}

void ProxyConnection::RefuseRequest(const Status& why) {
  int code = 400;
  if (why.code() == StatusCode::kResourceExhausted) code = 431;
  if (why.code() == StatusCode::kUnimplemented) code = 501;
  Refuse(code, Annotate(why, "the request is not understood"));
}

void ProxyConnection::Refuse(int code, const Status& why) {
  if (closing_ || closed_) return;
  proxy_.NoteRefusal(why);
  // A refused head of the next request can be answered, since the reply before it is complete.
  const bool next = exchange_.awaits_request() && held_ == nullptr;
  if (next || held_ != nullptr || !exchange_.reply_begun()) {
    Answer(code, why, next || exchange_.method() != "HEAD");
  }
  FinishSoon();
}

void ProxyConnection::Answer(int code, const Status& why, bool with_body) {
  if (call_ != nullptr) call_->End(code, Message(why));
  own_reply_ += ErrorReply(code, Message(why), with_body);
}

void ProxyConnection::FinishUnlessAsked() {
  if (requests_.waiting().empty() && !Read(client_, requests_)) return;
  if (requests_.waiting().empty()) FinishSoon();
}

void ProxyConnection::FinishSoon() {
  closing_ = true;
  EndCall();
  DropHeld();
  forwarded_.clear();
  replies_.DropWaiting();
  requests_.Clear();
  engine_.Reset();
}

}  // namespace resmgr::docker
