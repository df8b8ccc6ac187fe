// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_runtime/generic_server.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpcpp/alarm.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "test/support/fake_runtime/generic_call.h"

namespace resmgr::test {

namespace {

// Some tests make floods of connections.
constexpr int kBacklog = 512;

StatusOr<UniqueFd> Listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return InvalidArgument("socket path {} is longer than {} bytes", path,
                           sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::unlink(path.c_str());
  if (!fd.valid() ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return Unavailable("cannot listen on {}: {}", path, std::strerror(errno));
  }
  return fd;
}

}  // namespace

grpc::ByteBuffer ToBuffer(std::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return {&slice, 1};
}

// Brings the serving thread out of its wait; deletes itself.
class GenericServer::WakeUp final : public CompletionTag {
 public:
  static void Send(grpc::CompletionQueue* queue) {
    auto* wake_up = new WakeUp;
    wake_up->alarm_.Set(queue, gpr_now(GPR_CLOCK_MONOTONIC), wake_up);
  }
  void Complete(bool /*ok*/) override { delete this; }

 private:
  grpc::Alarm alarm_;
};

StatusOr<std::unique_ptr<GenericServer>> GenericServer::Start(const std::string& socket_path,
                                                              CallHandler& handler) {
  std::unique_ptr<GenericServer> server(new GenericServer(handler));
  RESMGR_ASSIGN_OR_RETURN(server->listener_, Listen(socket_path));
  server->stop_accepting_.Reset(::eventfd(0, EFD_CLOEXEC));

  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  // Clients under test may ping as they like.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.RegisterAsyncGenericService(&server->service_);
  server->queue_ = builder.AddCompletionQueue();
  server->server_ = builder.BuildAndStart();
  if (!server->server_) return Unavailable("gRPC could not start a server");

  std::make_shared<Call>(*server)->Request();
  server->serve_thread_ = std::thread([raw = server.get()] { raw->ServeLoop(); });
  server->accept_thread_ = std::thread([raw = server.get()] { raw->AcceptLoop(); });
  return server;
}

GenericServer::~GenericServer() {
  if (!accept_thread_.joinable()) return;
  ::eventfd_write(stop_accepting_.get(), 1);
  accept_thread_.join();
  listener_.Reset();
  CutConnections();
  // Everything in flight is cancelled; the thread still collects the completions.
  server_->Shutdown(std::chrono::system_clock::now());
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    WakeUp::Send(queue_.get());
  }
  serve_thread_.join();
}

void GenericServer::AcceptLoop() {
  while (true) {
    pollfd fds[] = {{listener_.get(), POLLIN, 0}, {stop_accepting_.get(), POLLIN, 0}};
    ::poll(fds, 2, -1);
    if (fds[1].revents != 0) return;
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) continue;
    ++accepted_;
    const std::lock_guard lock(mutex_);
    ForgetClosedConnections();
    connections_.emplace_back(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    grpc::AddInsecureChannelFromFd(server_.get(), fd.Release());
  }
}

void GenericServer::ForgetClosedConnections() {
  std::erase_if(connections_, [](const UniqueFd& fd) {
    pollfd state{fd.get(), 0, 0};
    return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR)) != 0;
  });
}

void GenericServer::CutConnections() {
  const std::lock_guard lock(mutex_);
  for (const UniqueFd& fd : connections_)
    ::shutdown(fd.get(), SHUT_RDWR);
  connections_.clear();
}

void GenericServer::Post(std::function<void()> task) {
  After(std::chrono::milliseconds(0), std::move(task));
}

void GenericServer::After(std::chrono::milliseconds delay, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  tasks_.emplace(Clock::now() + delay, std::move(task));
  WakeUp::Send(queue_.get());
}

GenericServer::Clock::time_point GenericServer::NextTask() {
  const std::lock_guard lock(mutex_);
  return stopped_ || tasks_.empty() ? Clock::time_point::max() : tasks_.begin()->first;
}

void GenericServer::RunDueTasks() {
  while (true) {
    std::function<void()> task;
    {
      const std::lock_guard lock(mutex_);
      if (stopped_ || tasks_.empty() || tasks_.begin()->first > Clock::now()) return;
      task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
    }
    task();
  }
}

bool GenericServer::NothingLeft() {
  const std::lock_guard lock(mutex_);
  return stopped_ && calls_.empty() && !requested_;
}

void GenericServer::ServeLoop() {
  void* tag = nullptr;
  bool ok = false;
  bool shut_down = false;
  while (true) {
    RunDueTasks();
    // Calls may start operations until they ended, and a queue that was shut down takes none.
    if (!shut_down && NothingLeft()) {
      queue_->Shutdown();
      shut_down = true;
    }
    const auto next = NextTask();
    gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (next != Clock::time_point::max()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::microseconds>(next - Clock::now()).count();
      deadline =
          gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(left + 1, GPR_TIMESPAN));
    }
    const auto status = queue_->AsyncNext(&tag, &ok, deadline);
    if (status == grpc::CompletionQueue::SHUTDOWN) return;
    if (status == grpc::CompletionQueue::GOT_EVENT) static_cast<CompletionTag*>(tag)->Complete(ok);
  }
}

}  // namespace resmgr::test
