// SPDX-License-Identifier: Apache-2.0
// What a runtime may call.
#include <utility>

#include "pkg/nri/plugin_connection.h"

namespace resmgr::nri {
namespace {

using Answer = StatusOr<std::string>;

const std::string& Empty() {
  static const std::string* const kEmpty = new std::string;
  return *kEmpty;
}

template <typename Message>
Answer Encode(const StatusOr<Message>& response) {
  if (!response.ok()) return response.status();
  return response->SerializeAsString();
}

// Events without a container have none to be moved.
template <typename Request>
void TakeContainer(Request& request, api::StateChangeEvent& event) {
  if constexpr (requires { request.mutable_container(); }) {
    *event.mutable_container() = std::move(*request.mutable_container());
  }
}

}  // namespace

template <typename Request, typename Method>
ttrpc::Server::Method PluginConnection::Serve(Method method) {
  return [method = std::move(method)](const std::string& payload, std::chrono::nanoseconds,
                                      const ttrpc::Server::Reply& reply) {
    Request request;
    if (request.ParseFromString(payload)) {
      reply(method(std::move(request)));
    } else {
      reply(InvalidArgument("the request is not protobuf"));
    }
  };
}

template <typename Request>
ttrpc::Server::Method PluginConnection::ServeEvent(api::Event event) {
  return Serve<Request>([this, event](Request request) -> Answer {
    if (const Status ready = CheckSynchronized(); !ready.ok()) return ready;
    api::StateChangeEvent told;
    told.set_event(event);
    *told.mutable_pod() = std::move(*request.mutable_pod());
    TakeContainer(request, told);
    handler_.OnEvent(told);
    return Empty();
  });
}

ttrpc::Server::Methods PluginConnection::Methods() {
  ttrpc::Server::Methods methods;
  methods["Configure"] = Serve<api::ConfigureRequest>(
      [this](const api::ConfigureRequest& request) { return Configure(request); });
  methods["Synchronize"] = Serve<api::SynchronizeRequest>(
      [this](api::SynchronizeRequest request) { return Synchronize(std::move(request)); });
  methods["Shutdown"] = Serve<api::Empty>([this](const api::Empty&) -> Answer {
    log_.Info("the runtime shuts NRI down");
    return Empty();
  });
  methods["CreateContainer"] = Serve<api::CreateContainerRequest>(
      [this](const api::CreateContainerRequest& request) -> Answer {
        if (const Status ready = CheckSynchronized(); !ready.ok()) return ready;
        return Encode(handler_.OnCreateContainer(request));
      });
  methods["UpdateContainer"] = Serve<api::UpdateContainerRequest>(
      [this](const api::UpdateContainerRequest& request) -> Answer {
        if (const Status ready = CheckSynchronized(); !ready.ok()) return ready;
        return Encode(handler_.OnUpdateContainer(request));
      });
  methods["StopContainer"] =
      Serve<api::StopContainerRequest>([this](const api::StopContainerRequest& request) -> Answer {
        if (const Status ready = CheckSynchronized(); !ready.ok()) return ready;
        return handler_.OnStopContainer(request).SerializeAsString();
      });
  methods["UpdatePodSandbox"] = Serve<api::UpdatePodSandboxRequest>(
      [this](const api::UpdatePodSandboxRequest& request) -> Answer {
        if (const Status ready = CheckSynchronized(); !ready.ok()) return ready;
        handler_.OnUpdatePodSandbox(request);
        return Empty();
      });
  methods["ValidateContainerAdjustment"] = Serve<api::ValidateContainerAdjustmentRequest>(
      [this](const api::ValidateContainerAdjustmentRequest& request) -> Answer {
        const Status valid = handler_.OnValidate(request);
        api::ValidateContainerAdjustmentResponse response;
        response.set_reject(!valid.ok());
        if (!valid.ok()) response.set_reason(std::string(Message(valid)));
        return response.SerializeAsString();
      });
  // Hosts before 0.12 tell these by StateChange, newer ones by methods of their own.
  methods["StateChange"] =
      Serve<api::StateChangeEvent>([this](const api::StateChangeEvent& event) -> Answer {
        if (const Status ready = CheckSynchronized(); !ready.ok()) return ready;
        handler_.OnEvent(event);
        return Empty();
      });
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
