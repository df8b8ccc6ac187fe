// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_server.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>

#include "pkg/api/agent.grpc.pb.h"
#include "pkg/log/log.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::agent {
namespace {

// Longer than an operation on the API server may take, retries included.
constexpr std::chrono::seconds kAnswerTimeout{60};
constexpr std::chrono::seconds kShutdownTimeout{2};
// One caller is expected, and it asks for one thing at a time.
constexpr int kMaxThreads = 16;
constexpr int kMaxRequest = 4 << 20;

// Where gRPC's threads wait for answers of the loop. Shared with the tasks on the loop, which may
// come to an end later than the server.
class Desk {
 public:
  // Runs `ask` on the loop and waits for what it answers.
  template <typename Answer, typename Ask>
  static Answer Wait(const std::shared_ptr<Desk>& desk, EventLoop& loop, Ask ask) {
    const auto answer = std::make_shared<std::optional<Answer>>();
    loop.Post([desk, answer, ask = std::move(ask)] {
      ask([desk, answer](Answer value) {
        {
          const std::lock_guard lock(desk->mutex_);
          *answer = std::move(value);
        }
        desk->changed_.notify_all();
      });
    });
    std::unique_lock lock(desk->mutex_);
    const bool woken = desk->changed_.wait_for(
        lock, kAnswerTimeout, [&] { return answer->has_value() || desk->closed_; });
    if (answer->has_value()) return **answer;
    return woken ? Unavailable("the agent is ending")
                 : DeadlineExceeded("the agent has no answer in time");
  }

  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
};

grpc::Status ToGrpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(Message(status))};
}

class Service : public v1::Agent::Service {
 public:
  Service(EventLoop& loop, AgentHandler& handler, std::shared_ptr<Desk> desk)
      : loop_(loop), handler_(handler), desk_(std::move(desk)) {}

  grpc::Status GetNode(grpc::ServerContext* /*context*/, const v1::GetNodeRequest* /*request*/,
                       v1::GetNodeReply* reply) override {
    const auto node = Desk::Wait<StatusOr<std::string>>(
        desk_, loop_, [this](AgentHandler::TextDone done) { handler_.GetNode(std::move(done)); });
    if (node.ok()) reply->set_node(*node);
    return ToGrpc(node.status());
  }

  grpc::Status PatchNode(grpc::ServerContext* /*context*/, const v1::PatchNodeRequest* request,
                         v1::PatchNodeReply* /*reply*/) override {
    std::vector<PatchOperation> operations;
    for (const v1::JsonPatch& patch : request->patches()) {
      operations.push_back({.op = patch.op(), .path = patch.path(), .value = patch.value()});
    }
    return ToGrpc(Desk::Wait<Status>(desk_, loop_, [this, operations](AgentHandler::Done done) {
      handler_.PatchNode(operations, std::move(done));
    }));
  }

  grpc::Status UpdateNodeCapacity(grpc::ServerContext* /*context*/,
                                  const v1::UpdateNodeCapacityRequest* request,
                                  v1::UpdateNodeCapacityReply* /*reply*/) override {
    const std::map<std::string, std::string> capacities(request->capacities().begin(),
                                                        request->capacities().end());
    return ToGrpc(Desk::Wait<Status>(desk_, loop_, [this, capacities](AgentHandler::Done done) {
      handler_.UpdateNodeCapacity(capacities, std::move(done));
    }));
  }

  grpc::Status HealthCheck(grpc::ServerContext* /*context*/, const v1::HealthCheckRequest* request,
                           v1::HealthCheckReply* reply) override {
    const auto complaint = Desk::Wait<StatusOr<std::string>>(
        desk_, loop_, [this, query = request->query()](AgentHandler::TextDone done) {
          handler_.HealthCheck(query, std::move(done));
        });
    if (complaint.ok()) reply->set_error(*complaint);
    return ToGrpc(complaint.status());
  }

 private:
  EventLoop& loop_;
  AgentHandler& handler_;
  const std::shared_ptr<Desk> desk_;
};

}  // namespace

// The socket is ours, since gRPC's own would push away another agent and be open to everybody;
// gRPC gets the connections.
class AgentServer::Impl {
 public:
  Impl(EventLoop& loop, AgentHandler& handler, ListeningSocket socket)
      : socket_(std::move(socket)),
        desk_(std::make_shared<Desk>()),
        service_(loop, handler, desk_) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    watch_.reset();
    desk_->Close();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kShutdownTimeout);
  }

  Status Start(EventLoop& loop) {
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("agent");
    quota.SetMaxThreads(kMaxThreads);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxRequest);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return Internal("gRPC starts no server");
    watch_ = loop.Watch(socket_.fd(), EventLoop::kReadable, [this](int) { Accept(); });
    return OkStatus();
  }

 private:
  void Accept() {
    while (true) {
      StatusOr<std::optional<UniqueFd>> connection = socket_.Accept();
      if (!connection.ok()) {
        GetLogger("agent").Warn("{}: {}", socket_.path(), Message(connection.status()));
        return;
      }
      if (!*connection) return;
      grpc::AddInsecureChannelFromFd(server_.get(), (*connection)->Release());
    }
  }

  ListeningSocket socket_;
  const std::shared_ptr<Desk> desk_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  EventLoop::HandlePtr watch_;
};

AgentServer::AgentServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AgentServer::~AgentServer() = default;

StatusOr<std::unique_ptr<AgentServer>> AgentServer::Create(EventLoop& loop, AgentHandler& handler,
                                                           std::string_view socket) {
  RESMGR_ASSIGN_OR_RETURN(ListeningSocket listening, ListeningSocket::Create(socket));
  auto impl = std::make_unique<Impl>(loop, handler, std::move(listening));
  RESMGR_RETURN_IF_ERROR(impl->Start(loop));
  return std::unique_ptr<AgentServer>(new AgentServer(std::move(impl)));
}

Status ProbeAgent(std::string_view socket, std::string_view query,
                  std::chrono::milliseconds timeout) {
  const auto channel =
      grpc::CreateChannel(fmt::format("unix:{}", socket), grpc::InsecureChannelCredentials());
  const auto stub = v1::Agent::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  v1::HealthCheckRequest request;
  request.set_query(std::string(query));
  v1::HealthCheckReply reply;
  const grpc::Status status = stub->HealthCheck(&context, request, &reply);
  if (!status.ok()) return Unavailable("{}: {}", socket, status.error_message());
  if (!reply.error().empty()) return FailedPrecondition("{}", reply.error());
  return OkStatus();
}

}  // namespace resmgr::agent
