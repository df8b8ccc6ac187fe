// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/unary_client.h"

#include <algorithm>
#include <utility>

#include "pkg/grpc/grpc_message.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

namespace {

// Limit of a decompressed reply, lower than kMaxReply: the client did not ask for compression, and
// a decompressed reply is copied once more.
constexpr size_t kMaxUnpackedReply = size_t{16} * 1024 * 1024;
// Bytes of a reply decompressed in one turn of the loop: well below a millisecond, while a whole
// reply would take 40 ms.
constexpr size_t kUnpackReplyStep = size_t{256} * 1024;

StatusCode CodeOf(int grpc_code) {
  constexpr int kLastCode = 16;
  return grpc_code >= 0 && grpc_code <= kLastCode ? static_cast<StatusCode>(grpc_code)
                                                  : StatusCode::kUnknown;
}

}  // namespace

class UnaryClient::PendingCall final : public h2::StreamHandler {
 public:
  PendingCall(UnaryClient& client, Done done)
      : client_(client),
        done_(std::move(done)),
        reader_(client.max_reply_, [this](GrpcMessage message) {
          ++messages_;
          reply_ = std::move(message);
        }) {}

  void Start(std::string_view path, std::string_view message, std::chrono::milliseconds timeout) {
    stream_ = client_.Send(path, message, timeout, *this);
    if (stream_ == nullptr) {
      client_.Finish(*this, Unavailable("the peer closes the connection"));
      return;
    }
    timer_ = client_.loop_.After(timeout, [this, timeout] {
      client_.Finish(*this, DeadlineExceeded("no answer within {} ms", timeout.count()));
    });
  }

  Done TakeDone() { return std::move(done_); }

  void OnHeaders(h2::Stream&, const h2::HeaderBlock& headers, bool end) override {
    answered_ = true;
    encoding_ = headers.Find("grpc-encoding");
    if (end) OnTrailers(headers);
  }
  void OnData(h2::Stream& stream, const h2::Slice& data) override {
    stream.Consume(data.size());
    if (answered_) {
      reader_.Feed(data.view());
    } else {
      client_.Finish(*this, Internal("the peer sent a body without header fields before it"));
    }
  }
  void OnEnd(h2::Stream&, const h2::HeaderBlock& trailers) override { OnTrailers(trailers); }
  void OnSent(h2::Stream&, size_t) override {}
  void OnClose(h2::Stream&, uint32_t) override {
    client_.Finish(*this, Unavailable("the connection broke"));
  }

 private:
  void OnTrailers(const h2::HeaderBlock& trailers) {
    const GrpcStatus status = ReadGrpcStatus(trailers);
    if (!status.ok()) {
      client_.Finish(*this, MakeStatus(CodeOf(status.code), status.message));
    } else if (messages_ != 1 || !reader_.complete()) {
      // Without this check, an answer without a message would count as an empty list.
      client_.Finish(*this, Internal("the peer's answer is not one message"));
    } else if (reply_.truncated()) {
      client_.Finish(*this, ResourceExhausted("an answer of {} bytes is too long", reply_.size));
    } else if (reply_.compressed) {
      Unpack();
    } else {
      client_.Finish(*this, std::move(reply_.payload));
    }
  }

  void Unpack() {
    if (const Status known = CheckGrpcEncoding(encoding_); !known.ok() || encoding_ != "gzip") {
      client_.Finish(*this, known.ok() ? StatusOr<std::string>(std::move(reply_.payload)) : known);
      return;
    }
    inflater_ = std::make_unique<Inflater>(reply_.payload, 0,
                                           std::min(kMaxUnpackedReply, client_.max_reply_));
    // The connection is not needed any more.
    stream_.reset();
    UnpackNext();
  }
  void UnpackNext() {
    const StatusOr<bool> whole = inflater_->Step(kUnpackReplyStep);
    if (!whole.ok()) {
      client_.Finish(*this, whole.status());
    } else if (*whole) {
      client_.Finish(*this, std::string(inflater_->output().view()));
    } else {
      unpack_turn_ = client_.loop_.After(std::chrono::milliseconds(0), [this] { UnpackNext(); });
    }
  }

