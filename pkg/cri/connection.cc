// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/connection.h"

#include <algorithm>
#include <chrono>

#include "pkg/cri/relay.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

namespace {

// A client that connects and does not speak HTTP/2 within this time is disconnected.
constexpr std::chrono::seconds kHandshakeTimeout{10};
// Limit of bytes kept for the connection's calls: twice the longest request that a runtime takes,
// and a margin.
constexpr size_t kMaxHeld = size_t{36} * 1024 * 1024;

// Calls that keep more bytes than this are listed, so that EndLargest finds them without a search.
constexpr size_t kLargeCall = size_t{128} * 1024;
// If no call is large, EndLargest looks at this many calls.
constexpr size_t kLookedAt = 64;

// Limit of the memory of header fields that Classify remembers.
constexpr size_t kMaxRemembered = 8192;

}  // namespace

class Connection::Upstream final : private h2::Session::Owner {
 public:
  Upstream(Connection& connection, std::string_view path, UniqueFd socket)
      : connection_(connection),
        path_(path),
        session_(connection.loop_, connection.relay_.flushes(), std::move(socket),
                 h2::Session::Role::kClient, *this) {
    connection_.relay_.CountUpstream(path_, 1);
    connection_.relay_.CountUpstreamBytes(path_, session_);
  }
  ~Upstream() override { connection_.relay_.CountUpstream(path_, -1); }

  // `path` must come from Relay::SocketFor.
  bool LeadsTo(std::string_view path) const { return path_.data() == path.data() || path_ == path; }
  h2::Session& session() { return session_; }
  // Whether new calls may be sent over it.
  bool usable() const { return usable_; }

 private:
  void OnRequest(std::unique_ptr<h2::Stream>, const h2::HeaderBlock&, bool) override {}
  void OnGoAway() override { usable_ = false; }
  void OnDisconnect(const Status&) override {
    usable_ = false;
    auto& all = connection_.upstreams_;
    const auto it = std::find_if(all.begin(), all.end(),
                                 [this](const auto& upstream) { return upstream.get() == this; });
    std::unique_ptr<Upstream> self = std::move(*it);
    all.erase(it);
    connection_.lost_.Add(std::move(self));
  }

  Connection& connection_;
  const std::string_view path_;
  bool usable_ = true;
  h2::Session session_;
};

Connection::Connection(Relay& relay, EventLoop& loop, UniqueFd socket)
    : relay_(relay), loop_(loop), lost_(loop), last_active_(relay.Tick()) {
  h2::Session::Owner& owner = *this;
  session_ = std::make_unique<h2::Session>(loop, relay.flushes(), std::move(socket),
                                           h2::Session::Role::kServer, owner);
  relay_.CountClientBytes(*session_);
  handshake_timer_ =
      loop.After(kHandshakeTimeout, [this] { relay_.Remove(*this, "no HTTP/2 handshake"); });
}

Connection::~Connection() {
  // One by one: if a creation ends, a waiting start of the same connection may go on.
  while (!calls_.empty())
    Remove(*calls_.back());
  session_.reset();
}

// Remembers the results for repeated headers: one of the steps that bring a Version call from 5,300
// to 4,550 instructions.
Method Connection::Classify(const h2::HeaderBlock& headers) {
  for (const auto& [known, method] : classified_) {
    if (known.SameMemory(headers)) return method;
  }
  const Method method = ClassifyMethod(headers.Find(":path"));
  if (!headers.shared() || headers.memory() > kMaxRemembered) return method;
  classified_[next_classified_] = {headers, method};
  next_classified_ = (next_classified_ + 1) % classified_.size();
  return method;
}

StatusOr<h2::Session*> Connection::SessionFor(const Method& method) {
  RESMGR_ASSIGN_OR_RETURN(const std::string_view path, relay_.SocketFor(method));
  return SessionTo(path);
}

StatusOr<h2::Session*> Connection::SessionTo(std::string_view path) {
  for (const auto& upstream : upstreams_) {
    if (upstream->usable() && upstream->LeadsTo(path)) return &upstream->session();
  }
  auto socket = ConnectUnix(path);
  if (!socket.ok()) return Unavailable("no runtime: {}", Message(socket.status()));
  upstreams_.push_back(std::make_unique<Upstream>(*this, path, *std::move(socket)));
  h2::Session& session = upstreams_.back()->session();
  session.SetReading(!session_->output_waits());
  return &session;
}

// Replies to a slow client stay with the runtime: bytes read ahead would leave the processor's
// cache before they leave the process.
void Connection::OnOutputWaits(bool waits) {
  for (const auto& upstream : upstreams_)
    upstream->session().SetReading(!waits);
}

void Connection::OnRequest(std::unique_ptr<h2::Stream> stream, const h2::HeaderBlock& headers,
                           bool end) {
  last_active_ = relay_.Tick();
  calls_.push_back(std::make_unique<Call>(*this, std::move(stream), headers));
  Call& call = *calls_.back();
  call.set_position(calls_.size() - 1);
  // A call may still arrive after GOAWAY was sent, since the client may not have read it yet.
  if (retired_ || (draining_ && call.method().endless)) {
    call.Finish(Unavailable("cri-resmgr is shutting down"));
  } else {
    call.Start(end);
  }
}

bool Connection::Hold(Call& call, size_t bytes) {
  if (held_ + bytes > kMaxHeld) {
    call.EndForMemory("too many large requests at once on this connection");
    return false;
  }
  if (!relay_.Hold(*this, bytes)) {
    call.EndForMemory(Relay::kNoMemory);
    return false;
  }
  held_ += bytes;
  const size_t before = call.held();
  if (before <= kLargeCall && before + bytes > kLargeCall) large_calls_.push_back(&call);
  return true;
}

void Connection::Release(size_t bytes) {
  held_ -= bytes;
  relay_.Release(bytes);
}

bool Connection::EndLargest(std::string_view why) {
  std::erase_if(large_calls_, [](const Call* call) { return call->held() <= kLargeCall; });
  if (!large_calls_.empty()) {
    Call& largest =
        **std::ranges::max_element(large_calls_, {}, [](const Call* call) { return call->held(); });
    ForgetLarge(largest);
    largest.EndForMemory(why);
    return true;
  }
  for (size_t i = calls_.size(); i > 0 && i + kLookedAt > calls_.size(); --i) {
    Call& call = *calls_[i - 1];
    if (call.held() == 0) continue;
    call.EndForMemory(why);
    return true;
  }
  return false;
}

void Connection::Remove(Call& call) {
  last_active_ = relay_.Tick();
  if (!large_calls_.empty()) ForgetLarge(call);
  const size_t position = call.position();
  const std::unique_ptr<Call> dead = std::exchange(calls_[position], std::move(calls_.back()));
  if (calls_[position] != nullptr) calls_[position]->set_position(position);
  calls_.pop_back();
}

void Connection::OnDisconnect(const Status& reason) {
  relay_.Remove(*this, Message(reason));
}

void Connection::Drain() {
  draining_ = true;
  EndEndlessCalls();
  session_->Drain();
}

void Connection::GoAway() {
  EndEndlessCalls();
  session_->GoAway();
}

void Connection::EndEndlessCalls() {
  // In reverse order: a removed call is replaced by the last one.
  for (size_t i = calls_.size(); i-- > 0;) {
    Call& call = *calls_[i];
    if (call.method().endless) call.Finish(Unavailable("cri-resmgr is shutting down"));
  }
}

}  // namespace resmgr
