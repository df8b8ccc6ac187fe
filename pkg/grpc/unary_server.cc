// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/unary_server.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/grpc/grpc_message.h"
#include "pkg/h2/session.h"
#include "pkg/log/log.h"
#include "pkg/log/not_logged.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {
namespace {

constexpr uint32_t kLogBurst = 10;
constexpr std::chrono::minutes kLogPeriod{1};

}  // namespace

// One call: collects the request, then waits for the method's reply.
class UnaryServer::Call final : public h2::StreamHandler {
 public:
  Call(Client& client, std::unique_ptr<h2::Stream> stream, const h2::HeaderBlock& headers)
      : client_(client),
        stream_(std::move(stream)),
        path_(headers.Find(":path")),
        encoding_(headers.Find("grpc-encoding")),
        reader_(kMaxRequest, [this](GrpcMessage message) {
          ++messages_;
          message_ = std::move(message);
        }) {
    stream_->set_handler(this);
  }
  ~Call() override;

  // May end the call; never destroys it.
  void Finish(const Status& status);

  void OnHeaders(h2::Stream&, const h2::HeaderBlock&, bool) override {}
  void OnData(h2::Stream& stream, const h2::Slice& data) override;
  void OnEnd(h2::Stream&, const h2::HeaderBlock&) override { Run(); }
  void OnSent(h2::Stream&, size_t) override { SendWaiting(); }
  void OnClose(h2::Stream&, uint32_t) override;

 private:
  // Counts `bytes` until the call ends; false if there is no room.
  bool Hold(size_t bytes);
  void Run();
  // The one message, decompressed.
  StatusOr<std::string> Request();
  void Answer(const StatusOr<std::string>& reply);
  UnaryServer::Send Sender();
  bool SendOne(const StatusOr<std::string>& answer);
  void SendWaiting();
  void SendFirstHeaders();
  void SendMessage(std::string_view message);

  Client& client_;
  std::unique_ptr<h2::Stream> stream_;
  const std::string path_;
  const std::string encoding_;
  GrpcMessageReader reader_;
  GrpcMessage message_;
  int messages_ = 0;
  size_t held_ = 0;
  bool answered_ = false;
  std::optional<std::string> waiting_;  // the next answer of a stream
  Lifetime lifetime_;
};

// One connection.
class UnaryServer::Client final : private h2::Session::Owner {
 public:
  Client(UnaryServer& server, UniqueFd socket)
      : server_(server),
        last_active_(server.Tick()),
        session_(server.loop_, server.flushes_, std::move(socket), h2::Session::Role::kServer,
                 *this) {}
  ~Client() override { calls_.clear(); }

  UnaryServer& server() { return server_; }
  bool busy() const { return !calls_.empty(); }
  uint64_t last_active() const { return last_active_; }
  h2::Session& session() { return session_; }
  void Remove(const Call& call) {
    calls_.remove_if([&call](const auto& other) { return other.get() == &call; });
  }

 private:
  void OnRequest(std::unique_ptr<h2::Stream> stream, const h2::HeaderBlock& headers,
                 bool end) override {
    last_active_ = server_.Tick();
    calls_.push_back(std::make_unique<Call>(*this, std::move(stream), headers));
    Call& call = *calls_.back();
    if (end) call.Finish(InvalidArgument("the request has no message"));
  }
  void OnDisconnect(const Status&) override { server_.Remove(*this); }

  UnaryServer& server_;
  uint64_t last_active_;
  // Order matters: calls hold streams of the session, which outlives them.
  h2::Session session_;
  std::list<std::unique_ptr<Call>> calls_;
};

UnaryServer::Call::~Call() {
  client_.server().held_ -= held_;
}

void UnaryServer::Call::OnData(h2::Stream& stream, const h2::Slice& data) {
  stream.Consume(data.size());
  if (answered_) return;
  if (!Hold(data.size())) {
    Finish(ResourceExhausted("too many requests at once"));
    return;
  }
  reader_.Feed(data.view());
  if (message_.truncated()) Finish(ResourceExhausted("the request is too long"));
}

bool UnaryServer::Call::Hold(size_t bytes) {
  size_t& all = client_.server().held_;
  if (all + bytes > kMaxHeld) return false;
  all += bytes;
  held_ += bytes;
  return true;
}

void UnaryServer::Call::OnClose(h2::Stream&, uint32_t) {
  client_.Remove(*this);
}

void UnaryServer::Call::Run() {
  if (answered_) return;
  const UnaryServer& server = client_.server();
  const auto method = server.methods_.find(path_);
  const auto stream = server.streams_.find(path_);
  if (method == server.methods_.end() && stream == server.streams_.end()) {
    Finish(Unimplemented("no method {}", Printable(path_, 128)));
    return;
  }
  StatusOr<std::string> message = Request();
  if (!message.ok()) {
    Finish(message.status());
    return;
  }
  if (method == server.methods_.end()) return stream->second(*std::move(message), Sender());
  method->second(*std::move(message), lifetime_.Guard([this, &flushes = client_.server().flushes_](
                                                          const StatusOr<std::string>& reply) {
    const h2::FlushQueue::Scope scope(flushes);
    Answer(reply);
  }));
}