  UnaryClient& client_;
  Done done_;
  GrpcMessageReader reader_;
  GrpcMessage reply_;
  int messages_ = 0;
  bool answered_ = false;
  std::string encoding_;
  EventLoop::HandlePtr timer_;
  std::unique_ptr<Inflater> inflater_;  // set while a compressed reply is decompressed
  EventLoop::HandlePtr unpack_turn_;
  std::unique_ptr<h2::Stream> stream_;
};

UnaryClient::UnaryClient(EventLoop& loop, h2::FlushQueue& flushes, std::string socket_path,
                         size_t max_reply)
    : loop_(loop), flushes_(flushes), socket_path_(std::move(socket_path)), max_reply_(max_reply) {}

UnaryClient::~UnaryClient() {
  calls_.clear();
}

Status UnaryClient::Connect(std::function<void(const Status&)> on_disconnect) {
  RESMGR_ASSIGN_OR_RETURN(UniqueFd socket, ConnectUnix(socket_path_));
  Connect(std::move(socket), std::move(on_disconnect));
  return OkStatus();
}

void UnaryClient::Connect(UniqueFd socket, std::function<void(const Status&)> on_disconnect) {
  on_disconnect_ = std::move(on_disconnect);
  h2::Session::Owner& owner = *this;
  session_ = std::make_unique<h2::Session>(loop_, flushes_, std::move(socket),
                                           h2::Session::Role::kClient, owner);
}

void UnaryClient::Call(std::string_view path, std::string_view message,
                       std::chrono::milliseconds timeout, Done done) {
  auto call = std::make_unique<PendingCall>(*this, std::move(done));
  PendingCall& started = *call;
  calls_.emplace(&started, std::move(call));
  if (session_ == nullptr) {
    Finish(started, Unavailable("no connection to {}", socket_path_));
  } else {
    started.Start(path, message, timeout);
  }
}

std::unique_ptr<h2::Stream> UnaryClient::OpenStream(std::string_view path, std::string_view message,
                                                    h2::StreamHandler& handler) {
  if (session_ == nullptr) return nullptr;
  return Send(path, message, std::nullopt, handler);
}

std::unique_ptr<h2::Stream> UnaryClient::Send(std::string_view path, std::string_view message,
                                              std::optional<std::chrono::milliseconds> timeout,
                                              h2::StreamHandler& handler) {
  h2::HeaderBlock headers;
  headers.Add(":method", "POST");
  headers.Add(":scheme", "http");
  headers.Add(":path", path);
  headers.Add(":authority", "localhost");
  headers.Add("te", "trailers");
  headers.Add("content-type", "application/grpc");
  headers.Add("user-agent", "cri-resmgr");
  if (timeout) headers.Add("grpc-timeout", fmt::format("{}m", timeout->count()));
  std::unique_ptr<h2::Stream> stream = session_->OpenStream(headers, false, handler);
  if (stream == nullptr) return nullptr;
  stream->SendData(h2::Slice::Copy(EncodeGrpcPrefix(false, message.size())));
  stream->SendData(h2::Slice::Copy(message));
  stream->SendEnd();
  return stream;
}

void UnaryClient::Finish(PendingCall& call, StatusOr<std::string> result) {
  const auto it = calls_.find(&call);
  const std::unique_ptr<PendingCall> ended = std::move(it->second);
  calls_.erase(it);
  loop_.Post(lifetime_.Guard([done = ended->TakeDone(), result = std::move(result)]() mutable {
    done(std::move(result));
  }));
}

void UnaryClient::OnDisconnect(const Status& reason) {
  lost_.Add(std::move(session_));
  loop_.Post(lifetime_.Guard([reason, on_disconnect = std::exchange(on_disconnect_, nullptr)] {
    if (on_disconnect) on_disconnect(reason);
  }));
}

UnaryAnswer AskUnary(const std::string& socket, std::string_view path, std::string_view message,
                     std::chrono::milliseconds timeout) {
  EventLoop loop;
  h2::FlushQueue flushes(loop);
  UnaryClient client(loop, flushes, socket);
  UnaryAnswer answer;
  answer.connected = client.Connect([](const Status&) {});
  if (!answer.connected.ok()) return answer;
  client.Call(path, message, timeout, [&](StatusOr<std::string> reply) {
    answer.reply = std::move(reply);
    loop.Stop();
  });
  loop.Run();
  return answer;
}

}  // namespace resmgr
