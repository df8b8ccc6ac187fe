// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/proxy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pkg/docker/call_watch.h"
#include "pkg/docker/interception.h"
#include "pkg/docker/proxy_connection.h"
#include "pkg/log/not_logged.h"

namespace resmgr::docker {
namespace {

constexpr uint32_t kLogBurst = 10;
constexpr std::chrono::minutes kLogPeriod{1};

}  // namespace

Proxy::Proxy(EventLoop& loop, ListeningSocket listener, Options options, Interceptor* interceptor,
             CallWatch* watch)
    : loop_(loop),
      options_(std::move(options)),
      interceptor_(interceptor),
      watch_(watch),
      log_(GetLogger("docker/proxy")),
      accept_limit_(kLogBurst, kLogPeriod),
      refusal_limit_(kLogBurst, kLogPeriod),
      acceptor_(loop, {.take = [this](UniqueFd socket) { Accept(std::move(socket)); },
                       .failed =
                           [this](const Status& why) {
                             if (const auto suppressed = accept_limit_.Pass(loop_.Now())) {
                               log_.Warn("cannot accept a connection: {}{}", Message(why),
                                         NotLogged(*suppressed));
                             }
                           },
                       .present = [this] { return connections_.size(); },
                       .most = options_.max_clients,
                       .make_room = [this] { EndLongestIdle(); }}) {
  acceptor_.Listen(std::move(listener));
}

Proxy::~Proxy() = default;

void Proxy::Accept(UniqueFd socket) {
  connections_.push_back(std::make_unique<ProxyConnection>(*this, loop_, std::move(socket)));
  NoteClients();
}

void Proxy::NoteClients() {
  if (watch_ != nullptr) watch_->SetClients(connections_.size());
}

void Proxy::EndLongestIdle() {
  ProxyConnection& longest = LongestIdle(connections_);
  if (const auto suppressed = accept_limit_.Pass(loop_.Now())) {
    log_.Warn("{} clients are connected: closing the one that is idle for longest{}{}",
              connections_.size(), longest.busy() ? ", with its request" : "",
              NotLogged(*suppressed));
  }
  longest.Close();
}

void Proxy::NoteRefusal(const Status& why) {
  if (const auto suppressed = refusal_limit_.Pass(loop_.Now())) {
    log_.Warn("{}{}", Message(why), NotLogged(*suppressed));
  }
}

void Proxy::Remove(ProxyConnection& connection) {
  const auto it = std::ranges::find_if(
      connections_, [&connection](const auto& each) { return each.get() == &connection; });
  if (it == connections_.end()) return;
  removed_.Add(std::move(*it));
  connections_.erase(it);
  NoteClients();
  if (draining()) CheckDrained();
}

void Proxy::Discard(std::unique_ptr<HeldExchange> exchange) {
  removed_.Add(std::move(exchange));
}

bool Proxy::Hold(size_t bytes) {
  held_ += bytes;
  return held_ <= kMaxHeld;
}

void Proxy::Drain(std::chrono::milliseconds deadline, std::function<void()> done) {
  acceptor_.Stop();
  // Requests that have arrived are served. All are read before the drain begins, so that it cannot
  // end before they are known.
  std::vector<ProxyConnection*> all;
  for (const auto& connection : connections_)
    all.push_back(connection.get());
  for (ProxyConnection* connection : all)
    connection->ReadArrived();
  drained_ = std::move(done);
  drain_timer_ = loop_.After(deadline, [this] {
    if (drained_) TellDrained();
  });
  std::vector<ProxyConnection*> idle;
  for (const auto& connection : connections_) {
    if (!connection->busy()) idle.push_back(connection.get());
  }
  for (ProxyConnection* connection : idle)
    connection->Close();
  CheckDrained();
}

void Proxy::Resume(ListeningSocket listener) {
  drain_timer_.reset();
  telling_.reset();
  drained_ = nullptr;
  acceptor_.Listen(std::move(listener));
}

void Proxy::CheckDrained() {
  const auto holds = [](const auto& each) { return each->busy() && !each->lasting(); };
  if (!drained_ || std::ranges::any_of(connections_, holds)) return;
  drain_timer_.reset();
  TellDrained();
}

void Proxy::TellDrained() {
  telling_ = loop_.After(std::chrono::milliseconds(0), std::exchange(drained_, nullptr));
}

}  // namespace resmgr::docker
