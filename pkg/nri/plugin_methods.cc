// SPDX-License-Identifier: Apache-2.0
// The methods that a runtime may call.
#include <functional>
#include <utility>

#include "pkg/nri/bounded_message.h"
#include "pkg/nri/plugin_connection.h"

namespace resmgr::nri {
namespace {

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
    if (response.ok()) {
      reply(Encode(*std::move(response)));
    } else {
      reply(response.status());
    }
  };
}

// Events without a container cannot have changes of others.
template <typename Request>
void TakeContainer(Request& request, api::StateChangeEvent& event) {
  if constexpr (requires { request.mutable_container(); }) {
    *event.mutable_container() = std::move(*request.mutable_container());
  }
}

}  // namespace

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

template <typename Request>
ttrpc::Server::Method PluginConnection::ServeEvent(api::Event event) {
  return Serve<Request>([this, event](Request request, const ttrpc::Server::Reply& reply) {
    if (const Status ready = CheckSynchronized(); !ready.ok()) return reply(ready);
    api::StateChangeEvent told;
    told.set_event(event);
    *told.mutable_pod() = std::move(*request.mutable_pod());
    TakeContainer(request, told);
    handler_.OnEvent(told, Encoded<api::Empty>(reply));
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
  // Hosts before 0.12 send these events by StateChange, newer ones by methods of their own.
  methods["StateChange"] = ServeDecision(&PluginHandler::OnEvent);
  methods["RunPodSandbox"] = ServeEvent<api::RunPodSandboxRequest>(api::EVENT_RUN_POD_SANDBOX);
  methods["PostUpdatePodSandbox"] =
      ServeEvent<api::PostUpdatePodSandboxRequest>(api::EVENT_POST_UPDATE_POD_SANDBOX);
  methods["StopPodSandbox"] = ServeEvent<api::StopPodSandboxRequest>(api::EVENT_STOP_POD_SANDBOX);
  methods["RemovePodSandbox"] =
      ServeEvent<api::RemovePodSandboxRequest>(api::EVENT_REMOVE_POD_SANDBOX);
  methods["PostCreateContainer"] =
      ServeEvent<api::PostCreateContainerRequest>(api::EVENT_POST_CREATE_CONTAINER);
  methods["StartContainer"] = ServeEvent<api::StartContainerRequest>(api::EVENT_START_CONTAINER);
  methods["PostStartContainer"] =
      ServeEvent<api::PostStartContainerRequest>(api::EVENT_POST_START_CONTAINER);
  methods["PostUpdateContainer"] =
      ServeEvent<api::PostUpdateContainerRequest>(api::EVENT_POST_UPDATE_CONTAINER);
  methods["RemoveContainer"] = ServeEvent<api::RemoveContainerRequest>(api::EVENT_REMOVE_CONTAINER);
  return methods;
}

}  // namespace resmgr::nri
