// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_client.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "pkg/docker/http_status.h"
#include "pkg/docker/json_text.h"
#include "pkg/sys/raw_calls.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::docker {
namespace {

constexpr size_t kReadStep = size_t{64} * 1024;
// Reads of a large reply in one turn of the loop.
constexpr int kReads = 4;

bool GivenUp(const std::optional<std::weak_ptr<void>>& caller) {
  return caller && caller->expired();
}

}  // namespace

struct EngineClient::Running {
  Done done;
  Caller caller;
  Reply reply{};
  std::unique_ptr<EngineRequest> request{};
  EventLoop::HandlePtr deadline{};
};

EngineClient::EngineClient(EventLoop& loop, std::string socket, size_t parallel, size_t max_replies)
    : loop_(loop), socket_(std::move(socket)), parallel_(parallel), max_replies_(max_replies) {}

EngineClient::~EngineClient() = default;

void EngineClient::Call(std::string_view method, std::string_view target, std::string_view body,
                        std::chrono::milliseconds deadline, Done done,
                        std::optional<std::weak_ptr<void>> caller) {
  std::erase_if(waiting_, [](const Waiting& each) { return GivenUp(each.caller); });
  if (running_.size() == parallel_)
    std::erase_if(running_, [](const auto& each) { return GivenUp(each->caller); });
  waiting_.push_back(
      {MakeRequest(method, target, body), deadline, std::move(done), std::move(caller)});
  StartWaiting();
}

void EngineClient::Get(std::string_view target,
                       std::function<void(StatusOr<std::string> body)> done) {
  Call("GET", target, "", kCallTimeout, [done = std::move(done)](StatusOr<Reply> reply) {
    const Status status = reply.ok() ? ReplyStatus(*reply) : reply.status();
    status.ok() ? done(std::move(reply->body)) : done(status);
  });
}

void EngineClient::Do(std::string_view method, std::string_view target, std::string_view body,
                      std::function<void(Status)> done, std::chrono::milliseconds deadline) {
  Call(method, target, body, deadline, [done = std::move(done)](const StatusOr<Reply>& reply) {
    done(reply.ok() ? ReplyStatus(*reply) : reply.status());
  });
}

void EngineClient::StartWaiting() {
  while (!waiting_.empty() && running_.size() < parallel_) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (GivenUp(next.caller)) continue;
    auto connection = ConnectEngine(socket_);
    if (!connection.ok()) {
      loop_.Post(
          lifetime_.Guard([done = std::move(next.done), why = connection.status()] { done(why); }));
      continue;
    }
    running_.push_back(std::make_unique<Running>(
        Running{.done = std::move(next.done), .caller = std::move(next.caller)}));
    Running& running = *running_.back();
    running.deadline = loop_.After(next.deadline, [this, &running, after = next.deadline] {
      Finish(running,
             DeadlineExceeded("the Docker engine has not answered within {} ms", after.count()));
    });
    running.request = std::make_unique<EngineRequest>(
        loop_, *std::move(connection), std::move(next.bytes),
        EngineRequest::Events{
            .on_head = [&running](int status) { running.reply.status = status; },
            .on_body =
                [this, &running](std::string_view bytes) {
                  running.reply.body += bytes;
                  if (running.reply.body.size() <= kMaxReply && !HoldsTooMuch()) return;
                  Finish(running, ResourceExhausted("a reply of the Docker engine has more than {} "
                                                    "bytes, or all that arrive more than {}",
                                                    kMaxReply, max_replies_));
                },
            .on_end = [this, &running](const Status& status) { Finish(running, status); }});
  }
}

bool EngineClient::HoldsTooMuch() const {
  size_t bytes = 0;
  for (const auto& running : running_)
    bytes += running->reply.body.size();
  return bytes > max_replies_;
}

void EngineClient::Finish(Running& running, const Status& status) {
  const auto it = std::ranges::find_if(
      running_, [&running](const auto& each) { return each.get() == &running; });
  const std::unique_ptr<Running> over = std::move(*it);
  running_.erase(it);
  if (!waiting_.empty() && starting_ == nullptr) {
    starting_ = loop_.After(std::chrono::milliseconds(0), [this] {
      starting_.reset();
      StartWaiting();
    });
  }
  over->done(status.ok() ? StatusOr<Reply>(std::move(over->reply)) : StatusOr<Reply>(status));
}

StatusOr<UniqueFd> ConnectEngine(const std::string& socket) {
  auto connected = ConnectUnix(socket);
  if (connected.ok()) return connected;
  return Unavailable("cannot connect to the Docker engine: {}", Message(connected.status()));
}

Status ReplyStatus(const EngineClient::Reply& reply) {
  if (reply.status < 400) return OkStatus();
  const StatusCode code = CodeOfStatus(reply.status);
  const bool known = code != StatusCode::kUnknown && code != StatusCode::kCancelled;
  return MakeStatus(
      known ? code : StatusCode::kInternal,
      LastText(reply.body, "message").value_or(fmt::format("status {}", reply.status)));
}

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
  // dockerd may have answered without reading the whole request, so its answer is still read.
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
