// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/relay.h"

#include <algorithm>
#include <utility>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/log/not_logged.h"

namespace resmgr {

namespace {

// A client has its own connection and one to the image service.
constexpr size_t kFilesPerClient = 2;
// Descriptors for everything else: logs, state, the admin socket and its clients.
constexpr size_t kOtherFiles = 256;
constexpr size_t kFewestClients = 16;
constexpr uint32_t kLogBurst = 10;
constexpr std::chrono::minutes kLogPeriod{1};
constexpr int kMostEndedAtOnce = 8;
constexpr int kUsesOfLargest = 64;
// Bytes of a compressed request in one turn of the loop: well below a millisecond.
constexpr size_t kUnpackStep = size_t{256} * 1024;

}  // namespace

Relay::Relay(EventLoop& loop, h2::FlushQueue& flushes, ListeningSocket listener, Options options,
             Observers observers)
    : loop_(loop),
      flushes_(flushes),
      options_(std::move(options)),
      one_socket_(options_.image_socket == options_.runtime_socket),
      observers_(observers),
      counts_(observers.metrics),
      log_(GetLogger("cri/relay")),
      unread_limit_(kLogBurst, kLogPeriod),
      accept_limit_(kLogBurst, kLogPeriod),
      idle_limit_(kLogBurst, kLogPeriod),
      ended_limit_(kLogBurst, kLogPeriod),
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

Relay::~Relay() = default;

void Relay::Accept(UniqueFd socket) {
  const h2::FlushQueue::Scope scope(flushes_);
  connections_.push_back(std::make_unique<Connection>(*this, loop_, std::move(socket)));
  connections_.back()->set_position(std::prev(connections_.end()));
  NoteConnections();
}

void Relay::EndLongestIdle() {
  const h2::FlushQueue::Scope scope(flushes_);
  Connection& connection = LongestIdle(connections_);
  if (const auto suppressed = idle_limit_.Pass(loop_.Now())) {
    log_.Warn("{} clients are connected: closing the one that is idle for longest{}{}",
              connections_.size(), connection.busy() ? ", with its calls" : "",
              NotLogged(*suppressed));
  }
  // Tells the client which calls were not served, so that it may repeat them.
  connection.GoAway();
  Remove(connection, "it was idle for longest");
}

size_t Relay::ClientsWith(size_t files, size_t runtimes) {
  const size_t free_files = files < kOtherFiles ? 0 : files - kOtherFiles;
  const size_t clients = free_files / (kFilesPerClient + runtimes);
  return std::clamp(clients, kFewestClients, kMostClients);
}

// The connection with the most kept bytes, as of the last search: a search through all connections
// of 1,000 clients takes 7,000 instructions (callgrind), and each piece of a request may need the
// result.
Connection& Relay::Largest() {
  if (largest_ == nullptr || largest_uses_ == 0 || largest_->held() < largest_held_ / 2) {
    largest_ = std::ranges::max_element(connections_, {}, [](const auto& each) {
                 return each->held();
               })->get();
    largest_held_ = largest_->held();
    largest_uses_ = kUsesOfLargest;
  }
  --largest_uses_;
  return *largest_;
}

[[gnu::cold]] bool Relay::MakeRoom(const Connection& connection, size_t bytes) {
  const size_t mine = connection.held() + bytes;
  // The bytes to be released: the excess over the limit, without the bytes of calls that are ending
  // already, but no more than this call adds, even if other connections hold too much.
  size_t missing = std::min(bytes, h2::Memory::held() + bytes - h2::kMuchHeld - ending_);
  const auto enough = [&] { return missing == 0 || held_ + bytes <= kLeastHeld; };
  for (int ended = 0; ended < kMostEndedAtOnce && !enough(); ++ended) {
    Connection& largest = Largest();
    // Connections of similar size must not end each other's calls in turn.
    if (largest.held() <= 2 * mine) break;
    const size_t before = held_;
    if (!largest.EndLargest(kNoMemory)) break;
    missing -= std::min(missing, before - held_);
  }
  return enough() || mine <= kSmallHeld;
}

void Relay::NoteEnded(const Status& why) {
  if (const auto suppressed = ended_limit_.Pass(loop_.Now())) {
    log_.Warn("{}{}", Message(why), NotLogged(*suppressed));
  }
}

void Relay::UnpackSoon(Call& call) {
  unpacking_.push_back(&call);
  if (unpack_turn_ == nullptr) {
    unpack_turn_ = loop_.After(std::chrono::milliseconds(0), [this] { UnpackNext(); });
  }
}

void Relay::UnpackNext() {
  const h2::FlushQueue::Scope scope(flushes_);
  unpack_turn_.reset();
  if (unpacking_.empty()) return;
  Call& call = *unpacking_.front();
  unpacking_.pop_front();
  if (call.Unpack(kUnpackStep)) {
    UnpackSoon(call);
  } else if (!unpacking_.empty() && unpack_turn_ == nullptr) {
    unpack_turn_ = loop_.After(std::chrono::milliseconds(0), [this] { UnpackNext(); });
  }
}

bool Relay::IsImageSocket(std::string_view socket) const {
  return !one_socket_ && options_.image_socket && socket == *options_.image_socket;
}

void Relay::CountClientBytes(h2::Session& session) {
  if (observers_.metrics != nullptr)
    session.CountBytes(observers_.metrics->Bytes(Metrics::Peer::kClient));
}

void Relay::CountUpstreamBytes(std::string_view socket, h2::Session& session) {
  if (observers_.metrics == nullptr) return;
  session.CountBytes(observers_.metrics->Bytes(IsImageSocket(socket) ? Metrics::Peer::kImage
                                                                     : Metrics::Peer::kRuntime));
}

void Relay::CountUpstream(std::string_view socket, int change) {
  const bool image = IsImageSocket(socket);
  int& count = image ? image_connections_ : runtime_connections_;
  count += change;
  if (observers_.metrics == nullptr) return;
  observers_.metrics->SetConnections(image ? Metrics::Peer::kImage : Metrics::Peer::kRuntime,
                                     static_cast<size_t>(count));
}

std::unique_ptr<CallTap> Relay::MakeTap(const Method& method, bool intercepted) {
  if (observers_.dumper == nullptr) return nullptr;
  return CallTap::Create(*observers_.dumper, next_call_++, method, intercepted);
}

void Relay::AddListener() {
  if (++listeners_ == 1 && on_clients_listen_) on_clients_listen_(true);
}

void Relay::RemoveListener() {
  if (--listeners_ == 0 && on_clients_listen_) on_clients_listen_(false);
}

void Relay::NoteConnections() {
  if (observers_.metrics == nullptr) return;
  observers_.metrics->SetConnections(Metrics::Peer::kClient, connections_.size());
}

StatusOr<std::string_view> Relay::SocketFor(const Method& method) const {
  if (method.service != Service::kImage || one_socket_) return options_.runtime_socket;
  if (options_.image_socket) return *options_.image_socket;
  return Unimplemented("the image service is not served here (-image-socket -)");
}

void Relay::NoteUnread(const Method& method, std::string_view why) {
  if (const auto suppressed = unread_limit_.Pass(loop_.Now())) {
    log_.Warn("{} is forwarded unread and without a placement: {}{}", Printable(method.path), why,
              NotLogged(*suppressed));
  }
}

void Relay::Remove(Connection& connection, std::string_view why) {
  if (!connection.Retire()) return;
  if (largest_ == &connection) largest_ = nullptr;
  log_.Debug("a client left: {}", why);
  const Connection::Position position = connection.position();
  removed_.Add(std::move(*position));
  connections_.erase(position);
  NoteConnections();
  if (!drained_ || !connections_.empty()) return;
  log_.Info("the last client left: {}", why);
  FinishDrain();
}

void Relay::Drain(std::function<void()> done) {
  const h2::FlushQueue::Scope scope(flushes_);
  drained_ = std::move(done);
  acceptor_.Stop();
  for (auto it = connections_.begin(); it != connections_.end();)
    (*it++)->Drain();
  if (connections_.empty()) {
    FinishDrain();
    return;
  }
  drain_timer_ = loop_.After(options_.drain_timeout, [this] {
    log_.Warn("{} did not close in time", CountText(std::ssize(connections_), "connection"));
    FinishDrain();
  });
}

void Relay::Resume(ListeningSocket listener) {
  drain_timer_.reset();
  drained_ = nullptr;
  acceptor_.Listen(std::move(listener));
}

void Relay::FinishDrain() {
  drain_timer_.reset();
  if (auto done = std::exchange(drained_, nullptr)) done();
}

}  // namespace resmgr
