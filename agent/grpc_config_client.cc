// SPDX-License-Identifier: Apache-2.0
#include "agent/grpc_config_client.h"

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "pkg/api/config.grpc.pb.h"
#include "pkg/sys/thread.h"

namespace resmgr::agent {
namespace {

// gRPC's health checking protocol: a cheap call, whether or not the daemon implements it.
constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";

std::shared_ptr<grpc::Channel> Connect(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Without retries a probe cannot pass from a daemon that ended to the next one.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // A daemon that restarts should not have to wait for its configuration.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

// A call under way. gRPC holds it by `self`, which the waiting thread takes back; `ended` runs on
// the loop.
struct Call {
  virtual ~Call() = default;

  grpc::ClientContext context;
  grpc::Status status;
  std::function<void()> ended;
  std::shared_ptr<Call> self;
  // Set by the loop before the call is passed to gRPC, and read by the thread first: gRPC orders
  // the two, but ThreadSanitizer does not see into its library.
  std::atomic<bool> begun{false};
};

template <typename Reply>
struct CallFor : Call {
  std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader;
  Reply reply;

  void Begin(const std::shared_ptr<Call>& me) {
    self = me;
    begun.store(true, std::memory_order_release);
    reader->StartCall();
    reader->Finish(&reply, &status, me.get());
  }
};

}  // namespace

// Used on the loop's thread, except Wait.
class GrpcConfigClient::Impl {
 public:
  Impl(EventLoop& loop, Options options)
      : loop_(loop),
        options_(std::move(options)),
        channel_(Connect(options_.socket)),
        config_(v1::Config::NewStub(channel_)),
        health_(channel_),
        thread_(StartThread("config-client",
                            [this, alive = std::weak_ptr<bool>(alive_)] { Wait(alive); })) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    alive_.reset();
    for (const auto& call : {delivery_, probe_})
      if (call != nullptr) call->context.TryCancel();
    queue_.Shutdown();
    thread_.join();
  }

  void SetCallbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  void SetConfig(const std::map<std::string, std::string>& config, Done done) {
    v1::SetConfigRequest request;
    request.set_node_name(options_.node);
    request.mutable_config()->insert(config.begin(), config.end());
    done_ = std::move(done);
    if (silent_) {
      waiting_ = std::move(request);
    } else {
      Deliver(request);
    }
  }

 private:
  // The body of the thread.
  void Wait(const std::weak_ptr<bool>& alive) {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      Call& ended = *static_cast<Call*>(tag);
      if (!ended.begun.load(std::memory_order_acquire)) continue;
      loop_.Post([call = std::move(ended.self), alive] {
        if (!alive.expired()) call->ended();
      });
    }
  }

  void Deliver(const v1::SetConfigRequest& request) {
    looks_.reset();
    ForgetProbe();
    auto call = std::make_shared<CallFor<v1::SetConfigReply>>();
    delivery_ = call;
    call->context.set_deadline(std::chrono::system_clock::now() + options_.timeout);
    call->ended = [this, ended = call.get()] { Delivered(ended->status, ended->reply); };
    call->reader = config_->PrepareAsyncSetConfig(&call->context, request, &queue_);
    call->Begin(call);
  }

  void Delivered(const grpc::Status& status, const v1::SetConfigReply& reply) {
    delivery_.reset();
    heard_ = loop_.Now();
    // Looks in any case: the channel's state may already be that of a later daemon.
    looks_ = loop_.Every(options_.look_interval, [this] { Look(); });
    StatusOr<std::string> verdict = reply.error();
    if (!status.ok()) {
      verdict = MakeStatus(static_cast<StatusCode>(status.error_code()),
                           "cri-resmgr: " + status.error_message());
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      silent_ = true;  // until it has answered a probe
      Probe();
    }
    std::exchange(done_, nullptr)(verdict);
  }

  void Look() {
    if (channel_->GetState(false) != GRPC_CHANNEL_READY) return Lose();
    const auto now = loop_.Now();
    if (probe_ == nullptr) {
      if (now - heard_ >= options_.probe_interval) Probe();
    } else if (!silent_ && now - probed_ >= options_.silence) {
      silent_ = true;
      callbacks_.silent(std::chrono::duration_cast<std::chrono::milliseconds>(now - heard_));
    }
  }

  // The probe has no deadline: a hanging daemon gets one call, not one more at each interval.
  void Probe() {
    auto call = std::make_shared<CallFor<grpc::ByteBuffer>>();
    probe_ = call;
    probed_ = loop_.Now();
    call->ended = [this, ended = call.get()] {
      if (probe_.get() == ended) Probed(ended->status);
    };
    const grpc::Slice empty;
    call->reader = health_.PrepareUnaryCall(&call->context, kHealthCheck,
                                            grpc::ByteBuffer(&empty, 1), &queue_);
    call->Begin(call);
  }

  void ForgetProbe() {
    if (probe_ != nullptr) probe_->context.TryCancel();
    probe_.reset();
  }

  void Probed(const grpc::Status& status) {
    probe_.reset();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return Lose();
    heard_ = loop_.Now();
    const bool was_silent = std::exchange(silent_, false);
    if (waiting_) return Deliver(*std::exchange(waiting_, std::nullopt));
    if (was_silent) callbacks_.answers();
  }

  void Lose() {
    looks_.reset();
    ForgetProbe();
    silent_ = false;
    if (waiting_) return Deliver(*std::exchange(waiting_, std::nullopt));
    callbacks_.lost();
  }

  EventLoop& loop_;
  const Options options_;
  Callbacks callbacks_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Config::Stub> config_;
  grpc::GenericStub health_;
  grpc::CompletionQueue queue_;

  Done done_;
  std::shared_ptr<Call> delivery_;
  std::optional<v1::SetConfigRequest> waiting_;  // held back for a silent daemon
  std::shared_ptr<Call> probe_;
  EventLoop::Clock::time_point probed_;  // when probe_ was sent
  EventLoop::Clock::time_point heard_;   // when the daemon answered last
  bool silent_ = false;
  EventLoop::HandlePtr looks_;  // from a verdict on, while its connection is there

  // Tasks on the loop may run after this object's end.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>();
  std::thread thread_;  // last, since it uses the rest
};

GrpcConfigClient::GrpcConfigClient(EventLoop& loop, Options options)
    : impl_(std::make_unique<Impl>(loop, std::move(options))) {}

GrpcConfigClient::~GrpcConfigClient() = default;

void GrpcConfigClient::SetCallbacks(Callbacks callbacks) {
  impl_->SetCallbacks(std::move(callbacks));
}

void GrpcConfigClient::SetConfig(const std::map<std::string, std::string>& config, Done done) {
  impl_->SetConfig(config, std::move(done));
}

}  // namespace resmgr::agent
