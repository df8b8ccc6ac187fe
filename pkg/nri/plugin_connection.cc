// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/plugin_connection.h"

#include <algorithm>
#include <utility>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/nri/bounded_message.h"
#include "pkg/nri/protocol.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::nri {
namespace {

// Time for a runtime to carry out updates, each of which is a call of an OCI runtime.
constexpr std::chrono::milliseconds kUpdateTimeout{30'000};
// Bytes of a runtime's name and version.
constexpr size_t kLongestRuntimeName = 64;
// A longer request timeout of a runtime is cut to this.
constexpr std::chrono::milliseconds kLongestRequestTimeout{3'600'000};

// The methods that a runtime may call.

template <typename Response>
std::string Encode(Response response) {
  return response.SerializeAsString();
}

template <typename Response>
std::string Encode(WithUpdates<Response> answer) {
  return std::move(answer.encoded);
}

// Turns a method's reply into a handler's.
template <typename Response>
PluginHandler::Reply<Response> Encoded(const ttrpc::Server::Reply& reply) {
  return [reply](StatusOr<Response> response) {
    response.ok() ? reply(Encode(*std::move(response))) : reply(response.status());
  };
}

}  // namespace

Status PluginConnection::Check(const Options& options) {
  return CheckPluginName(options.index, options.name);
}

PluginConnection::PluginConnection(EventLoop& loop, PluginHandler& handler, Options options)
    : loop_(loop),
      handler_(handler),
      options_(std::move(options)),
      log_(GetLogger("nri/plugin")),
      dump_(options_.dumper),
      pauses_(options_.first_pause, options_.last_pause) {}

void PluginConnection::StartOn(UniqueFd socket) {
  again_ = false;
  Register(std::move(socket));
}

void PluginConnection::Start() {
  StatusOr<UniqueFd> socket = ConnectUnix(options_.socket);
  if (!socket.ok()) {
    if (!std::exchange(complained_, true)) {
      log_.Warn("cannot connect to the runtime's NRI, retrying: {}", Message(socket.status()));
    }
    ConnectLater();
    return;
  }
  Register(*std::move(socket));
}

void PluginConnection::ConnectLater() {
  retry_ = loop_.After(pauses_.Next(), [this] { Start(); });
}

// The plugin serves before it registers: the runtime may configure it before it answers.
void PluginConnection::Register(UniqueFd socket) {
  phase_ = Phase::kRegistering;
  trunk_ = std::make_unique<ttrpc::Multiplexer>(loop_, std::move(socket),
                                                [this](const Status& why) { OnLost(why); });
  ttrpc::Server::Methods methods = Methods();
  for (auto& [name, method] : methods)
    method = dump_.Show(fmt::format("/{}/{}", kPluginService, name), std::move(method));
  plugin_ = std::make_unique<ttrpc::Server>(loop_, *trunk_, kPluginConnection, budget_,
                                            kPluginService, std::move(methods));
  runtime_ = std::make_unique<ttrpc::Client>(loop_, *trunk_, kRuntimeConnection, budget_);
  api::RegisterPluginRequest request;
  request.set_plugin_name(options_.name);
  request.set_plugin_idx(options_.index);
  request.set_nri_version(kOurVersion);
  CallRuntime("RegisterPlugin", request, options_.registration_timeout,
              [this](const Answer& answer) {
                if (!answer.ok() && phase_ != Phase::kDisconnected) OnLost(answer.status());
              });
  synchronization_ = loop_.After(options_.synchronization_timeout, [this] {
    OnLost(DeadlineExceeded("the runtime has not {} this plugin within {} ms",
                            phase_ == Phase::kConfigured ? "synchronized" : "configured",
                            options_.synchronization_timeout.count()));
  });
}

void PluginConnection::CallRuntime(std::string_view method,
                                   const google::protobuf::MessageLite& request,
                                   std::chrono::milliseconds timeout,
                                   std::function<void(Answer)> done) {
  const std::string payload = request.SerializeAsString();
  runtime_->Call(
      kRuntimeService, method, payload, timeout,
      dump_.Show(fmt::format("/{}/{}", kRuntimeService, method), payload, std::move(done)));
}

void PluginConnection::OnLost(const Status& why) {
  // The loss may be reported several times, once by each call that ends with the connection.
  if (phase_ == Phase::kDisconnected) return;
  const bool was_synchronized = phase_ == Phase::kSynchronized;
  phase_ = Phase::kDisconnected;
  synchronization_.reset();
  if (was_synchronized || !complained_) {
    log_.Warn("the runtime's NRI is lost: {}", Message(why));
  }
  complained_ = !was_synchronized;
  runtime_->Lose(Unavailable("the runtime's NRI is lost: {}", Message(why)));
  // In this order, since the first two use the trunk.
  lost_.Add(std::move(plugin_));
  lost_.Add(std::move(runtime_));
  lost_.Add(std::move(trunk_));
  ForgetInventory();
  if (std::exchange(told_, false)) handler_.OnDisconnected(why);
  if (again_) ConnectLater();
}

Status PluginConnection::CheckSynchronized() const {
  if (phase_ == Phase::kSynchronized) return OkStatus();
  return Unavailable("the runtime's NRI is not connected");
}

void PluginConnection::UpdateContainers(std::vector<api::ContainerUpdate> updates, Updated done) {
  if (const Status ready = CheckSynchronized(); !ready.ok()) {
    loop_.Post([ready, done = std::move(done)] { done(ready); });
    return;
  }
  api::UpdateContainersRequest request;
  for (api::ContainerUpdate& update : updates)
    *request.add_update() = std::move(update);
  CallRuntime(
      "UpdateContainers", request, kUpdateTimeout, [done = std::move(done)](const Answer& answer) {
        if (!answer.ok()) return done(answer.status());
        api::UpdateContainersResponse response;
        if (const Status decoded = DecodeMessage(*answer, response); !decoded.ok()) {
          return done(Internal("the runtime's answer: {}", Message(decoded)));
        }
        done(std::vector<api::ContainerUpdate>(response.failed().begin(), response.failed().end()));
      });
}

// Ends the connection, but only after the runtime has got its answer.
void PluginConnection::Refuse(const Status& why) {
  constexpr std::chrono::milliseconds kForTheAnswer{100};
  if (refusal_ != why) log_.Error("{}", Message(why));
  refusal_ = why;
  complained_ = true;
  pauses_.SkipToLast();
  synchronization_ = loop_.After(kForTheAnswer, [this, why] { OnLost(why); });
}

PluginConnection::Answer PluginConnection::Configure(const api::ConfigureRequest& request) {
  if (phase_ == Phase::kSynchronized) return FailedPrecondition("this plugin is synchronized");
  if (Status served = CheckRuntime(request.runtime_name(), request.runtime_version());
      !served.ok()) {
    Refuse(served);
    return served;
  }
  refusal_ = OkStatus();
  HostInfo host{.runtime_name = Printable(request.runtime_name(), kLongestRuntimeName),
                .runtime_version = Printable(request.runtime_version(), kLongestRuntimeName),
                .version = VersionOfHost(request.nri_version(), request.runtime_name(),
                                         request.runtime_version())};
  if (request.request_timeout() > 0) {
    host.request_timeout = std::chrono::milliseconds(
        std::min<int64_t>(request.request_timeout(), kLongestRequestTimeout.count()));
  }
  log_.Info("{} {} has configured this plugin, by NRI {}.{}.{}", host.runtime_name,
            host.runtime_version, host.version.major, host.version.minor, host.version.patch);
  phase_ = Phase::kConfigured;
  told_ = true;
  api::ConfigureResponse response;
  response.set_events(static_cast<int32_t>(EventsOfHost(host.version)));
  handler_.OnConfigured(host);
  return response.SerializeAsString();
}

void PluginConnection::ForgetInventory() {
  inventory_ = {};
  inventory_bytes_ = 0;
  inventory_fields_ = 0;
}

// Pieces are counted before they are decoded, so that a refused one takes no memory.
Status PluginConnection::TakePiece(const std::string& payload, api::SynchronizeRequest& piece) {
  inventory_bytes_ += payload.size();
  if (inventory_bytes_ > kLongestInventory) {
    return ResourceExhausted("pods and containers are more than {} bytes", kLongestInventory);
  }
  inventory_fields_ +=
      CountFields(payload, *api::SynchronizeRequest::descriptor(), kMostPieceFields);
  if (inventory_fields_ > kMostInventoryFields) {
    return ResourceExhausted("pods and containers have more than {} fields", kMostInventoryFields);
  }
  return DecodeMessage(payload, piece, kMostPieceFields);
}

PluginConnection::Answer PluginConnection::Synchronize(const std::string& payload) {
  if (phase_ != Phase::kConfigured) {
    return FailedPrecondition("the plugin is not configured, or already synchronized");
  }
  api::SynchronizeRequest piece;
  RESMGR_RETURN_IF_ERROR(TakePiece(payload, piece));
  api::SynchronizeResponse response;
  const bool more = piece.more();
  inventory_.MergeFrom(piece);
  if (more) {
    response.set_more(true);
    return response.SerializeAsString();
  }
  const api::SynchronizeRequest all = std::exchange(inventory_, {});
  ForgetInventory();
  phase_ = Phase::kSynchronized;
  synchronization_.reset();
  pauses_.Reset();
  complained_ = false;
  log_.Info("synchronized: {}, {}", CountText(all.pods_size(), "pod"),
            CountText(all.containers_size(), "container"));
  return handler_.OnSynchronize(all).SerializeAsString();
}

template <typename Request>
ttrpc::Server::Method PluginConnection::Serve(
    std::function<void(Request, const ttrpc::Server::Reply&)> method) {
  return [method = std::move(method)](const std::string& payload, std::chrono::nanoseconds,
                                      const ttrpc::Server::Reply& reply) {
    Request request;
    if (const Status decoded = DecodeMessage(payload, request); !decoded.ok()) {
      reply(Annotate(decoded, "the request"));
    } else {
      method(std::move(request), reply);
    }
  };
}

template <typename Response, typename Request>
ttrpc::Server::Method PluginConnection::ServeDecision(
    void (PluginHandler::*decide)(const Request&, PluginHandler::Reply<Response>)) {
  return Serve<Request>([this, decide](const Request& request, const ttrpc::Server::Reply& reply) {
    if (const Status ready = CheckSynchronized(); !ready.ok()) return reply(ready);
    (handler_.*decide)(request, Encoded<Response>(reply));
  });
}

ttrpc::Server::Method PluginConnection::ServeEvent(api::Event event) {
  using Request = api::PostCreateContainerRequest;
  return Serve<Request>([this, event](Request request, const ttrpc::Server::Reply& reply) {
    if (const Status ready = CheckSynchronized(); !ready.ok()) return reply(ready);
    handler_.OnEvent(StateChangeOf(event, std::move(request)), Encoded<api::Empty>(reply));
  });
}

ttrpc::Server::Methods PluginConnection::Methods() {
  using Reply = ttrpc::Server::Reply;
  ttrpc::Server::Methods methods;
  methods["Configure"] =
      Serve<api::ConfigureRequest>([this](const api::ConfigureRequest& request,
                                          const Reply& reply) { reply(Configure(request)); });
  methods["Synchronize"] = [this](const std::string& payload, std::chrono::nanoseconds,
                                  const Reply& reply) { reply(Synchronize(payload)); };
  methods["Shutdown"] = Serve<api::Empty>([this](const api::Empty&, const Reply& reply) {
    log_.Info("the runtime shuts NRI down");
    reply(std::string());
  });
  methods["CreateContainer"] = ServeDecision(&PluginHandler::OnCreateContainer);
  methods["UpdateContainer"] = ServeDecision(&PluginHandler::OnUpdateContainer);
  methods["StopContainer"] = ServeDecision(&PluginHandler::OnStopContainer);
  methods["UpdatePodSandbox"] = ServeDecision(&PluginHandler::OnUpdatePodSandbox);
  methods["StateChange"] = ServeDecision(&PluginHandler::OnEvent);
  for (const api::Event event : kStateChanges)
    methods[MethodOf(event)] = ServeEvent(event);
  return methods;
}

}  // namespace resmgr::nri