StatusOr<std::string> UnaryServer::Call::Request() {
  if (messages_ != 1 || !reader_.complete())
    return InvalidArgument("the request is not one message");
  if (!message_.compressed) return std::move(message_.payload);
  return DecompressGrpc(message_.payload, encoding_, kMaxDecompressed);
}

UnaryServer::Send UnaryServer::Call::Sender() {
  return [this, alive = lifetime_.token(),
          &flushes = client_.server().flushes_](const StatusOr<std::string>& answer) {
    if (alive.expired()) return false;
    const h2::FlushQueue::Scope scope(flushes);
    return SendOne(answer);
  };
}

bool UnaryServer::Call::SendOne(const StatusOr<std::string>& answer) {
  if (answered_ || !stream_->open()) return false;
  if (!answer.ok() && !stream_->headers_sent()) {
    Finish(answer.status());
  } else if (!answer.ok()) {
    answered_ = true;
    h2::HeaderBlock trailers;
    AddGrpcStatus(answer.status(), trailers);
    stream_->SendEnd(trailers);
  } else {
    waiting_ = *answer;
    SendWaiting();
  }
  return answer.ok();
}

void UnaryServer::Call::SendWaiting() {
  if (!waiting_ || answered_ || stream_->queued() > 0) return;
  const std::string message = *std::exchange(waiting_, std::nullopt);
  if (!stream_->headers_sent()) SendFirstHeaders();
  SendMessage(message);
}

void UnaryServer::Call::SendFirstHeaders() {
  h2::HeaderBlock headers;
  headers.Add(":status", "200");
  headers.Add("content-type", "application/grpc");
  stream_->SendHeaders(headers, false);
}

void UnaryServer::Call::SendMessage(std::string_view message) {
  stream_->SendData(h2::Slice::Copy(EncodeGrpcPrefix(false, message.size())));
  if (!message.empty()) stream_->SendData(h2::Slice::Copy(message));
}

void UnaryServer::Call::Answer(const StatusOr<std::string>& reply) {
  if (!reply.ok()) {
    Finish(reply.status());
    return;
  }
  if (!Hold(reply->size())) {
    Finish(ResourceExhausted("too many answers wait for their readers"));
    return;
  }
  if (std::exchange(answered_, true)) return;
  SendFirstHeaders();
  SendMessage(*reply);
  h2::HeaderBlock trailers;
  AddGrpcStatus(OkStatus(), trailers);
  stream_->SendEnd(trailers);
}

void UnaryServer::Call::Finish(const Status& status) {
  if (std::exchange(answered_, true)) return;
  h2::HeaderBlock headers;
  headers.Add(":status", "200");
  headers.Add("content-type", "application/grpc");
  AddGrpcStatus(status, headers);
  stream_->SendHeaders(headers, true);
  stream_->StopReceiving();
}

StatusOr<std::unique_ptr<UnaryServer>> UnaryServer::Create(EventLoop& loop, h2::FlushQueue& flushes,
                                                           const std::string& socket,
                                                           Methods methods) {
  RESMGR_ASSIGN_OR_RETURN(ListeningSocket listener, ListeningSocket::Create(socket));
  return std::make_unique<UnaryServer>(loop, flushes, std::move(listener), std::move(methods));
}

UnaryServer::UnaryServer(EventLoop& loop, h2::FlushQueue& flushes, ListeningSocket listener,
                         Methods methods, Streams streams)
    : loop_(loop),
      flushes_(flushes),
      methods_(std::move(methods)),
      streams_(std::move(streams)),
      acceptor_(loop, {.take = [this](UniqueFd socket) { Accept(std::move(socket)); },
                       .failed =
                           [this](const Status& why) {
                             if (const auto suppressed = log_limit_.Pass(loop_.Now())) {
                               GetLogger("grpc").Warn("{}{}", Message(why), NotLogged(*suppressed));
                             }
                           },
                       .present = [this] { return clients_.size(); },
                       .most = kMaxClients,
                       .make_room = [this] { EndLongestIdle(); }}),
      log_limit_(kLogBurst, kLogPeriod),
      removed_(loop) {
  acceptor_.Listen(std::move(listener));
}

UnaryServer::~UnaryServer() = default;

void UnaryServer::Accept(UniqueFd socket) {
  const h2::FlushQueue::Scope scope(flushes_);
  clients_.push_back(std::make_unique<Client>(*this, std::move(socket)));
}

void UnaryServer::EndLongestIdle() {
  const h2::FlushQueue::Scope scope(flushes_);
  Client& client = LongestIdle(clients_);
  client.session().GoAway();
  Remove(client);
}

void UnaryServer::Remove(Client& client) {
  const auto found = std::find_if(clients_.begin(), clients_.end(),
                                  [&client](const auto& other) { return other.get() == &client; });
  if (found == clients_.end()) return;
  removed_.Add(std::move(*found));
  clients_.erase(found);
}

}  // namespace resmgr
