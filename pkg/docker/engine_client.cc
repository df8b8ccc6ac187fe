// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pkg/docker/json_text.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::docker {

struct EngineClient::Running {
  Done done;
  Reply reply{};
  std::unique_ptr<EngineRequest> request{};
  EventLoop::HandlePtr deadline{};
};

EngineClient::EngineClient(EventLoop& loop, std::string socket)
    : loop_(loop), socket_(std::move(socket)) {}

EngineClient::~EngineClient() = default;

void EngineClient::Call(std::string_view method, std::string_view target, std::string body,
                        std::chrono::milliseconds deadline, Done done) {
  waiting_.push_back({MakeRequest(method, target, body), deadline, std::move(done)});
  StartWaiting();
}

void EngineClient::Get(std::string_view target,
                       std::function<void(StatusOr<std::string> body)> done) {
  Call("GET", target, "", kCallTimeout, [done = std::move(done)](StatusOr<Reply> reply) {
    const Status status = reply.ok() ? ReplyStatus(*reply) : reply.status();
    status.ok() ? done(std::move(reply->body)) : done(status);
  });
}

void EngineClient::Do(std::string_view method, std::string_view target, std::string body,
                      std::function<void(Status)> done, std::chrono::milliseconds deadline) {
  Call(method, target, std::move(body), deadline,
       [done = std::move(done)](const StatusOr<Reply>& reply) {
         done(reply.ok() ? ReplyStatus(*reply) : reply.status());
       });
}

void EngineClient::StartWaiting() {
  while (!waiting_.empty() && running_.size() < kParallel) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    auto connection = ConnectEngine(socket_);
    if (!connection.ok()) {
      loop_.Post(
          lifetime_.Guard([done = std::move(next.done), why = connection.status()] { done(why); }));
      continue;
    }
    running_.push_back(std::make_unique<Running>(Running{.done = std::move(next.done)}));
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
                  if (running.reply.body.size() <= kMaxReply) return;
                  Finish(running, ResourceExhausted("a reply of the Docker engine has more than {} "
                                                    "bytes",
                                                    kMaxReply));
                },
            .on_end = [this, &running](const Status& status) { Finish(running, status); }});
  }
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
  std::string message = fmt::format("status {}", reply.status);
  if (CheckJson(reply.body).ok() && IsJsonObject(TrimJson(reply.body))) {
    ForEachMember(TrimJson(reply.body), [&message](std::string_view name, std::string_view value) {
      if (IsField(name, "message") && IsJsonText(value)) message = DecodeJsonText(value);
    });
  }
  switch (reply.status) {
    case 400:
      return InvalidArgument("{}", message);
    case 404:
      return NotFound("{}", message);
    case 409:
      return FailedPrecondition("{}", message);
    case 503:
      return Unavailable("{}", message);
    default:
      return Internal("{}", message);
  }
}

}  // namespace resmgr::docker
