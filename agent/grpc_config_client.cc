// SPDX-License-Identifier: Apache-2.0
#include "agent/grpc_config_client.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "pkg/api/config.grpc.pb.h"

namespace resmgr::agent {
namespace {

std::shared_ptr<grpc::Channel> Connect(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A daemon that restarts should not have to wait for its configuration.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

// Only touched on the loop's thread.
struct GrpcConfigClient::Callbacks {
  Done done{};
  Lost lost{};
};

// The thread. It takes a request, calls, and posts the answer to the loop.
class GrpcConfigClient::Worker {
 public:
  Worker(EventLoop& loop, Options options, std::weak_ptr<Callbacks> callbacks)
      : loop_(loop),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        thread_([this] { Run(); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      if (context_ != nullptr) context_->TryCancel();
    }
    wake_.notify_one();
    thread_.join();
  }

  void Request(const std::map<std::string, std::string>& config) {
    {
      const std::lock_guard lock(mutex_);
      request_ = config;
    }
    wake_.notify_one();
  }

 private:
  using Config = std::map<std::string, std::string>;

  void Run() {
    const std::shared_ptr<grpc::Channel> channel = Connect(options_.socket);
    const std::unique_ptr<v1::Config::Stub> stub = v1::Config::NewStub(channel);
    bool connected = false;
    while (true) {
      std::optional<Config> config;
      {
        std::unique_lock lock(mutex_);
        const auto awake = [this] { return ending_ || request_.has_value(); };
        if (connected) {
          wake_.wait_for(lock, options_.look_interval, awake);
        } else {
          wake_.wait(lock, awake);
        }
        if (ending_) return;
        config = std::exchange(request_, std::nullopt);
      }
      if (config) {
        Call(*stub, *config);
        // The state of the channel now may already be that of after the end of the daemon which
        // answered: only the next look tells whether the connection of this call is still there.
        connected = true;
      } else if (channel->GetState(false) != GRPC_CHANNEL_READY) {
        connected = false;
        Post([](Callbacks& callbacks) {
          if (callbacks.lost) callbacks.lost();
        });
      }
    }
  }

  void Call(v1::Config::Stub& stub, const Config& config) {
    v1::SetConfigRequest request;
    request.set_node_name(options_.node);
    request.mutable_config()->insert(config.begin(), config.end());
    v1::SetConfigReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + options_.timeout);
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      context_ = &context;
    }
    const grpc::Status status = stub.SetConfig(&context, request, &reply);
    {
      const std::lock_guard lock(mutex_);
      context_ = nullptr;
    }
    StatusOr<std::string> verdict = reply.error();
    if (!status.ok()) {
      verdict = MakeStatus(static_cast<StatusCode>(status.error_code()),
                           "cri-resmgr: " + status.error_message());
    }
    Post([verdict = std::move(verdict)](Callbacks& callbacks) {
      if (const Done done = std::exchange(callbacks.done, nullptr)) done(verdict);
    });
  }

  template <typename Task>
  void Post(Task task) {
    loop_.Post([callbacks = callbacks_, task = std::move(task)] {
      if (const auto held = callbacks.lock()) task(*held);
    });
  }

  EventLoop& loop_;
  const Options options_;
  const std::weak_ptr<Callbacks> callbacks_;

  std::mutex mutex_;  // of all below
  std::condition_variable wake_;
  bool ending_ = false;
  std::optional<Config> request_;
  grpc::ClientContext* context_ = nullptr;  // of the call under way

  std::thread thread_;  // last, since it uses the rest
};

GrpcConfigClient::GrpcConfigClient(EventLoop& loop, Options options)
    : callbacks_(std::make_shared<Callbacks>()),
      worker_(std::make_unique<Worker>(loop, std::move(options), callbacks_)) {}

GrpcConfigClient::~GrpcConfigClient() = default;

void GrpcConfigClient::SetLostCallback(Lost lost) {
  callbacks_->lost = std::move(lost);
}

void GrpcConfigClient::SetConfig(const std::map<std::string, std::string>& config, Done done) {
  callbacks_->done = std::move(done);
  worker_->Request(config);
}

}  // namespace resmgr::agent
