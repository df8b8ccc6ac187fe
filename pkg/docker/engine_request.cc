// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_request.h"

#include <cerrno>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "pkg/docker/try_again.h"
#include "pkg/sys/raw_calls.h"

namespace resmgr::docker {
namespace {

constexpr size_t kReadStep = size_t{64} * 1024;
// Reads of a large reply in one turn of the loop.
constexpr int kReads = 4;

}  // namespace

std::string MakeRequest(std::string_view method, std::string_view target, std::string_view body) {
  std::string bytes = fmt::format("{} {} HTTP/1.0\r\nHost: docker\r\n", method, target);
  if (!body.empty()) {
    bytes += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  bytes.append("\r\n").append(body);
  return bytes;
}

EngineRequest::EngineRequest(EventLoop& loop, UniqueFd connection, std::string bytes, Events events)
    : events_(std::move(events)), out_(std::move(bytes)), fd_(std::move(connection)) {
  watch_ = loop.Watch(fd_.get(), EventLoop::kReadable | EventLoop::kWritable,
                      [this](int happened) { OnEvents(happened); });
}

void EngineRequest::OnEvents(int events) {
  if ((events & EventLoop::kWritable) != 0) Write();
  if ((events & EventLoop::kReadable) != 0) Read();
}

void EngineRequest::Write() {
  const ssize_t size = RawSend(fd_.get(), out_.data(), out_.size());
  if (size > 0) out_.erase(0, static_cast<size_t>(size));
  // dockerd may have answered before it has read the request: the answer is still to be read.
  if (size < 0 && !TryAgain()) out_.clear();
  if (out_.empty()) EventLoop::SetEvents(*watch_, EventLoop::kReadable);
}

void EngineRequest::Read() {
  const auto buffer = std::make_unique_for_overwrite<char[]>(kReadStep);
  for (int i = 0; i < kReads; ++i) {
    const ssize_t size = RawReceive(fd_.get(), buffer.get(), kReadStep);
    if (size < 0 && TryAgain()) return;
    if (size > 0) {
      if (!Take({buffer.get(), static_cast<size_t>(size)})) return;
      continue;
    }
    const bool complete = size == 0 && in_body_ && body_.End();
    return End(complete ? OkStatus()
                        : Unavailable("the Docker engine closed the connection without a reply"));
  }
}

bool EngineRequest::Take(std::string_view bytes) {
  if (!in_body_) {
    head_ += bytes;
    const auto size = finder_.Find(head_);
    if (!size.ok()) return End(size.status()), false;
    if (*size == 0) return true;
    const auto head = ParseReplyHead(std::string_view(head_).substr(0, *size), "GET");
    if (!head.ok()) return End(head.status()), false;
    if (head->body.kind == BodyFraming::Kind::kChunked) {
      return End(Internal("the Docker engine sent chunks to a client of HTTP/1.0")), false;
    }
    in_body_ = true;
    body_.Start(head->body);
    const std::string rest = head_.substr(*size);
    head_.clear();
    const std::weak_ptr<void> alive = lifetime_.token();
    const auto on_head = events_.on_head;
    on_head(head->status);
    if (alive.expired()) return false;
    return rest.empty() && !body_.done() ? true : Take(rest);
  }
  const auto size = body_.Scan(bytes);
  if (!size.ok()) return End(size.status()), false;
  const bool done = body_.done();
  if (*size > 0) {
    const std::weak_ptr<void> alive = lifetime_.token();
    const auto on_body = events_.on_body;
    on_body(bytes.substr(0, *size));
    if (alive.expired()) return false;
  }
  if (done) return End(OkStatus()), false;
  return true;
}

void EngineRequest::End(const Status& status) {
  watch_.reset();
  fd_.Reset();
  const Events events = events_;
  events.on_end(status);
}

}  // namespace resmgr::docker
