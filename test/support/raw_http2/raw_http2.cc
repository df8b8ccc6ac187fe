// SPDX-License-Identifier: Apache-2.0
#include "test/support/raw_http2/raw_http2.h"

#include <algorithm>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/h2/frame.h"
#include "pkg/h2/frame_reader.h"
#include "pkg/h2/hpack.h"
#include "test/support/grpc_framing.h"

namespace resmgr::test {
namespace {

constexpr int kPollMs = 20;

}  // namespace

std::string Number(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0})
    bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string Frame(uint32_t length, uint8_t type, uint8_t flags, uint32_t stream,
                  const std::string& payload) {
  std::string frame = Number(length).substr(1);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  return frame + Number(stream) + payload;
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  return Frame(static_cast<uint32_t>(payload.size()), type, flags, stream, payload);
}

std::string Settings(uint8_t setting, uint32_t value) {
  return Frame(4, 0, 0, std::string(1, '\0') + static_cast<char>(setting) + Number(value));
}

std::string Fields(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string block;
  for (const auto& [name, value] : fields) {
    block += '\0';
    for (const std::string& text : {name, value}) {
      block += static_cast<char>(text.size());
      block += text;
    }
  }
  return block;
}

std::vector<std::pair<std::string, std::string>> RequestFields(const std::string& path) {
  return {{":method", "POST"},
          {":scheme", "http"},
          {":path", path},
          {":authority", "localhost"},
          {"content-type", "application/grpc"},
          {"te", "trailers"}};
}

std::string Body(uint32_t stream, std::string_view message, bool compressed) {
  constexpr size_t kPiece = 16384;
  const std::string body = Framed(std::string(message), compressed);
  std::string frames;
  for (size_t at = 0; at < body.size(); at += kPiece) {
    const bool last = at + kPiece >= body.size();
    frames += Frame(0, last ? 1 : 0, stream, body.substr(at, kPiece));
  }
  return frames;
}

std::string RequestHeaders(uint32_t stream, const std::string& path,
                           const std::vector<std::pair<std::string, std::string>>& more) {
  return Frame(1, 4, stream, Fields(RequestFields(path)) + Fields(more));
}

std::string Request(uint32_t stream, const std::string& path, const std::string& message) {
  return RequestHeaders(stream, path) + Body(stream, message);
}

std::string Answer(uint32_t stream, std::string_view message) {
  constexpr size_t kPiece = 16384;
  const std::string body = Framed(std::string(message));
  std::string frames =
      Frame(1, 4, stream, Fields({{":status", "200"}, {"content-type", "application/grpc"}}));
  for (size_t at = 0; at < body.size(); at += kPiece)
    frames += Frame(0, 0, stream, body.substr(at, kPiece));
  return frames + Frame(1, 5, stream, Fields({{"grpc-status", "0"}}));
}

class RawRuntime::Peer final : private h2::FrameReader::Sink {
 public:
  Peer(RawRuntime& runtime, UniqueFd socket)
      : runtime_(runtime), socket_(std::move(socket)), out_(runtime.script_.greeting) {}

  void Run() {
    h2::Block* const block = h2::Block::New(size_t{256} * 1024);
    while (!runtime_.stop_) {
      pollfd state{socket_.get(), static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
      if (::poll(&state, 1, kPollMs) < 1) continue;
      if ((state.revents & POLLOUT) != 0) {
        const ssize_t sent = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
        if (sent > 0) out_.erase(0, static_cast<size_t>(sent));
      }
      if ((state.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      const ssize_t count = ::read(socket_.get(), block->data(), block->capacity());
      if (count <= 0) break;
      std::string_view bytes(reinterpret_cast<const char*>(block->data()),
                             static_cast<size_t>(count));
      bool good = true;
      while (good && !bytes.empty())
        good = reader_.Feed(block, bytes, 1000).ok();
      if (!good) break;
    }
    block->Unref();
  }

 private:
  Status OnFrame(const h2::FrameHeader& header, std::string_view payload) override {
    if (header.type == h2::FrameType::kSettings && !header.Has(h2::kFlagAck)) {
      out_ += Frame(4, 1, 0, "");
    }
    if (header.type != h2::FrameType::kHeaders) return OkStatus();
    RESMGR_ASSIGN_OR_RETURN(const h2::HeaderBlock headers,
                            decoder_.Decode(payload, size_t{1} << 20));
    const std::string path(headers.Find(":path"));
    {
      const std::lock_guard lock(runtime_.mutex_);
      runtime_.paths_.push_back(path);
    }
    out_ += runtime_.script_.answer(static_cast<uint32_t>(header.stream), path);
    return OkStatus();
  }
  Status OnData(const h2::FrameHeader& header, const h2::Slice& bytes, bool, bool) override {
    if (bytes.size() > 0 && runtime_.script_.opens_windows) {
      const std::string more = Number(static_cast<uint32_t>(bytes.size()));
      out_ += Frame(8, 0, 0, more) + Frame(8, 0, static_cast<uint32_t>(header.stream), more);
    }
    return OkStatus();
  }

  RawRuntime& runtime_;
  UniqueFd socket_;
  std::string out_;
  h2::FrameReader reader_{*this, true};
  h2::HpackDecoder decoder_;
};

StatusOr<std::unique_ptr<RawRuntime>> RawRuntime::Start(const std::string& socket, Script script) {
  RESMGR_ASSIGN_OR_RETURN(ListeningSocket listener, ListeningSocket::Create(socket));
  return std::unique_ptr<RawRuntime>(new RawRuntime(std::move(listener), std::move(script)));
}

RawRuntime::RawRuntime(ListeningSocket listener, Script script)
    : listener_(std::move(listener)), script_(std::move(script)), acceptor_([this] { Accept(); }) {}

RawRuntime::~RawRuntime() {
  stop_ = true;
  acceptor_.join();
  for (std::thread& peer : peers_)
    peer.join();
}

void RawRuntime::Accept() {
  while (!stop_) {
    pollfd state{listener_.fd(), POLLIN, 0};
    if (::poll(&state, 1, kPollMs) < 1) continue;
    auto accepted = listener_.Accept();
    if (!accepted.ok() || !accepted->has_value()) continue;
    peers_.emplace_back(
        [peer = std::make_shared<Peer>(*this, **std::move(accepted))] { peer->Run(); });
  }
}

int RawRuntime::Requests(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::ranges::count(paths_, path));
}

}  // namespace resmgr::test
